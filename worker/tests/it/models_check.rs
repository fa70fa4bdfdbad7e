//! `retouch-worker models check`, called as a maintainer would.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::onnx::{Model, bind};
use crate::{photo, repository};

/// Runs `models check` on the CPU and returns its exit code and standard output.
fn check(models: &Path, names: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
        .args(["models", "check"])
        .args(names)
        .args(["--device", "cpu", "--models-dir"])
        .arg(models)
        .current_dir(repository())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn assert_says(said: &str, every: &[&str]) {
    for words in every {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Returns a models directory with one model, `made`, of weight 1, and the model's folder.
fn made() -> (TempDir, PathBuf) {
    let models = TempDir::new().unwrap();
    let folder = Model::new(1.0).write(models.path(), "made");
    (models, folder)
}

/// Replaces `from` by `to` in the manifest in a folder.
fn alter(folder: &Path, from: &str, to: &str) {
    let manifest = folder.join("model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains(from), "the manifest has no {from:?}");
    fs::write(&manifest, text.replace(from, to)).unwrap();
}

#[test]
fn a_check_gives_every_reason_and_compares_the_speed_with_what_it_would_replace() {
    let models = TempDir::new().unwrap();
    Model::new(1.0).write(models.path(), "made");
    bind(models.path(), "made");
    let candidate = Model::new(-1.0);
    let folder = candidate.write(models.path(), "candidate");
    let manifest = candidate.manifest("candidate").replace(&candidate.sha256(), &"0".repeat(64));
    fs::write(folder.join("model.toml"), manifest).unwrap();
    let (code, said) = check(models.path(), &["candidate"]);
    assert_eq!(code, Some(1), "{said}");
    let every = [
        "checksum  WRONG: candidate.onnx has sha256",
        "contract  input f32[1, 3, 32, 32] → mask f32[1, 1, 32, 32]",
        "warm-up   output in",
        "golden    WRONG: golden.png: the mean error is 0.",
        "speed     ",
        "compared  made: ",
        "times as long",
        "WRONG     2 problems",
    ];
    assert_says(&said, &every);
    assert!(!said.contains("0.00 times"), "{said}");
    let (code, said) = check(models.path(), &["made"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("RIGHT     made"), "{said}");
}

#[test]
fn a_wrong_binding_does_not_prevent_checking_the_other_models() {
    let (models, _) = made();
    Model::new(f32::NAN).write(models.path(), "nan");
    bind(models.path(), "made");
    let tools = models.path().join("tools.toml");
    let text = fs::read_to_string(&tools).unwrap();
    let text = text.replacen("\"made\"", "\"nan\"", 1).replacen("\"made\"", "\"gone\"", 1);
    // A segmentation model cannot upscale.
    let upscale = text.split("[[bind]]").nth(1).unwrap();
    let upscale = upscale.replace("remove-background", "upscale").replace("nan", "made");
    fs::write(&tools, [text.as_str(), "[[bind]]", &upscale].concat()).unwrap();
    let (code, said) = check(models.path(), &[]);
    assert_eq!(code, Some(1), "{said}");
    let every = [
        "manifest  WRONG: there is no such folder; ",
        " contains made, nan; tools.toml binds it in [[bind]] 2 (remove-background:free on any device)",
        "bindings  WRONG: [[bind]] 4: upscale is bound to made, which cannot serve it",
        "golden    golden.png: mean error 0.",
        "warm-up   WRONG: 1024 of 1024 output values are not finite",
    ];
    assert_says(&said, &every);
    let checked = |name: &str| said.matches(&format!("/{name}\n")).count();
    assert_eq!(["gone", "made", "nan"].map(checked), [1; 3], "{said}");
}

#[test]
fn a_model_bound_only_for_gpus_is_checked_without_a_run() {
    let (models, folder) = made();
    bind(models.path(), "made");
    let tools = models.path().join("tools.toml");
    let text = fs::read_to_string(&tools).unwrap();
    fs::write(&tools, text.replace("\"any\"", "\"cuda\"")).unwrap();
    let (code, said) = check(models.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    let every = [
        "made, on cuda\n",
        "device    bound on cuda only; not run on this CPU",
        "contract  input f32[1, 3, 32, 32]",
        "RIGHT     made, as far as this device can tell",
    ];
    assert_says(&said, &every);
    assert!(!said.contains("warm-up") && !said.contains("speed"), "{said}");
    fs::write(folder.join("made.onnx"), Model::new(2.0).bytes()).unwrap();
    let (code, said) = check(models.path(), &[]);
    assert_eq!(code, Some(1), "{said}");
    assert_says(&said, &["checksum  WRONG: made.onnx has sha256", "WRONG     1 problem"]);
    // A model given by name is run.
    let (_, said) = check(models.path(), &["made"]);
    assert_says(&said, &["warm-up   output in"]);
}

#[test]
fn tiling_that_is_not_exact_is_found() {
    let models = TempDir::new().unwrap();
    let folder = models.path().join("blur-upscale");
    fs::create_dir(&folder).unwrap();
    for file in ["model.toml", "blur-upscale.onnx"] {
        let right = repository().join("models/tiny/blur-upscale").join(file);
        fs::copy(right, folder.join(file)).unwrap();
    }
    let (code, said) = check(models.path(), &["blur-upscale"]);
    assert_eq!(code, Some(0), "{said}");
    let every = [
        "golden    none; the results were not compared with anything",
        "tiling    tiles differ from the whole picture by ",
        "compared  with nothing: cannot read tools.toml: ",
        "RIGHT     blur-upscale",
    ];
    assert_says(&said, &every);
    for (from, to) in [(2, 1), (1, 0)] {
        alter(&folder, &format!("padding = {from}"), &format!("padding = {to}"));
        let (code, said) = check(models.path(), &["blur-upscale"]);
        assert_eq!(code, Some(1), "{said}");
        let padding = format!("tiling.padding = {to} is less than the model's receptive radius");
        let every = ["tiling    WRONG: tiles differ", padding.as_str(), "WRONG     1 problem"];
        assert_says(&said, &every);
    }
}

#[test]
fn a_net_that_always_returns_the_same_value_is_refused() {
    let models = TempDir::new().unwrap();
    let dead = Model::new(0.0);
    let folder = dead.write(models.path(), "dead");
    let manifest = dead.manifest("dead").replace("\"minmax\"", "\"clip\"");
    let (manifest, _) = manifest.split_once("[[golden]]").unwrap();
    fs::write(folder.join("model.toml"), manifest).unwrap();
    let (code, said) = check(models.path(), &["dead"]);
    assert_eq!(code, Some(1), "{said}");
    let every = [
        "warm-up   WRONG: the output is 0.5 everywhere",
        "golden    none; the results were not compared with anything",
        "WRONG     1 problem",
    ];
    assert_says(&said, &every);
}

#[test]
fn a_golden_image_that_is_missing_or_has_the_wrong_size_is_named() {
    let (models, folder) = made();
    let expected = folder.join("golden-alpha.png");
    let alpha = fs::read(&expected).unwrap();
    fs::remove_file(&expected).unwrap();
    let (_, said) = check(models.path(), &["made"]);
    assert_says(&said, &["golden    WRONG: golden-alpha.png: No such file", "1 problem"]);
    fs::remove_file(folder.join("golden.png")).unwrap();
    let (_, said) = check(models.path(), &["made"]);
    assert_says(&said, &["golden    WRONG: golden.png: No such file", "2 problems"]);
    fs::write(&expected, alpha).unwrap();
    fs::write(folder.join("golden.png"), photo("chelsea.png")).unwrap();
    let (_, said) = check(models.path(), &["made"]);
    let size = "WRONG: golden-alpha.png: the size is 90 × 60, but the result for golden.png is ";
    assert_says(&said, &[size]);
}

#[test]
fn the_checksum_of_a_file_of_the_wrong_size_is_compared_too() {
    let (models, folder) = made();
    let bytes = [Model::new(1.0).bytes(), vec![0]].concat();
    fs::write(folder.join("made.onnx"), &bytes).unwrap();
    let (code, said) = check(models.path(), &["made"]);
    assert_eq!(code, Some(1), "{said}");
    let size = format!("checksum  WRONG: made.onnx has {} bytes", bytes.len());
    assert_says(&said, &[size.as_str(), "checksum  WRONG: made.onnx has sha256"]);
}

#[test]
fn messages_about_missing_files_say_what_to_do() {
    let (models, folder) = made();
    fs::remove_file(folder.join("made.onnx")).unwrap();
    let (_, said) = check(models.path(), &["made"]);
    assert_says(&said, &["made.onnx is missing; put the file there"]);
    alter(
        &folder,
        "[input]",
        "[source]\nregistry = \"url\"\nurl = \"https://example.org/made.onnx\"\n\n[input]",
    );
    let (_, said) = check(models.path(), &["made"]);
    assert_says(&said, &["made.onnx is missing; fetch it with `scripts/models fetch made`"]);
    fs::create_dir(folder.join("made.onnx")).unwrap();
    let (_, said) = check(models.path(), &["made"]);
    assert_says(&said, &["made.onnx is not a file"]);

    fs::create_dir(models.path().join("empty")).unwrap();
    let (_, said) = check(models.path(), &["empty"]);
    assert_says(&said, &["manifest  WRONG: there is no model.toml in this folder"]);
    let (code, said) = check(models.path(), &["maed"]);
    assert_eq!(code, Some(1), "{said}");
    assert_says(&said, &["manifest  WRONG: there is no such folder; ", " contains made\n"]);
}

#[test]
fn a_closed_pipe_does_not_cause_a_panic() {
    let models = TempDir::new().unwrap();
    Model::new(1.0).write(models.path(), "made");
    bind(models.path(), "made");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
        .args(["models", "check", "made", "--device", "cpu", "--models-dir"])
        .arg(models.path())
        .current_dir(repository())
        .stdout(writer)
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(141), "the exit status after SIGPIPE: {said}");
    assert!(!said.contains("panicked"), "{said}");
}
