//! The record of models that have passed their checks.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Manifest;
use retouch_inference::registry::{LoadStep, StepReport, load_model};
use retouch_inference::session::{Batching, Runtime, RuntimeSettings};

use super::diffusion::copy;
use super::{repository, settings};

/// Loads a model and returns the steps that were taken.
async fn steps_of_load(folder: &Path, passed_checks: Option<&Path>) -> Vec<LoadStep> {
    let settings = settings(Batching::NONE, RunFaults::default());
    let passed_checks = passed_checks.map(Path::to_owned);
    let runtime = Runtime::start(RuntimeSettings { passed_checks, ..settings }).unwrap();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&steps);
    let report = move |report: StepReport| {
        taken.lock().unwrap().push(report.step);
    };
    load_model(Manifest::read(folder).unwrap(), runtime, report).await.unwrap();
    steps.lock().unwrap().clone()
}

#[tokio::test]
async fn a_model_that_passed_is_not_run_again_until_something_changes() {
    let (models, records) = (copy(&repository().join("models/tiny")), tempfile::tempdir().unwrap());
    let (model, records) = (&models.path().join("segment"), records.path());
    let runs = |steps: &[LoadStep]| steps.contains(&LoadStep::WarmUp);

    assert!(runs(&steps_of_load(model, Some(records)).await), "a first load runs the model");
    let again = steps_of_load(model, Some(records)).await;
    assert!(!runs(&again), "{again:?}");
    assert!(
        again.contains(&LoadStep::Checksum) && again.contains(&LoadStep::Contract),
        "{again:?}"
    );
    assert!(runs(&steps_of_load(model, None).await), "a worker runs every model");

    let manifest = model.join("model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text + "\n# another version\n").unwrap();
    assert!(runs(&steps_of_load(model, Some(records)).await), "a changed manifest is checked");
}
