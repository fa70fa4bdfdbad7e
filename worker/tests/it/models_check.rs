//! `retouch-worker models check`, called as a maintainer would.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::onnx::{Model, bind, with_external_data};
use crate::{copy, photo, repository};

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
fn a_model_that_does_not_fit_here_is_neither_right_nor_wrong() {
    let models = TempDir::new().unwrap();
    Model { memory_mib: Some(101), ..Model::new(1.0) }.write(models.path(), "large");
    let (code, said) = check(models.path(), &["large", "--model-memory-mib", "100"]);
    assert_eq!(code, Some(1), "{said}");
    let every = ["memory    UNCHECKED: it needs about 101 MiB", "UNCHECKED it has no room here"];
    assert_says(&said, &every);
    assert!(!said.contains("RIGHT") && !said.contains("WRONG"), "{said}");
}

#[test]
fn a_model_that_is_larger_than_the_limit_is_not_said_to_need_only_that() {
    let (models, folder) = made();
    let (_, said) = check(models.path(), &["made", "--model-memory-mib", "1"]);
    assert_says(&said, &["needs     at least 1 MiB, which is the limit", "RIGHT     made"]);
    alter(&folder, "homepage", "memory_mib = 1\nhomepage");
    let (_, said) = check(models.path(), &["made", "--model-memory-mib", "1"]);
    assert_says(&said, &["needs     1 MiB while it is loaded"]);
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
fn a_pipeline_is_named_with_the_scheduler_that_runs() {
    let tiny = repository().join("models/tiny");
    let (code, said) = check(&tiny, &["sdxl-inpaint"]);
    assert_eq!(code, Some(0), "{said}");
    let every =
        ["SDXL, scheduler euler, opened on cpu", "10 reference cases, within the tolerance of f32"];
    assert_says(&said, &every);

    let models = TempDir::new().unwrap();
    let folder = models.path().join("sdxl-inpaint");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(tiny.join("sdxl-inpaint")).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    let text = fs::read_to_string(folder.join("model.toml")).unwrap();
    fs::remove_file(folder.join("model.toml")).unwrap();
    fs::write(folder.join("model.toml"), text).unwrap();
    alter(&folder, "guidance = 5.0", "guidance = 5.0\nscheduler = \"unipc\"");
    let (code, said) = check(models.path(), &["sdxl-inpaint"]);
    assert_eq!(code, Some(0), "{said}");
    assert_says(&said, &["scheduler unipc in place of the model's EulerDiscreteScheduler"]);
}

/// Returns a models directory with the tiny `segment-anything`, and its folder.
fn pipeline() -> (TempDir, PathBuf) {
    let (models, name) = (TempDir::new().unwrap(), "segment-anything");
    let folder = models.path().join(name);
    copy(&repository().join("models/tiny").join(name), &folder);
    (models, folder)
}

#[test]
fn a_pipeline_keeps_its_tensors_only_in_files_that_its_manifest_lists() {
    let check_with_data_in = |location: &str| {
        let (models, folder) = pipeline();
        let net = folder.join("decoder/model.onnx");
        let before = fs::read(&net).unwrap();
        let after = with_external_data(&before, location);
        alter(&folder, &sha256(&before), &sha256(&after));
        let size = |bytes: &[u8]| format!("size_bytes = {}", bytes.len());
        alter(&folder, &size(&before), &size(&after));
        fs::write(net, after).unwrap();
        fs::write(folder.join("decoder").join(location), [0; 4]).unwrap();
        let (_, said) = check(models.path(), &["segment-anything"]);
        (models, folder, said)
    };
    let (.., said) = check_with_data_in("../model.onnx.data");
    let outside = "keeps tensors in \"../model.onnx.data\", which is outside its folder";
    assert_says(&said, &[outside, "WRONG     1 problem"]);

    let (models, folder, said) = check_with_data_in("model.onnx.data");
    let unlisted = "files     WRONG: decoder/model.onnx keeps tensors in \"decoder/model.onnx.data\", which the manifest \
                    does not list; add it as [[extra]]";
    assert_says(&said, &[unlisted, "WRONG     1 problem"]);
    let extra = format!(
        "[[extra]]\nfile = \"decoder/model.onnx.data\"\nsha256 = \"{}\"\nsize_bytes = 4\n\n[input]",
        sha256(&[0; 4])
    );
    alter(&folder, "[input]", &extra);
    let (_, said) = check(models.path(), &["segment-anything"]);
    assert_says(&said, &["checksum  3 files", "RIGHT     segment-anything"]);
    fs::write(folder.join("decoder/model.onnx.data"), [1; 4]).unwrap();
    let (_, said) = check(models.path(), &["segment-anything"]);
    assert_says(&said, &["checksum  WRONG: decoder/model.onnx.data has sha256"]);
}

#[test]
fn a_net_of_a_pipeline_that_its_manifest_does_not_list_is_refused() {
    let (models, folder) = pipeline();
    let manifest = fs::read_to_string(folder.join("model.toml")).unwrap();
    let decoder = manifest.split("[[extra]]").find(|entry| entry.contains("decoder/")).unwrap();
    let (entry, _) = decoder.split_once("[input]").unwrap();
    alter(&folder, &format!("[[extra]]{entry}"), "");
    let (_, said) = check(models.path(), &["segment-anything"]);
    let unlisted =
        "files     WRONG: decoder/model.onnx is a net that the manifest does not list; add it";
    assert_says(&said, &[unlisted, "WRONG     1 problem"]);
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[test]
fn a_canvas_whose_sides_a_pipeline_does_not_take_is_refused() {
    for (name, smaller) in [("sd-inpaint", 8), ("flux2-klein", 8)] {
        let models = TempDir::new().unwrap();
        let folder = models.path().join(name);
        copy(&repository().join("models/tiny").join(name), &folder);
        let multiple = format!("multiple_of = {smaller}");
        alter(&folder, "multiple_of = 16", &multiple);
        let (code, said) = check(models.path(), &[name]);
        assert_eq!(code, Some(1), "{said}");
        let reason = "canvas.multiple_of is 8, but the model needs sides that are multiples of 16";
        assert_says(&said, &[reason]);
        alter(&folder, "fit = \"scale\"", "fit = \"square\"");
        let (_, said) = check(models.path(), &[name]);
        assert!(!said.contains("canvas."), "a square has the sides of the canvas: {said}");
    }
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

    let (_pipeline, folder) = pipeline();
    fs::remove_file(folder.join("decoder/model.onnx")).unwrap();
    let said_of = || check(folder.parent().unwrap(), &["segment-anything"]).1;
    assert_says(&said_of(), &["decoder/model.onnx is missing; put the file there"]);
    let hub = "[source]\nregistry = \"hub\"\nrepository = \"somebody/sam\"\nrevision = \"main\"\n\n\
               [[source.files]]\npath = \"decoder/model.onnx\"\n\n[input]";
    alter(&folder, "[input]", hub);
    let fetch = "is missing; fetch it with `scripts/models fetch segment-anything`";
    assert_says(&said_of(), &[fetch]);

    fs::create_dir(models.path().join("empty")).unwrap();
    let (_, said) = check(models.path(), &["empty"]);
    assert_says(&said, &["manifest  WRONG: there is no model.toml in this folder"]);
    let (code, said) = check(models.path(), &["maed"]);
    assert_eq!(code, Some(1), "{said}");
    assert_says(&said, &["manifest  WRONG: there is no such folder; ", " contains made\n"]);
    fs::create_dir(models.path().join("templates")).unwrap();
    fs::write(models.path().join("templates/later.toml"), "name = \"later\"").unwrap();
    let (_, said) = check(models.path(), &["later"]);
    assert_says(&said, &["WRONG: it is not installed; `scripts/models fetch later` installs it"]);
}

#[test]
fn a_file_saved_in_place_of_the_model_is_recognized() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n";
    for (bytes, reason) in [
        (
            pointer,
            "made.onnx is a Git LFS pointer, a text of three lines in place of the model; run `git lfs pull`",
        ),
        (
            "",
            "made.onnx is empty: its download or copy did not finish; download it from https://onnx.ai",
        ),
        (
            "\n<!DOCTYPE html><html>",
            "made.onnx is a web page: the download saved an error or a sign-in page; ",
        ),
    ] {
        let (models, folder) = made();
        // As a maintainer does: the checksum is that of the wrong file.
        let (right, wrong) = (Model::new(1.0), sha256(bytes.as_bytes()));
        alter(&folder, &right.sha256(), &wrong);
        let size = format!("size_bytes = {}", right.bytes().len());
        alter(&folder, &size, &format!("size_bytes = {}", bytes.len()));
        fs::write(folder.join("made.onnx"), bytes).unwrap();
        let (code, said) = check(models.path(), &["made"]);
        assert_eq!(code, Some(1), "{said}");
        assert_says(&said, &[&format!("checksum  WRONG: {reason}"), "WRONG     1 problem"]);
    }
}

#[test]
fn links_that_lead_nowhere_are_named_with_their_target() {
    let (models, folder) = made();
    fs::remove_file(folder.join("made.onnx")).unwrap();
    symlink("/mnt/weights/made.onnx", folder.join("made.onnx")).unwrap();
    let (_, said) = check(models.path(), &["made"]);
    let target = "made.onnx is missing: it is a link to /mnt/weights/made.onnx, which does not exist; put the file there";
    assert_says(&said, &[target]);

    fs::remove_file(folder.join("model.toml")).unwrap();
    symlink("elsewhere.toml", folder.join("model.toml")).unwrap();
    let (_, said) = check(models.path(), &["made"]);
    assert_says(
        &said,
        &["WRONG: model.toml: it is a link to elsewhere.toml, which does not exist"],
    );

    symlink("/mnt/models/gone", models.path().join("gone")).unwrap();
    let (_, said) = check(models.path(), &["gone"]);
    assert_says(
        &said,
        &["there is no such folder: it is a link to /mnt/models/gone, which does not exist"],
    );
}

#[test]
fn a_folder_that_cannot_be_read_is_not_called_empty() {
    let (models, _) = made();
    // A link to itself fails like a folder without permissions, also for root.
    symlink("loop", models.path().join("loop")).unwrap();
    let (code, said) = check(models.path(), &["loop"]);
    assert_eq!(code, Some(1), "{said}");
    assert_says(&said, &["manifest  WRONG: this folder cannot be read: "]);
    assert!(!said.contains("there is no"), "{said}");
}

#[test]
fn an_empty_tools_toml_is_refused() {
    let (models, _) = made();
    for (text, reason) in [("", "the file is empty"), ("# none\n", "it has no [[bind]]")] {
        fs::write(models.path().join("tools.toml"), text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
            .args(["models", "check", "--device", "cpu", "--models-dir"])
            .arg(models.path())
            .current_dir(repository())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let reason = format!("tools.toml: {reason}, so no tool would be served; ");
        assert!(said.contains(&reason), "{said}");
    }
}

#[test]
fn an_entry_that_is_never_reached_is_named_with_the_one_before_it() {
    let (models, _) = made();
    Model::new(2.0).write(models.path(), "other");
    let line = |tier: &str, device: &str, model: &str| {
        format!(
            "[[bind]]\ntool = \"remove-background\"\ntier = \"{tier}\"\ndevice = \"{device}\"\nmodel = \"{model}\"\n"
        )
    };
    let bind =
        |lines: &[String]| fs::write(models.path().join("tools.toml"), lines.concat()).unwrap();
    bind(&[line("paid", "any", "made"), line("paid", "cuda", "other")]);
    let (code, said) = check(models.path(), &[]);
    assert_eq!(code, Some(1), "{said}");
    let reason = "bindings  WRONG: [[bind]] 2: it is never reached, because the first entry that fits wins: [[bind]] 1 \
                  (made, remove-background:paid on any device) serves remove-background:paid on cuda already; remove one \
                  of them, or move this entry up";
    assert_says(&said, &[reason, "RIGHT     made", "WRONG     1 problem"]);
    // The other way around, each serves a device.
    bind(&[line("paid", "cuda", "other"), line("paid", "any", "made")]);
    let (code, said) = check(models.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    // Two entries together may leave nothing to a third.
    bind(&[
        line("paid", "cpu", "made"),
        line("paid", "cuda", "made"),
        line("paid", "any", "other"),
    ]);
    let (_, said) = check(models.path(), &[]);
    assert_says(&said, &["[[bind]] 3: it is never reached", " and [[bind]] 2 (made, "]);
}

#[test]
fn paid_runs_of_a_model_without_commercial_use_are_noticed_but_not_refused() {
    let (models, folder) = made();
    bind(models.path(), "made");
    alter(&folder, "commercial_use = true", "commercial_use = false");
    let (code, said) = check(models.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    let notice = "bindings  [[bind]] 1: it serves remove-background:paid on any device, but its license, Apache-2.0, \
                  does not allow commercial use";
    assert_says(&said, &[notice, "RIGHT     made"]);
    assert!(!said.contains("[[bind]] 2"), "free runs take no money: {said}");
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
