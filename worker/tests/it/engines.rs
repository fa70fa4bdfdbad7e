//! Engines that are built in the background while a model serves. Without a GPU, other sessions on the CPU stand in for
//! them; everything else is the same.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ndarray::Array4;
use retouch_catalog::Factor;
use retouch_inference::manifest::{Manifest, Task};
use retouch_inference::memory::MemorySettings;
use retouch_inference::registry::{ModelHandle, load_model};
use retouch_inference::session::{
    Batching, EngineBuilder, EngineSettings, GpuSettings, Runtime, RuntimeSettings,
};
use retouch_inference::tensor::relative_difference;
use retouch_pixels::Limits;
use retouch_standins::testing::eventually;
use retouch_worker::tools::Settings;
use retouch_worker::tools::upscale::tile_shapes;
use tempfile::TempDir;

use crate::onnx::Model;
use crate::{repository, settings};

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a runtime that builds engines, whose models may take so many MiB together and run four inputs at a time.
fn building(limit_mib: Option<u64>, faults: &[&str]) -> Runtime {
    building_with(Batching { max_inputs: Some(4), ..Batching::NONE }, limit_mib, faults)
}

fn building_with(batching: Batching, limit_mib: Option<u64>, faults: &[&str]) -> Runtime {
    let faults = crate::faults(faults);
    let engines = EngineSettings {
        builder: EngineBuilder::StandIn,
        folder: PathBuf::new(),
        in_background: true,
    };
    let gpu = GpuSettings { engines: Some(engines), ..GpuSettings::default() };
    let limit_bytes = limit_mib.map(|mib| mib << 20);
    let memory = MemorySettings { limit_bytes, ..MemorySettings::default() };
    Runtime::start(RuntimeSettings { gpu, memory, ..settings(batching, faults) }).unwrap()
}

async fn load(folder: &Path, runtime: &Runtime) -> ModelHandle {
    load_model(Manifest::read(folder).unwrap(), runtime.clone(), |_| {}).await.unwrap()
}

fn input() -> Array4<u8> {
    Array4::from_shape_fn((1, 32, 32, 3), |(_, y, x, c)| (c * 5 + y * 3 + x) as u8)
}

async fn infer(model: &ModelHandle) -> Array4<f32> {
    model.infer(input()).await.unwrap().output.values()
}

async fn until_swapped(model: &ModelHandle) {
    eventually(PATIENCE, "the engine serves", || async { model.has_engine().then_some(()) }).await;
}

/// Waits until so many builds have ended.
async fn until_built(runtime: &Runtime, builds: u64) {
    let memory = runtime.memory();
    let are_built = || async { (memory.builds() >= builds).then_some(()) };
    eventually(PATIENCE, "the builds have ended", are_built).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_engine_takes_over_between_requests_and_none_fails() {
    for name in ["segment", "upscale"] {
        let runtime = building(None, &[]);
        let model = Arc::new(load(&repository().join("models/tiny").join(name), &runtime).await);
        assert_eq!((model.max_batch(), model.has_engine()), (4, false), "{name}");
        let expected = infer(&model).await;
        let lanes = (0..6).map(|_| {
            let (model, expected) = (model.clone(), expected.clone());
            tokio::spawn(async move {
                let (mut before, mut after) = (0, 0);
                while after < 20 {
                    let has_engine = model.has_engine();
                    let difference = relative_difference(&expected, &infer(&model).await);
                    assert!(difference < 1e-4, "{difference}");
                    *(if has_engine { &mut after } else { &mut before }) += 1;
                }
                before
            })
        });
        let lanes: Vec<_> = lanes.collect();
        for lane in lanes {
            let before = tokio::time::timeout(PATIENCE, lane).await.unwrap().unwrap();
            assert!(before > 0, "{name} served before its engine was built");
        }
        let memory = runtime.memory();
        assert_eq!((memory.builds(), memory.held()), (1, model.memory_bytes()), "{name}");
    }
}

#[tokio::test]
async fn a_wrong_engine_is_refused_and_the_model_serves_without() {
    let runtime = building(None, &["--fault-engines=wrong"]);
    let model = load(&repository().join("models/tiny/segment"), &runtime).await;
    let before = infer(&model).await;
    until_built(&runtime, 1).await;
    assert_eq!(infer(&model).await, before);
    assert!(!model.has_engine());
    assert_eq!(runtime.memory().held(), model.memory_bytes());
}

#[tokio::test]
async fn no_engine_is_built_from_files_that_have_changed_since_the_load() {
    let (models, runtime) = (TempDir::new().unwrap(), building(None, &[]));
    let folder = Model::new(1.0).write(models.path(), "made");
    let model = load(&folder, &runtime).await;
    let before = infer(&model).await;
    Model::new(1.5).write(models.path(), "made");
    until_built(&runtime, 1).await;
    assert_eq!(infer(&model).await, before);
    assert!(!model.has_engine());
}

#[tokio::test]
async fn a_run_that_fails_on_an_engine_is_repeated_without() {
    let runtime = building(None, &["--fault-engines=failing"]);
    let model = load(&repository().join("models/tiny/segment"), &runtime).await;
    let before = infer(&model).await;
    until_swapped(&model).await;
    for _ in 0..3 {
        assert_eq!(infer(&model).await, before);
        assert!(!model.has_engine());
    }
}

#[tokio::test]
async fn a_model_that_gave_way_comes_back_as_the_engine_that_it_was() {
    let (models, runtime) = (TempDir::new().unwrap(), building(Some(100), &[]));
    let write = |name: &str, weight: f32| {
        Model { memory_mib: Some(40), ..Model::new(weight) }.write(models.path(), name)
    };
    let first = load(&write("first", 1.0), &runtime).await;
    let before = infer(&first).await;
    until_swapped(&first).await;
    assert_eq!(runtime.memory().held(), 40 << 20);

    let second = load(&write("second", 1.2), &runtime).await;
    let third = load(&write("third", 1.4), &runtime).await;
    let are_loaded = || [&first, &second, &third].map(ModelHandle::is_loaded);
    assert_eq!((are_loaded(), first.has_engine()), ([false, true, true], false));
    assert_eq!(infer(&first).await, before);
    assert!(first.is_loaded() && first.has_engine());

    // Two models leave no room for an engine beside them, and it pushes none of them out.
    until_built(&runtime, 3).await;
    assert!(!second.has_engine() && !third.has_engine());
    assert_eq!(runtime.memory().held(), 80 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_lacks_memory_does_not_wait_for_its_own_engine() {
    let patient = Batching { max_inputs: Some(4), wait: PATIENCE };
    let runtime = building_with(patient, Some(100), &["--fault-out-of-memory-at-run=1"]);
    let model = Arc::new(load(&repository().join("models/tiny/segment"), &runtime).await);
    // The batch waits for an input that was announced, and the engine arrives meanwhile.
    let announced = model.announce();
    let lane = tokio::spawn({
        let model = model.clone();
        async move { infer(&model).await }
    });
    until_built(&runtime, 1).await;
    drop(announced);
    let output = tokio::time::timeout(PATIENCE, lane).await.expect("it does not hang").unwrap();
    assert_eq!(output.dim(), infer(&model).await.dim());
    assert!(model.has_engine(), "it was loaded again as its engine");
    assert_eq!(runtime.memory().held(), model.memory_bytes());
}

#[test]
fn an_engine_takes_every_tile_that_pictures_are_cut_into() {
    let models = [
        "tiny/upscale",
        "tiny/upscale-x3",
        "tiny/upscale-x8",
        "tiny/upscale-fixed",
        "tiny/blur-upscale",
        "realesr-animevideov3-x4",
        "realesrgan-x4plus",
        "nomos-web-photo-x4",
    ];
    let sizes = [(1, 1), (1, 4000), (97, 31), (640, 480), (1000, 3000), (4000, 3000), (8000, 700)];
    let mut checked = 0;
    for model in models {
        let manifest = Manifest::read(&repository().join("models").join(model)).unwrap();
        let Task::Upscale(contract) = &manifest.task else { panic!("{model}") };
        for tile_memory_bytes in [16 << 20, 1 << 30, 4 << 30] {
            let shapes = manifest.task.net().unwrap().input_shapes(8, tile_memory_bytes);
            let settings = Settings { limits: Limits::default(), tile_memory_bytes };
            for (size, factor) in
                sizes.iter().flat_map(|size| [Factor::X2, Factor::X4].map(|factor| (*size, factor)))
            {
                if contract.can_make(factor.get().into()).is_err() {
                    continue;
                }
                for (rows, columns) in [false, true].into_iter().flat_map(|has_few| {
                    tile_shapes(size, factor, contract, has_few, &settings).unwrap()
                }) {
                    assert!(
                        shapes.hold([1, rows, columns, 3]),
                        "{model} {size:?}: {rows} × {columns} {shapes:?}"
                    );
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}
