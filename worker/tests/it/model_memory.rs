//! The limit for the memory of all models: who gives way, who comes back, and that nothing fails meanwhile.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use ndarray::Array4;
use retouch_catalog::{Tier, Tool};
use retouch_core::jobs::JobState;
use retouch_core::workers;
use retouch_inference::bindings::Demand;
use retouch_inference::device::Device;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Manifest;
use retouch_inference::memory::{MemorySettings, Reading};
use retouch_inference::registry::{
    LoadError, LoadStep, ModelHandle, PaintControl, Registry, Watcher, load_model, sample_painting,
};
use retouch_inference::session::{Batching, Runtime, RuntimeSettings};
use retouch_standins::testing::eventually;
use sqlx::PgPool;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::diffusion::copy;
use crate::onnx::{Model, bind, bind_tiers};
use crate::process::Services;
use crate::{repository, settings};

/// Starts a runtime whose models may take so many MiB together.
fn limited(mib: u64, faults: RunFaults) -> Runtime {
    let memory = MemorySettings { limit_bytes: Some(mib << 20), ..MemorySettings::default() };
    Runtime::start(RuntimeSettings { memory, ..settings(Batching::NONE, faults) }).unwrap()
}

/// Writes a model that says it needs so many MiB.
fn write(models: &Path, name: &str, weight: f32, mib: u32) -> Model {
    let model = Model { memory_mib: Some(mib), ..Model::new(weight) };
    model.write(models, name);
    model
}

async fn load(models: &Path, name: &str, runtime: &Runtime) -> Result<ModelHandle, LoadError> {
    load_model(Manifest::read(&models.join(name)).unwrap(), runtime.clone(), |_| {}).await
}

/// Loads models of 40 MiB with different weights, in order.
async fn load_each(models: &Path, names: &[&str], runtime: &Runtime) -> Vec<ModelHandle> {
    let mut loaded = Vec::new();
    for (weight, name) in (1_u8..).zip(names) {
        write(models, name, 1.0 + f32::from(weight) / 10.0, 40);
        loaded.push(load(models, name, runtime).await.unwrap());
    }
    loaded
}

fn input() -> Array4<f32> {
    Array4::from_shape_fn((1, 3, 32, 32), |(_, c, y, x)| (c * 5 + y * 3 + x) as f32 / 130.0 - 0.5)
}

async fn infer(model: &ModelHandle) -> Array4<f32> {
    model.infer(input()).await.unwrap().output
}

#[tokio::test]
async fn the_least_recently_used_model_gives_way_and_comes_back_for_the_next_request() {
    let (models, runtime) = (TempDir::new().unwrap(), limited(100, RunFaults::default()));
    let loaded = load_each(models.path(), &["a", "b"], &runtime).await;
    let before = [infer(&loaded[1]).await, infer(&loaded[0]).await];
    write(models.path(), "c", 1.5, 40);
    let newest = load(models.path(), "c", &runtime).await.unwrap();
    let are_loaded = || [&loaded[0], &loaded[1], &newest].map(ModelHandle::is_loaded);
    assert_eq!(are_loaded(), [true, false, true], "the one used before the others gave way");
    assert_eq!(infer(&loaded[1]).await, before[0]);
    assert_eq!(are_loaded(), [false, true, true]);
    assert_eq!(infer(&loaded[0]).await, before[1]);
    let memory = runtime.memory();
    assert_eq!((memory.held(), memory.loads()), (80 << 20, 5));
}

#[tokio::test]
async fn a_model_that_can_never_fit_is_refused_in_words() {
    let (models, runtime) = (TempDir::new().unwrap(), limited(100, RunFaults::default()));
    let small = load_each(models.path(), &["small"], &runtime).await;
    write(models.path(), "large", 1.5, 101);
    let refused = load(models.path(), "large", &runtime).await.unwrap_err();
    let LoadError::Refused { step, reason, .. } = refused else { panic!("{refused}") };
    assert_eq!(step, LoadStep::Memory);
    let words = "needs about 101 MiB, but all models together may take 100 MiB";
    assert!(reason.contains(words), "{reason}");
    assert!(small[0].is_loaded(), "nobody gives way for nothing");

    // One that states nothing is measured while it is checked.
    let probe = |_: Device, reading: Reading| {
        Some(if reading == Reading::Peak { 200 << 20 } else { 1 << 20 })
    };
    let memory = MemorySettings { limit_bytes: Some(100 << 20), probe };
    let settings = settings(Batching::NONE, RunFaults::default());
    let runtime = Runtime::start(RuntimeSettings { memory, ..settings }).unwrap();
    Model::new(1.0).write(models.path(), "measured");
    let refused = load(models.path(), "measured", &runtime).await.unwrap_err().to_string();
    assert!(refused.contains("memory: it needs about 199 MiB"), "{refused}");
    eventually(Duration::from_secs(5), "its thread has ended", || async {
        (runtime.memory().held() == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mix_of_models_of_twice_the_limit_fails_nothing() {
    let (models, runtime) = (TempDir::new().unwrap(), limited(80, RunFaults::default()));
    let loaded = load_each(models.path(), &["a", "b", "c", "d"], &runtime).await;
    let mut expected = Vec::new();
    for model in &loaded {
        expected.push(infer(model).await);
    }
    let (loaded, expected) = (Arc::new(loaded), Arc::new(expected));
    let tasks = (0..8).map(|task| {
        let (loaded, expected, runtime) = (loaded.clone(), expected.clone(), runtime.clone());
        tokio::spawn(async move {
            for round in 0..12 {
                let which = (task + round * (1 + task / 4)) % loaded.len();
                assert_eq!(infer(&loaded[which]).await, expected[which]);
                assert!(runtime.memory().held() <= 80 << 20);
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_mins(1), task).await.unwrap().unwrap();
    }
    assert!(runtime.memory().loads() > 8, "nobody gave way");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_do_not_fit_together_take_turns() {
    let (models, runtime) = (TempDir::new().unwrap(), limited(40, RunFaults::default()));
    let loaded = load_each(models.path(), &["a", "b"], &runtime).await;
    let before = runtime.memory().loads();
    let waiting = (0..120).map(|at| {
        let model = loaded[at % 2].clone();
        tokio::spawn(async move { infer(&model).await })
    });
    let waiting: Vec<_> = waiting.collect();
    for one in waiting {
        one.await.unwrap();
    }
    let loads = runtime.memory().loads() - before;
    assert!(loads <= 6, "{loads} loads for two models with everything waiting");

    // A model that always has work does not keep the other out.
    let is_over = Arc::new(AtomicBool::new(false));
    let lanes = (0..4).map(|_| {
        let (model, is_over) = (loaded[0].clone(), is_over.clone());
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                infer(&model).await;
            }
        })
    });
    let lanes: Vec<_> = lanes.collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    tokio::time::timeout(Duration::from_secs(10), infer(&loaded[1])).await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    for lane in lanes {
        lane.await.unwrap();
    }
}

#[derive(Parser)]
struct WithFaults {
    #[command(flatten)]
    faults: RunFaults,
}

#[tokio::test]
async fn a_run_that_lacks_memory_is_repeated_without_other_models() {
    let faults = WithFaults::parse_from(["test", "--fault-out-of-memory-at-run=2"]).faults;
    let (models, runtime) = (TempDir::new().unwrap(), limited(100, faults));
    let loaded = load_each(models.path(), &["a", "b"], &runtime).await;
    infer(&loaded[1]).await;
    infer(&loaded[0]).await;
    assert_eq!([&loaded[0], &loaded[1]].map(ModelHandle::is_loaded), [true, false]);
    infer(&loaded[1]).await;
    assert_eq!(runtime.memory().held(), 80 << 20);
}

#[tokio::test]
async fn a_pipeline_gives_way_and_comes_back() {
    let models = copy(&repository().join("models/tiny"));
    let runtime = limited(100, RunFaults::default());
    let manifest = models.path().join("sd-inpaint/model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("\n\n", "\nmemory_mib = 80\n\n", 1)).unwrap();
    let pipeline = load(models.path(), "sd-inpaint", &runtime).await.unwrap();
    let mode = pipeline.task().modes()[0];
    let paint = || async {
        let control = PaintControl { progress: Arc::new(|_| {}), cancel: CancellationToken::new() };
        let painting = sample_painting(pipeline.task().canvas().unwrap(), mode);
        pipeline.paint(painting, control).await.unwrap().rgb
    };
    let before = paint().await;
    let other = load_each(models.path(), &["other"], &runtime).await;
    assert!(!pipeline.is_loaded() && other[0].is_loaded());
    assert!(paint().await == before, "the same seed gives the same picture");
}

/// Replaces a model's folder as `scripts/models` does: by renaming a whole one.
fn replace(models: &Path, model: &Model) {
    let aside = models.join(".aside");
    let made = model.write(&aside, "made");
    fs::remove_dir_all(models.join("made")).unwrap();
    fs::rename(made, models.join("made")).unwrap();
}

#[tokio::test]
async fn a_swap_that_does_not_fit_beside_the_old_model_keeps_it_if_the_new_one_is_refused() {
    let (models, runtime) = (TempDir::new().unwrap(), limited(100, RunFaults::default()));
    let first = write(models.path(), "made", 1.0, 60);
    bind(models.path(), "made");
    let registry = Arc::new(Registry::open(models.path(), runtime).unwrap());
    registry.load_all().await.unwrap();
    let mut watcher = Watcher::new(registry.clone());
    let demand = Demand { tool: Tool::RemoveBackground, tier: Tier::Paid };
    let old = registry.model_for(demand).await.unwrap();
    let before = infer(&old).await;

    replace(models.path(), &Model { weight: -1.0, ..first.clone() });
    while !watcher.poll().await {}
    let problem = registry.problems().pop().unwrap();
    assert_eq!(problem.step, LoadStep::Golden, "{problem}");
    assert!(!old.is_loaded(), "both do not fit, so the old one gave way for the check");
    let serving = registry.model_for(demand).await.unwrap();
    assert!(serving.is_same(&old));
    assert_eq!(infer(&serving).await, before, "its files are gone, but it still runs");
    assert!(serving.is_loaded());

    let good = Model { weight: 1.5, ..first };
    replace(models.path(), &good);
    while !watcher.poll().await {}
    let serving = registry.model_for(demand).await.unwrap();
    assert_eq!(serving.identity().sha256, good.sha256());
    assert!(serving.is_loaded() && registry.memory().held() <= 100 << 20);
    // A job that started with the old model may end with it.
    assert_eq!(infer(&old).await, before);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_with_a_limit_serves_more_models_than_fit_and_reports_which_are_loaded(
    pool: PgPool,
) {
    let services = Services::start(pool, 2_000).await;
    let models = TempDir::new().unwrap();
    let (paid, free) =
        (write(models.path(), "made", 1.0, 60), write(models.path(), "other", 1.2, 60));
    bind_tiers(models.path(), "made", &["paid"]);
    let tools = fs::read_to_string(models.path().join("tools.toml")).unwrap();
    bind_tiers(models.path(), "other", &["free"]);
    let others = fs::read_to_string(models.path().join("tools.toml")).unwrap();
    fs::write(models.path().join("tools.toml"), tools + &others).unwrap();
    let mut worker = services
        .worker()
        .set("RETOUCH_MODELS_DIR", models.path())
        .set("RETOUCH_MODEL_MEMORY_MIB", "100")
        .start();
    let loaded = || async {
        let workers = workers::live(&services.pool).await.unwrap();
        let models = workers.into_iter().flat_map(|worker| worker.models);
        let mut loaded: Vec<_> =
            models.filter(|model| model.is_loaded).map(|model| model.sha256).collect();
        loaded.pop().filter(|_| loaded.is_empty())
    };
    let patience = Duration::from_secs(10);
    // The last one bound was loaded last.
    eventually(patience, "one of two is loaded", || async {
        loaded().await.filter(|sha256| *sha256 == free.sha256())
    })
    .await;
    services.submit().await;
    services.until(JobState::Done, 1, patience).await;
    eventually(patience, "the other is loaded", || async {
        loaded().await.filter(|sha256| *sha256 == paid.sha256())
    })
    .await;
    worker.terminate();
    tokio::task::spawn_blocking(move || worker.wait(patience)).await.unwrap();
}
