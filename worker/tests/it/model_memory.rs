//! The limit for the memory of all models: who gives way, who comes back, and that nothing fails meanwhile.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ndarray::Array4;
use retouch_catalog::{Tier, Tool};
use retouch_core::jobs::JobState;
use retouch_core::workers;
use retouch_inference::bindings::Demand;
use retouch_inference::device::Device;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Manifest;
use retouch_inference::memory::{MemorySettings, Probe, Reading};
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

/// What a device says about its memory.
type Read = fn(Device, Reading) -> Option<u64>;

/// Same, with a device whose memory is what `read` says.
fn probed(mib: u64, read: Read) -> Runtime {
    let memory = MemorySettings { limit_bytes: Some(mib << 20), probe: Probe::new(read) };
    let settings = settings(Batching::NONE, RunFaults::default());
    Runtime::start(RuntimeSettings { memory, ..settings }).unwrap()
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

fn input() -> Array4<u8> {
    Array4::from_shape_fn((1, 32, 32, 3), |(_, y, x, c)| (c * 5 + y * 3 + x) as u8)
}

async fn infer(model: &ModelHandle) -> Array4<f32> {
    model.infer(input()).await.unwrap().output.values()
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
}

#[tokio::test]
async fn a_model_that_may_be_too_large_is_refused_with_what_to_state() {
    let (models, runtime) = (TempDir::new().unwrap(), limited(10_700, RunFaults::default()));
    // The files of FLUX.2 [klein] 4B, on a card of 12 GB.
    let model = Model::new(1.0);
    let manifest = model.write(models.path(), "large").join("model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let size = format!("size_bytes = {}", model.bytes().len());
    let text = text.replace(&size, "size_bytes = 6686566521");
    for (stated, step, words) in [
        ("", LoadStep::Memory, "it is estimated to need 12754 MiB"),
        ("", LoadStep::Memory, "if it needs less, state that as memory_mib in its manifest"),
        ("memory_mib = 9000\n", LoadStep::Checksum, "6686566521"),
    ] {
        fs::write(&manifest, format!("{stated}{text}")).unwrap();
        let refused = load(models.path(), "large", &runtime).await.unwrap_err();
        let LoadError::Refused { step: refused, reason, .. } = refused else { panic!("{refused}") };
        assert!(refused == step && reason.contains(words), "{refused}: {reason}");
    }
}

/// The reading of a device on which a load takes so many MiB.
fn grown(reading: Reading, mib: u64) -> u64 {
    if reading == Reading::Peak { mib << 20 } else { 0 }
}

#[tokio::test]
async fn a_measurement_has_a_bound_and_refuses_no_model_whose_files_fit() {
    let models = TempDir::new().unwrap();
    Model::new(1.0).write(models.path(), "measured");
    // The growth, the limit, and what the model counts for; all in MiB.
    let cases: [(Read, u64, u64); 3] = [
        (|_, reading| Some(grown(reading, 60)), 100, 60),
        (|_, reading| Some(grown(reading, 200)), 100, 100),
        (|_, reading| Some(grown(reading, 50 << 10)), 100 << 10, 1 << 10),
    ];
    for (probe, limit, counted) in cases {
        let runtime = probed(limit, probe);
        let model = load(models.path(), "measured", &runtime).await.unwrap();
        assert_eq!(model.memory_bytes(), counted << 20);
        assert_eq!(runtime.memory().held(), counted << 20);
        infer(&model).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn models_are_measured_one_at_a_time() {
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let probe = |_: Device, reading: Reading| {
        if reading == Reading::Used {
            MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(50));
        } else {
            NOW.fetch_sub(1, Ordering::SeqCst);
        }
        Some(1 << 20)
    };
    let (models, runtime) = (TempDir::new().unwrap(), probed(100, probe));
    let loads = ["a", "b", "c", "d"].map(|name| {
        Model::new(1.0).write(models.path(), name);
        let (models, runtime) = (models.path().to_owned(), runtime.clone());
        tokio::spawn(async move { load(&models, name, &runtime).await.unwrap() })
    });
    for load in loads {
        load.await.unwrap();
    }
    assert_eq!((NOW.load(Ordering::SeqCst), MOST.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_model_comes_back_while_another_is_measured() {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    static MAY_END: AtomicBool = AtomicBool::new(true);
    let probe = |_: Device, reading: Reading| {
        HAS_BEGUN.store(true, Ordering::SeqCst);
        while reading == Reading::Used && !MAY_END.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(1 << 20)
    };
    let (models, runtime) = (TempDir::new().unwrap(), probed(100, probe));
    write(models.path(), "large", 1.0, 80);
    let large = load(models.path(), "large", &runtime).await.unwrap();
    drop(load_each(models.path(), &["other"], &runtime).await);
    let patience = Duration::from_secs(5);
    let memory = runtime.memory();
    eventually(patience, "nothing is loaded", || async { (memory.held() == 0).then_some(()) })
        .await;
    HAS_BEGUN.store(false, Ordering::SeqCst);
    MAY_END.store(false, Ordering::SeqCst);

    Model::new(1.2).write(models.path(), "measured");
    let (folder, own) = (models.path().to_owned(), runtime.clone());
    let measured = tokio::spawn(async move { load(&folder, "measured", &own).await.unwrap() });
    eventually(patience, "the measurement has begun", || async {
        HAS_BEGUN.load(Ordering::SeqCst).then_some(())
    })
    .await;
    let again = large.clone();
    let output = tokio::spawn(async move { infer(&again).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!large.is_loaded(), "its load would count for the other");
    MAY_END.store(true, Ordering::SeqCst);
    measured.await.unwrap();
    output.await.unwrap();
    assert!(large.is_loaded());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_is_not_measured_while_another_model_is_unloaded() {
    static HAS_LOADED: AtomicBool = AtomicBool::new(false);
    static MAY_END: AtomicBool = AtomicBool::new(true);
    let probe = |_: Device, reading: Reading| {
        HAS_LOADED.store(reading == Reading::Peak, Ordering::SeqCst);
        while reading == Reading::Peak && !MAY_END.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It took 50 MiB, but 40 of another model are free again.
        Some(grown(reading, 10))
    };
    let (models, runtime) = (TempDir::new().unwrap(), probed(100, probe));
    let other = load_each(models.path(), &["other"], &runtime).await;
    HAS_LOADED.store(false, Ordering::SeqCst);
    MAY_END.store(false, Ordering::SeqCst);
    Model::new(1.2).write(models.path(), "measured");
    let (folder, own) = (models.path().to_owned(), runtime.clone());
    let measured = tokio::spawn(async move { load(&folder, "measured", &own).await.unwrap() });
    let patience = Duration::from_secs(5);
    eventually(patience, "the model has run", || async {
        HAS_LOADED.load(Ordering::SeqCst).then_some(())
    })
    .await;
    drop(other);
    let memory = runtime.memory();
    eventually(patience, "the other is unloaded", || async {
        (memory.held() < 40 << 20).then_some(())
    })
    .await;
    MAY_END.store(true, Ordering::SeqCst);
    let counted = measured.await.unwrap().memory_bytes();
    assert!(counted < 1 << 20, "{counted} were measured, not estimated");
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

#[tokio::test]
async fn a_run_that_lacks_memory_is_repeated_without_other_models() {
    let faults = crate::faults(&["--fault-out-of-memory-at-run=2"]);
    let (models, runtime) = (TempDir::new().unwrap(), limited(100, faults));
    let loaded = load_each(models.path(), &["a", "b"], &runtime).await;
    infer(&loaded[1]).await;
    infer(&loaded[0]).await;
    assert_eq!([&loaded[0], &loaded[1]].map(ModelHandle::is_loaded), [true, false]);
    infer(&loaded[1]).await;
    assert_eq!(runtime.memory().held(), 80 << 20);
}

#[tokio::test]
async fn a_run_that_reaches_its_own_limit_is_repeated_beside_the_other_models() {
    let models = TempDir::new().unwrap();
    let runtime = limited(100, crate::faults(&["--fault-own-limit-at-run=1"]));
    let loaded = load_each(models.path(), &["a", "b"], &runtime).await;
    let loads = runtime.memory().loads();
    infer(&loaded[0]).await;
    assert_eq!([&loaded[0], &loaded[1]].map(ModelHandle::is_loaded), [true; 2]);
    let memory = runtime.memory();
    assert_eq!((memory.held(), memory.loads() - loads), (80 << 20, 1));
}

#[tokio::test]
async fn a_load_that_lacks_memory_is_repeated_without_other_models() {
    // The fourth load is that of the model that gave way.
    let faults = crate::faults(&["--fault-out-of-memory-at-load=4"]);
    let (models, runtime) = (TempDir::new().unwrap(), limited(100, faults));
    let loaded = load_each(models.path(), &["a", "b", "c"], &runtime).await;
    infer(&loaded[0]).await;
    let are_loaded: Vec<_> = loaded.iter().map(ModelHandle::is_loaded).collect();
    assert_eq!(are_loaded, [true, false, false]);
    infer(&loaded[1]).await;
    assert_eq!(runtime.memory().held(), 80 << 20, "others are admitted again");
}

/// Copies the tiny pipelines, and lets `sd-inpaint` say that it needs so many MiB.
fn pipelines(mib: u32) -> TempDir {
    let models = copy(&repository().join("models/tiny"));
    let manifest = models.path().join("sd-inpaint/model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("\n\n", &format!("\nmemory_mib = {mib}\n\n"), 1)).unwrap();
    models
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_model_comes_back_before_the_repeated_run_has_ended() {
    for is_cancelled in [false, true] {
        let faults = crate::faults(&["--fault-out-of-memory-at-run=1"]);
        let (models, runtime) = (pipelines(40), limited(100, faults));
        let pipeline = load(models.path(), "sd-inpaint", &runtime).await.unwrap();
        let other = load_each(models.path(), &["other"], &runtime).await.remove(0);
        let (sender, mut outputs) = tokio::sync::mpsc::unbounded_channel();
        let (rt, cancel) = (tokio::runtime::Handle::current(), CancellationToken::new());
        let is_first = AtomicBool::new(true);
        let progress = {
            let (other, memory, cancel) = (other.clone(), runtime.memory().clone(), cancel.clone());
            move |_| {
                // The first run ends before its first step, so this is the repeated one.
                if !is_first.swap(false, Ordering::SeqCst) {
                    return;
                }
                assert!(!other.is_loaded());
                let (again, sender) = (other.clone(), sender.clone());
                rt.spawn(async move { sender.send(infer(&again).await) });
                std::thread::sleep(Duration::from_millis(200));
                assert!(!other.is_loaded(), "it takes the room of the run");
                assert_eq!(memory.held(), 100 << 20);
                if is_cancelled {
                    cancel.cancel();
                }
            }
        };
        let control = PaintControl { progress: Arc::new(progress), cancel };
        let mode = pipeline.task().modes()[0];
        let painting = sample_painting(pipeline.task().canvas().unwrap(), mode);
        assert_eq!(pipeline.paint(painting, control).await.is_err(), is_cancelled);
        let patience = Duration::from_secs(10);
        tokio::time::timeout(patience, outputs.recv()).await.unwrap().unwrap();
        assert!(pipeline.is_loaded() && other.is_loaded(), "both fit");
        assert_eq!(runtime.memory().held(), 80 << 20);
    }
}

#[tokio::test]
async fn a_pipeline_gives_way_and_comes_back() {
    let (models, runtime) = (pipelines(80), limited(100, RunFaults::default()));
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

#[tokio::test]
async fn a_pipeline_whose_files_were_replaced_comes_back_only_with_the_right_ones() {
    let (models, runtime) = (pipelines(80), limited(100, RunFaults::default()));
    let pipeline = load(models.path(), "sd-inpaint", &runtime).await.unwrap();
    let other = load_each(models.path(), &["other"], &runtime).await;
    assert!(!pipeline.is_loaded() && other[0].is_loaded());
    let folder = models.path().join("sd-inpaint");
    let file = folder.join(&Manifest::read(&folder).unwrap().files[0].file);
    let right = fs::read(&file).unwrap();
    let paint = || async {
        let control = PaintControl { progress: Arc::new(|_| {}), cancel: CancellationToken::new() };
        let mode = pipeline.task().modes()[0];
        let painting = sample_painting(pipeline.task().canvas().unwrap(), mode);
        pipeline.paint(painting, control).await
    };
    // The weights still open, and paint something else.
    fs::write(&file, [&right[..], b"\x1a\x00"].concat()).unwrap();
    for attempt in 1..=2 {
        assert!(paint().await.is_err(), "attempt {attempt} served other files");
    }
    fs::write(&file, right).unwrap();
    paint().await.unwrap();
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
    while !watcher.poll(Instant::now()).await {}
    let problem = registry.problems().pop().unwrap();
    assert_eq!(problem.step, LoadStep::Golden, "{problem}");
    assert!(!old.is_loaded(), "both do not fit, so the old one gave way for the check");
    let serving = registry.model_for(demand).await.unwrap();
    assert!(serving.is_same(&old));
    assert_eq!(infer(&serving).await, before, "its files are gone, but it still runs");
    assert!(serving.is_loaded());

    let good = Model { weight: 1.5, ..first };
    replace(models.path(), &good);
    while !watcher.poll(Instant::now()).await {}
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
