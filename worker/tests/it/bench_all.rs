//! `retouch-worker bench --all` on tiny models, as an operator would run it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::repository;

/// Runs the suite on the CPU with tiny models and returns what it prints.
fn bench(out: &Path, minutes: &str) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
        .args(["bench", "--all", "--device=cpu", "--seconds=0.05", "--megapixels=1"])
        .args(["--minutes", minutes, "--out"])
        .arg(out)
        .env("RETOUCH_MODELS_DIR", repository().join("models/tiny"))
        .env("ORT_DYLIB_PATH", repository().join(".retouch/onnxruntime/libonnxruntime.so.1.31.1"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn record(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("bench.json")).unwrap()).unwrap()
}

fn entries(record: &Value, outcome: &str) -> usize {
    let entries = record["entries"].as_array().unwrap();
    entries.iter().filter(|entry| entry["outcome"].get(outcome).is_some()).count()
}

#[test]
fn a_run_without_time_names_what_is_missing_and_the_next_one_measures_it() {
    let out = tempfile::tempdir().unwrap();
    let (success, said) = bench(out.path(), "0");
    assert!(success, "{said}");
    let early = record(out.path());
    assert_eq!(entries(&early, "measured"), 0);
    assert!(entries(&early, "skipped") > 0, "{early}");

    let (success, said) = bench(out.path(), "9");
    assert!(success, "{said}");
    let late = record(out.path());
    assert_eq!((entries(&late, "skipped"), entries(&late, "failed")), (0, 0), "{late}");
    assert_eq!(
        late["entries"].as_array().unwrap().len(),
        early["entries"].as_array().unwrap().len()
    );
    let kinds = ["remove-bg", "upscale", "fix"];
    for kind in kinds {
        let own = late["entries"].as_array().unwrap().iter().find(|entry| entry["kind"] == kind);
        let measures = &own.unwrap()["outcome"]["measured"];
        assert!(measures["rate"].as_f64().unwrap() > 0.0, "{kind}: {measures}");
        assert!(measures["resident_mib"].as_u64().unwrap() > 0, "{kind}: {measures}");
        assert!(
            fs::read_to_string(out.path().join(format!("{kind}.svg"))).unwrap().contains("<svg")
        );
    }
    let compared = late["comparisons"].as_array().unwrap();
    assert!(!compared.is_empty());
    for comparison in compared {
        assert_eq!(comparison["setting"], "CPU, batches of 8");
        assert!(comparison["mean"].as_f64().unwrap() < 0.01, "{comparison}");
    }
    let report = fs::read_to_string(out.path().join("bench.md")).unwrap();
    for heading in ["## Remove Background", "## Upscale", "## Magic Fix", "## Results compared"] {
        assert!(report.contains(heading), "{heading}: {report}");
    }
    let checked = fs::read_to_string(out.path().join("models-check.txt")).unwrap();
    assert!(checked.contains("RIGHT"), "{checked}");
    assert!(fs::read_to_string(out.path().join("doctor.txt")).unwrap().contains("machine"));

    // Nothing is left to do, so nothing changes.
    let (success, said) = bench(out.path(), "9");
    assert!(success, "{said}");
    assert_eq!(record(out.path()), late);
}

#[test]
fn a_model_that_fails_is_reported_and_the_others_are_measured() {
    let models = tempfile::tempdir().unwrap();
    crate::onnx::Model::new(1.0).write(models.path(), "made");
    crate::onnx::bind(models.path(), "made");
    fs::write(models.path().join("made/made.onnx"), b"no model").unwrap();
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
        .args(["bench", "--all", "--device=cpu", "--seconds=0.05", "--megapixels=1", "--out"])
        .arg(out.path())
        .env("RETOUCH_MODELS_DIR", models.path())
        .env("ORT_DYLIB_PATH", repository().join(".retouch/onnxruntime/libonnxruntime.so.1.31.1"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    let record = record(out.path());
    assert!(entries(&record, "failed") > 0, "{record}");
    let report = fs::read_to_string(out.path().join("bench.md")).unwrap();
    assert!(report.contains("FAILED: ") && report.contains("made.onnx has 8 bytes"), "{report}");
}
