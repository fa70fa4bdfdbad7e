//! Batches on a CPU: what runs together, and what an input waits for.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ndarray::Array4;
use retouch_catalog::Factor;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::{Manifest, Task};
use retouch_inference::output::Output;
use retouch_inference::registry::{LoadStep, ModelHandle, StepReport, load_model};
use retouch_inference::session::{Batching, GpuSettings, Runtime, RuntimeSettings};
use retouch_inference::tensor::relative_difference;
use retouch_pixels::Limits;
use retouch_worker::pixel_pool::PixelPool;
use retouch_worker::tools::Settings;
use retouch_worker::tools::upscale::{Net, Upscaler, upscale};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::onnx::{Model, Tail};
use crate::process::picture;
use crate::{repository, settings};

/// Loads the tiny upscaler, which takes batches. `tile_memory_bytes` limits them.
async fn load(wait: Duration, tile_memory_bytes: Option<u64>) -> (Runtime, ModelHandle) {
    let batching = Batching { max_inputs: Some(4), wait };
    load_with(RuntimeSettings { tile_memory_bytes, ..settings(batching, RunFaults::default()) })
        .await
}

async fn load_with(settings: RuntimeSettings) -> (Runtime, ModelHandle) {
    let runtime = Runtime::start(settings).unwrap();
    let manifest = Manifest::read(&repository().join("models/tiny/upscale")).unwrap();
    let model = load_model(manifest, runtime.clone(), |_| {}).await.unwrap();
    (runtime, model)
}

/// Returns how many runs a runtime has started.
fn runs(runtime: &Runtime) -> u64 {
    runtime.runs().start("the next").number()
}

fn input(seed: usize, side: usize) -> Array4<u8> {
    Array4::from_shape_fn((1, side, side, 3), |(_, y, x, c)| {
        ((seed * 7 + c * 5 + y * 3 + x) % 11 * 23) as u8
    })
}

#[tokio::test]
async fn waiting_inputs_run_as_a_batch_and_each_gets_its_own_output() {
    let (batched, together) = load(Duration::from_millis(50), None).await;
    let manifest = Manifest::read(&repository().join("models/tiny/upscale")).unwrap();
    let alone = load_model(manifest, crate::runtime(), |_| {}).await.unwrap();
    // They are on their way until all are sent.
    let announcement = together.announce();
    let together = Arc::new(together);
    let before = runs(&batched);
    // Mixes two shapes, which cannot share a batch.
    let sides = [16, 16, 24, 16, 24, 16, 16, 16];
    let outputs = sides.iter().enumerate().map(|(seed, side)| {
        let (model, input) = (Arc::clone(&together), input(seed, *side));
        tokio::spawn(async move { model.infer(input).await.unwrap().output })
    });
    let outputs: Vec<_> = outputs.collect();
    for ((seed, side), run) in sides.iter().enumerate().zip(outputs) {
        let own = alone.infer(input(seed, *side)).await.unwrap().output;
        assert_eq!(run.await.unwrap(), own, "input {seed} of {side}");
    }
    drop(announcement);
    let started = runs(&batched) - before - 1;
    assert!(started < sides.len() as u64, "{started} runs for {} inputs", sides.len());
}

#[tokio::test]
async fn inputs_of_two_pictures_that_take_turns_fill_batches() {
    let (runtime, model) = load(Duration::from_secs(5), None).await;
    let before = runs(&runtime);
    let inputs: Vec<_> = (0..8).map(|seed| input(seed, [16, 24][seed % 2])).collect();
    infer_together(&model, &inputs).await;
    assert_eq!(runs(&runtime) - before - 1, 2, "one batch of four for each shape");
}

/// Runs inputs of two sizes, some of each at a time, for half a second. Returns how many runs of both sizes there were, and
/// how many of them prepared for another size.
async fn alternate(faults: &[&str]) -> (usize, usize) {
    const PREPARATION: Duration = Duration::from_millis(20);
    let (gpu, batching) =
        (GpuSettings { few_shapes: Some(true), ..GpuSettings::default() }, Batching::NONE);
    let faults = crate::faults(faults);
    let (_, model) = load_with(RuntimeSettings { gpu, ..settings(batching, faults) }).await;
    let until = Instant::now() + Duration::from_millis(500);
    let lanes = (0..6).map(|lane| {
        let model = model.clone();
        tokio::spawn(async move {
            let mut durations = Vec::new();
            while Instant::now() < until {
                durations.push(model.infer(input(lane, [16, 24][lane % 2])).await.unwrap().ran);
            }
            durations
        })
    });
    let lanes: Vec<_> = lanes.collect();
    let mut durations = Vec::new();
    for lane in lanes {
        durations.extend(lane.await.unwrap());
    }
    (durations.len(), durations.iter().filter(|ran| **ran >= PREPARATION).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_net_that_prepares_for_each_size_runs_several_inputs_of_one_size_in_a_row() {
    let (runs, preparations) = alternate(&["--fault-preparation-ms=20"]).await;
    // Taking turns input by input, every run would prepare.
    assert!(preparations >= 2, "both sizes run: {preparations} of {runs}");
    assert!(runs > 5 * preparations, "{preparations} of {runs} runs prepared");
}

#[tokio::test]
async fn batches_are_smaller_after_one_failed_whose_inputs_succeed_one_by_one() {
    let batching = Batching { max_inputs: Some(4), wait: Duration::from_secs(5) };
    // The first run is that of the batch.
    let faults = crate::faults(&["--fault-out-of-memory-at-run=1"]);
    let (runtime, model) = load_with(settings(batching, faults)).await;
    let inputs: Vec<_> = (0..4).map(|seed| input(seed, 16)).collect();
    let one_by_one = infer_together(&model, &inputs).await;
    let before = runs(&runtime);
    assert_eq!(before - 1, 5, "the batch, and each input");
    let together = infer_together(&model, &inputs).await;
    assert_eq!(runs(&runtime) - before - 1, 2, "two batches of two");
    assert_eq!(model.largest_batch(16, 16), 2);
    assert_eq!(together, one_by_one);
}

/// Loads a model with batches of up to `most`. Returns it with what the batch step found.
async fn load_batched(folder: &Path, most: usize) -> (Runtime, ModelHandle, String) {
    let batching = Batching { max_inputs: Some(most), wait: Duration::from_secs(5) };
    let runtime = Runtime::start(settings(batching, RunFaults::default())).unwrap();
    let found = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&found);
    let report = move |report: StepReport| {
        if report.step == LoadStep::Batch {
            *kept.lock().unwrap() = report.outcome.unwrap();
        }
    };
    let manifest = Manifest::read(folder).unwrap();
    let model = load_model(manifest, runtime.clone(), report).await.unwrap();
    let found = found.lock().unwrap().clone();
    (runtime, model, found)
}

/// Runs inputs at the same moment. Returns their outputs.
async fn infer_together(model: &ModelHandle, inputs: &[Array4<u8>]) -> Vec<Output> {
    let announcement = model.announce();
    let runs = inputs.iter().map(|input| {
        let (model, input) = (model.clone(), input.clone());
        tokio::spawn(async move { model.infer(input).await.unwrap().output })
    });
    let runs: Vec<_> = runs.collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(announcement);
    let mut outputs = Vec::new();
    for run in runs {
        outputs.push(run.await.unwrap());
    }
    outputs
}

/// Checks that up to `most` inputs of a model run together, and that each gets the output of its own run. `words` is what the
/// batch step finds.
async fn assert_runs_together(model: &Model, most: usize, words: &str) {
    let models = TempDir::new().unwrap();
    let inputs: Vec<_> = (0..5).map(|seed| input(seed, 32)).collect();
    let (folder, tail) = (model.write(models.path(), "made"), model.tail);
    let (runtime, model, found) = load_batched(&folder, 5).await;
    assert!(found.starts_with(words), "{tail:?}: {found}");
    assert_eq!(model.max_batch(), most, "{tail:?}: {found}");
    let alone = crate::load(&folder).await.unwrap();
    assert_eq!(alone.max_batch(), 1, "a CPU runs inputs one by one");
    for count in [1, 2, 5] {
        let before = runs(&runtime);
        let outputs = infer_together(&model, &inputs[..count]).await;
        let started = runs(&runtime) - before - 1;
        assert_eq!(started, count.div_ceil(most) as u64, "{tail:?}, {count} inputs");
        for (input, output) in inputs.iter().zip(outputs) {
            assert_eq!(alone.infer(input.clone()).await.unwrap().output, output, "{tail:?}");
        }
    }
}

#[tokio::test]
async fn a_batch_that_the_graph_fixes_at_1_is_opened_if_a_batch_gives_the_same_outputs() {
    for (tail, most, words) in [
        (Tail::None, 5, "opened the batch axis"),
        (Tail::Reshapes, 5, "opened the batch axis"),
        (Tail::Resizes, 5, "opened the batch axis"),
        (Tail::Mixes, 1, "takes one input at a time: a batch differs from single runs: "),
        (Tail::Squeezes, 1, "takes one input at a time: "),
    ] {
        assert_runs_together(&Model { tail, ..Model::new(1.0) }, most, words).await;
    }
}

#[tokio::test]
async fn a_batch_that_the_graph_leaves_open_is_used_only_if_it_gives_the_same_outputs() {
    for (tail, most, words) in [
        (Tail::None, 5, "takes batches as it is"),
        (Tail::Mixes, 1, "takes one input at a time: a batch differs from single runs: "),
        // Traced with one input, which the constants of its shapes still say.
        (Tail::Reshapes, 1, "takes one input at a time: "),
        (Tail::Squeezes, 1, "takes one input at a time: "),
    ] {
        assert_runs_together(&Model { tail, is_open: true, ..Model::new(1.0) }, most, words).await;
    }
}

#[tokio::test]
async fn with_few_shapes_a_run_takes_one_input_or_the_most() {
    let batching = Batching { max_inputs: Some(6), wait: Duration::from_secs(5) };
    let gpu = GpuSettings { few_shapes: Some(true), ..GpuSettings::default() };
    let settings = RuntimeSettings { gpu, ..settings(batching, RunFaults::default()) };
    let runtime = Runtime::start(settings).unwrap();
    let manifest = Manifest::read(&repository().join("models/tiny/upscale")).unwrap();
    let model = load_model(manifest.clone(), runtime.clone(), |_| {}).await.unwrap();
    let alone = load_model(manifest, crate::runtime(), |_| {}).await.unwrap();
    let inputs: Vec<_> = (0..6).map(|seed| input(seed, 16)).collect();
    // The fourth time in a row that six wait, they run together. Then three are enough, until too few wait as often.
    let waiting = [(6, 6), (6, 6), (6, 6), (6, 1), (3, 1), (2, 1), (1, 1), (1, 1), (2, 2)];
    for (waiting, started) in waiting {
        assert_runs(&runtime, [&model, &alone], &inputs[..waiting], started).await;
    }
}

/// Asserts that inputs start as many runs of a model, and give what they give alone.
async fn assert_runs(
    runtime: &Runtime,
    [model, alone]: [&ModelHandle; 2],
    inputs: &[Array4<u8>],
    started: u64,
) {
    let before = runs(runtime);
    let outputs = infer_together(model, inputs).await;
    assert_eq!(runs(runtime) - before - 1, started, "{} inputs", inputs.len());
    assert_eq!(outputs.len(), inputs.len());
    for (input, output) in inputs.iter().zip(outputs) {
        assert_eq!(alone.infer(input.clone()).await.unwrap().output, output, "{}", inputs.len());
    }
}

#[tokio::test]
async fn batches_of_a_cutout_net_have_a_session_and_keep_their_tensors() {
    let batching = Batching { max_inputs: Some(4), wait: Duration::from_secs(5) };
    let gpu =
        GpuSettings { few_shapes: Some(true), keep_tensors: Some(true), ..GpuSettings::default() };
    let settings = RuntimeSettings { gpu, ..settings(batching, RunFaults::default()) };
    let runtime = Runtime::start(settings).unwrap();
    let manifest = Manifest::read(&repository().join("models/tiny/segment")).unwrap();
    assert!(runtime.separates_batches(&manifest.task));
    let model = load_model(manifest.clone(), runtime.clone(), |_| {}).await.unwrap();
    let alone = load_model(manifest, crate::runtime(), |_| {}).await.unwrap();
    assert_eq!(model.max_batch(), 4);
    let inputs: Vec<_> = (0..4).map(|seed| input(seed, 32)).collect();
    // Twice each, so that the second run is on kept tensors. Half of a batch is enough for one.
    for (waiting, started) in [(1, 1), (1, 1), (4, 1), (4, 1), (3, 1), (2, 1), (1, 1)] {
        assert_runs(&runtime, [&model, &alone], &inputs[..waiting], started).await;
    }
}

#[tokio::test]
async fn u2netp_takes_batches() {
    let folder = repository().join("models/u2netp");
    let (_, model, found) = load_batched(&folder, 3).await;
    assert_eq!(model.max_batch(), 3, "{found}");
    let inputs: Vec<_> = (1..4).map(|seed| input(seed, 320)).collect();
    let outputs = infer_together(&model, &inputs).await;
    for (input, output) in inputs.into_iter().zip(outputs) {
        let alone = model.infer(input).await.unwrap().output;
        let difference = relative_difference(&alone.values(), &output.values());
        assert!(difference < 1e-4, "{difference}");
    }
}

#[tokio::test]
async fn an_input_waits_for_nothing_that_is_not_on_its_way() {
    let (_, model) = load(Duration::from_secs(30), None).await;
    let started = Instant::now();
    model.infer(input(1, 16)).await.unwrap();
    // It is announced, but never sent.
    let announcement = model.announce();
    let (run, ()) = tokio::join!(model.infer(input(1, 16)), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(announcement);
    });
    run.unwrap();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_input_waits_for_one_that_is_on_its_way() {
    let (runtime, model) = load(Duration::from_secs(30), None).await;
    let before = runs(&runtime);
    let announcement = model.announce();
    let (first, second) = tokio::join!(model.infer(input(1, 16)), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        model.infer_announced(announcement, input(2, 16)).await
    });
    let waited = (first.unwrap().waited, second.unwrap().waited);
    assert_eq!(runs(&runtime) - before - 1, 1, "{waited:?}");
}

#[tokio::test]
async fn a_batch_fits_into_the_memory_of_tiles() {
    let manifest = Manifest::read(&repository().join("models/tiny/upscale")).unwrap();
    let Task::Upscale(contract) = manifest.task else { panic!("another task") };
    let of_one = 16 * 16 * u64::from(contract.tiling.memory_bytes_per_pixel);
    for (memory, largest) in [(of_one / 2, 1), (of_one, 1), (of_one * 3, 3), (of_one * 99, 4)] {
        let (_, model) = load(Duration::ZERO, Some(memory)).await;
        assert_eq!(model.largest_batch(16, 16), largest);
    }
}

#[tokio::test]
async fn the_tiles_of_one_picture_fill_batches_across_its_bands() {
    let (runtime, model) = load(Duration::from_secs(5), None).await;
    let net = Upscaler::new(model).unwrap();
    // Six tiles in three bands of two.
    let side = 64;
    let file = Bytes::from(picture(2 * side, 3 * side));
    let before = runs(&runtime);
    let pixels = PixelPool::new(2).unwrap();
    let per_pixel = u64::from(net.contract().tiling.memory_bytes_per_pixel);
    let around = side + 2 * retouch_pixels::tile::COLOR_REACH;
    let tile_memory_bytes = u64::from(around * around) * per_pixel;
    let settings = Settings { limits: Limits::default(), tile_memory_bytes };
    let (out, mut parts) = mpsc::channel(1);
    let never = CancellationToken::new();
    let upscaling = upscale(file, Factor::X4, &net, &pixels, &settings, &never, |_| {}, out);
    let receiving = async {
        let mut png = Vec::new();
        while let Some(part) = parts.recv().await {
            png.extend_from_slice(&part);
        }
        png
    };
    let (upscaled, png) = tokio::join!(upscaling, receiving);
    upscaled.unwrap();
    let made = image::load_from_memory(&png).unwrap();
    assert_eq!((made.width(), made.height()), (8 * side, 12 * side));
    assert_eq!(runs(&runtime) - before - 1, 2, "four tiles, and then two");
}
