//! Nets in 16 bits, as a CPU shows them: which compute so, and which give up and compute as their files say.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use image::GrayImage;
use ndarray::Array4;
use retouch_inference::device::Device;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::{Manifest, Precision, Task};
use retouch_inference::memory::MemorySettings;
use retouch_inference::onnx::half_precision::{Form, convert};
use retouch_inference::registry::{LoadStep, ModelHandle, StepReport, load_model};
use retouch_inference::session::{
    Batching, GpuSettings, PrecisionPolicy, Runtime, RuntimeSettings,
};
use retouch_inference::tensor::mean_difference;
use retouch_pixels::{Limits, decode};
use tempfile::TempDir;

use crate::onnx::{Model, Tail};
use crate::{repository, settings};

fn settings_of(precision: PrecisionPolicy) -> RuntimeSettings {
    let gpu = GpuSettings { precision, ..GpuSettings::default() };
    RuntimeSettings { gpu, ..settings(Batching::NONE, RunFaults::default()) }
}

/// Loads a model. Returns it with the findings of its steps.
async fn load(folder: &Path, settings: RuntimeSettings) -> (ModelHandle, Vec<(LoadStep, String)>) {
    let found = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&found);
    let report = move |report: StepReport| {
        kept.lock().unwrap().push((report.step, report.outcome.unwrap()));
    };
    let runtime = Runtime::start(settings).unwrap();
    let model = load_model(Manifest::read(folder).unwrap(), runtime, report).await.unwrap();
    let found = found.lock().unwrap().clone();
    (model, found)
}

async fn load_as(folder: &Path, precision: PrecisionPolicy) -> ModelHandle {
    load(folder, settings_of(precision)).await.0
}

/// Returns what the precision step found, one finding for each time it was taken.
fn findings(steps: &[(LoadStep, String)]) -> Vec<&str> {
    let own = steps.iter().filter(|(step, _)| *step == LoadStep::Precision);
    own.map(|(_, finding)| finding.as_str()).collect()
}

/// Returns an input of a net. Nets of any size get 32 × 32 pixels.
fn input_of(task: &Task) -> Array4<u8> {
    let (width, height) = match task {
        Task::Segmentation(net) => (net.input.width, net.input.height),
        Task::Upscale(net) => (net.input.width.unwrap_or(32), net.input.height.unwrap_or(32)),
        other => panic!("{} is no net", other.as_str()),
    };
    Array4::from_shape_fn((1, height as usize, width as usize, 3), |(_, y, x, c)| {
        ((c * 5 + y * 3 + x) % 11 * 23) as u8
    })
}

#[tokio::test]
async fn nets_compute_in_16_bits_if_their_outputs_stay_nearly_the_same() {
    for name in [
        "tiny/segment",
        "tiny/segment-f16",
        "tiny/segment-classes",
        "tiny/segment-letterbox",
        "tiny/upscale-x3",
        "tiny/upscale-fixed",
        "tiny/blur-upscale",
        "u2netp",
        "realesr-animevideov3-x4",
    ] {
        let folder = repository().join("models").join(name);
        let full = load_as(&folder, PrecisionPolicy::F32).await;
        let (half, steps) = load(&folder, settings_of(PrecisionPolicy::F16)).await;
        assert!(findings(&steps)[0].starts_with("computes in 16 bits"), "{name}: {steps:?}");
        assert_eq!((full.precision(), half.precision()), (Precision::F32, Precision::F16));
        let input = input_of(full.task());
        let expected = full.infer(input.clone()).await.unwrap().output.values();
        let found = half.infer(input.clone()).await.unwrap().output.values();
        let difference = mean_difference(&expected, &found);
        assert!(difference < 0.01, "{name}: {difference}");

        // What a GPU runs.
        let manifest = Manifest::read(&folder).unwrap();
        let file = fs::read(folder.join(&manifest.files[0].file)).unwrap();
        let stored = convert(&file, Form::Stored).unwrap().file;
        let task = manifest.task.net().unwrap();
        let (tensors, shapes) = (task.tensors(), task.input_shapes(1, 1 << 30));
        let mut net = crate::runtime().open_net(&stored, &[], &tensors, &shapes).unwrap();
        let found = net.run(&input).unwrap().values();
        let difference = mean_difference(&expected, &found);
        assert!(difference < 0.01, "{name}, stored in 16 bits: {difference}");
    }
}

#[tokio::test]
async fn a_manifest_decides_for_gpus_only() {
    let models = TempDir::new().unwrap();
    let folder = Model::new(1.0).write(models.path(), "made");
    let manifest = folder.join("model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("precision = \"f16\"\n{text}")).unwrap();
    let (model, steps) = load(&folder, settings_of(PrecisionPolicy::Manifest)).await;
    assert_eq!(model.identity().device, Device::Cpu);
    assert_eq!(model.precision(), Precision::F32);
    assert!(findings(&steps).is_empty(), "{steps:?}");

    fs::write(&manifest, format!("precision = \"f8\"\n{text}")).unwrap();
    let error = Manifest::read(&folder).unwrap_err().to_string();
    assert!(error.contains("f16"), "{error}");
}

#[tokio::test]
async fn a_net_that_16_bits_cannot_hold_computes_in_32() {
    let models = TempDir::new().unwrap();
    let folder = Model { tail: Tail::Overflows, ..Model::new(1.0) }.write(models.path(), "made");
    let full = load_as(&folder, PrecisionPolicy::F32).await;
    let (model, steps) = load(&folder, settings_of(PrecisionPolicy::F16)).await;
    assert_eq!(model.precision(), Precision::F32);
    let expected = "does not compute in 16 bits: some outputs are not finite then";
    assert_eq!(findings(&steps), [expected]);
    let input = input_of(full.task());
    let expected = full.infer(input.clone()).await.unwrap().output;
    assert_eq!(model.infer(input).await.unwrap().output, expected);
}

/// Writes a net that loses some digits in 16 bits, with a golden image that only all digits match.
async fn write_exacting(models: &Path) -> std::path::PathBuf {
    let folder = Model { tail: Tail::Rounds, ..Model::new(1.0) }.write(models, "made");
    let full = load_as(&folder, PrecisionPolicy::F32).await;
    let golden = fs::read(folder.join("golden.png")).unwrap();
    let picture = decode::decode(&golden, &Limits::default()).unwrap();
    let Task::Segmentation(net) = full.task() else { panic!("another task") };
    let output = full.infer(net.input.to_bytes(&picture)).await.unwrap().output;
    let map = output.into_maps().unwrap();
    let alpha = net.enlarge_map(&map.view(), (picture.width, picture.height)).unwrap();
    let alpha = GrayImage::from_raw(picture.width, picture.height, alpha).unwrap();
    alpha.save(folder.join("golden-alpha.png")).unwrap();
    let manifest = folder.join("model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("tolerance = 0.2", "tolerance = 0.0005")).unwrap();
    folder
}

#[tokio::test]
async fn a_golden_image_that_fails_in_16_bits_is_no_reason_to_refuse_a_net() {
    let (models, records) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let folder = write_exacting(models.path()).await;
    // The second load must not take the first for a proof of 16 bits.
    for _ in 0..2 {
        let passed_checks = Some(records.path().to_owned());
        let own = RuntimeSettings { passed_checks, ..settings_of(PrecisionPolicy::F16) };
        let (model, steps) = load(&folder, own).await;
        assert_eq!(model.precision(), Precision::F32);
        let found = findings(&steps);
        assert!(found[0].starts_with("computes in 16 bits"), "{found:?}");
        assert!(found[1].contains("golden.png: the mean error is"), "{found:?}");
        let goldens = steps.iter().filter(|(step, _)| *step == LoadStep::Golden).count();
        assert_eq!(goldens, 1, "only the run in 32 bits is reported");
    }
}

#[tokio::test]
async fn checks_in_32_bits_say_nothing_about_16() {
    let (folder, records) = (repository().join("models/tiny/segment"), TempDir::new().unwrap());
    for (precision, is_checked) in [
        (PrecisionPolicy::F32, true),
        (PrecisionPolicy::F32, false),
        (PrecisionPolicy::F16, true),
        (PrecisionPolicy::F16, false),
    ] {
        let passed_checks = Some(records.path().to_owned());
        let own = RuntimeSettings { passed_checks, ..settings_of(precision) };
        let (_, steps) = load(&folder, own).await;
        let was_checked = steps.iter().any(|(step, _)| *step == LoadStep::Golden);
        assert_eq!(was_checked, is_checked, "{precision:?}: {steps:?}");
    }
}

#[tokio::test]
async fn a_net_in_16_bits_takes_batches_and_comes_back_as_it_was() {
    let models = TempDir::new().unwrap();
    let write = |name| {
        Model { tail: Tail::Rounds, memory_mib: Some(40), ..Model::new(1.0) }
            .write(models.path(), name)
    };
    let (folder, other) = (write("made"), write("other"));
    let memory = MemorySettings { limit_bytes: Some(60 << 20), ..MemorySettings::default() };
    let batching = Batching { max_inputs: Some(4), wait: Duration::ZERO };
    let own = RuntimeSettings { memory, batching, ..settings_of(PrecisionPolicy::F16) };
    let runtime = Runtime::start(own).unwrap();
    let of = |folder: &Path| load_model(Manifest::read(folder).unwrap(), runtime.clone(), |_| {});
    let model = of(&folder).await.unwrap();
    assert_eq!((model.precision(), model.max_batch()), (Precision::F16, 4));
    let input = input_of(model.task());
    let before = model.infer(input.clone()).await.unwrap().output;
    let full = load_as(&folder, PrecisionPolicy::F32).await;
    assert_ne!(before, full.infer(input.clone()).await.unwrap().output);

    let other = of(&other).await.unwrap();
    other.infer(input.clone()).await.unwrap();
    assert!(!model.is_loaded(), "it gave way");
    assert_eq!(model.infer(input).await.unwrap().output, before);
}
