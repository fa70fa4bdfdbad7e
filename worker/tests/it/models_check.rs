//! `retouch-worker models check`, as a maintainer calls it.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::onnx::{Model, bind};
use crate::repository;

#[test]
fn a_check_gives_every_reason_and_compares_the_speed_with_what_it_would_replace() {
    let models = TempDir::new().unwrap();
    Model::new(1.0).write(models.path(), "made");
    bind(models.path(), "made");
    let candidate = Model::new(-1.0);
    let folder = candidate.write(models.path(), "candidate");
    let manifest = candidate.manifest("candidate").replace(&candidate.sha256(), &"0".repeat(64));
    fs::write(folder.join("model.toml"), manifest).unwrap();
    let check = |name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
            .args(["models", "check", name, "--device", "cpu", "--models-dir"])
            .arg(models.path())
            .current_dir(repository())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = check("candidate");
    assert_eq!(code, Some(1), "{said}");
    for words in [
        "checksum  WRONG: candidate.onnx has sha256",
        "contract  input f32[1, 3, 32, 32] → mask f32[1, 1, 32, 32]",
        "warm-up   output in",
        "golden    WRONG: golden.png: the result is off by 0.",
        "speed     ",
        "beside    made: ",
        "times as long",
        "WRONG     for 2 reasons",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (code, said) = check("made");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("RIGHT     made"), "{said}");
}

#[test]
fn a_reader_that_has_had_enough_is_no_panic() {
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
    assert_eq!(ended.status.code(), Some(141), "as after SIGPIPE: {said}");
    assert!(!said.contains("panicked"), "{said}");
}
