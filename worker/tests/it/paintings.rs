//! Paintings of different jobs that run as a batch on a CPU.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use retouch_catalog::FixMode;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Manifest;
use retouch_inference::painter::{PaintError, Painting};
use retouch_inference::registry::{
    ModelHandle, PaintControl, PaintResult, load_model, sample_painting,
};
use retouch_inference::session::{Batching, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{repository, settings};

/// Loads the tiny Stable Diffusion with batches of up to `most`.
async fn load(most: usize, faults: RunFaults) -> (Runtime, ModelHandle) {
    let batching = Batching { max_inputs: Some(most), wait: Duration::ZERO };
    let runtime = Runtime::start(settings(batching, faults)).unwrap();
    let manifest = Manifest::read(&repository().join("models/tiny/sd-inpaint")).unwrap();
    let model = load_model(manifest, runtime.clone(), |_| {}).await.unwrap();
    (runtime, model)
}

/// Returns how many runs a runtime has started.
fn runs(runtime: &Runtime) -> u64 {
    runtime.runs().start("the next").number() - 1
}

fn painting(model: &ModelHandle, seed: u64) -> Painting {
    let prompts = ["a red circle", "a blue circle", "make it blue"];
    let prompt = prompts[seed as usize % prompts.len()].to_owned();
    let mode = if seed.is_multiple_of(2) { FixMode::Edit } else { FixMode::Add };
    let sample = sample_painting(model.task().canvas().unwrap(), mode);
    Painting { seed, caption: prompt.clone(), prompt, ..sample }
}

type Painted = JoinHandle<Result<PaintResult, PaintError>>;

fn paint(model: &ModelHandle, painting: Painting, control: PaintControl) -> Painted {
    let model = model.clone();
    tokio::spawn(async move { model.paint(painting, control).await })
}

fn unwatched() -> PaintControl {
    PaintControl { progress: Arc::new(|_| {}), cancel: CancellationToken::new() }
}

/// Paints a first crop that ends only after the others have arrived. Returns the results of the others.
async fn paint_while_busy(
    model: &ModelHandle,
    others: Vec<(Painting, PaintControl)>,
) -> Vec<Result<PaintResult, PaintError>> {
    let (is_begun, are_sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let progress = {
        let (is_begun, are_sent) = (Arc::clone(&is_begun), Arc::clone(&are_sent));
        move |_| {
            is_begun.store(true, Ordering::SeqCst);
            while !are_sent.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    };
    let control = PaintControl { progress: Arc::new(progress), cancel: CancellationToken::new() };
    let first = paint(model, painting(model, 0), control);
    while !is_begun.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut painted = Vec::new();
    for (painting, control) in others {
        painted.push(paint(model, painting, control));
        // So that they arrive in this order.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    are_sent.store(true, Ordering::SeqCst);
    first.await.unwrap().unwrap();
    let mut results = Vec::new();
    for painted in painted {
        results.push(painted.await.unwrap());
    }
    results
}

/// Asserts that a crop was painted as it is alone, up to the order of summation.
async fn assert_same(alone: &ModelHandle, seed: u64, found: &PaintResult) {
    let expected = alone.paint(painting(alone, seed), unwatched()).await.unwrap().rgb;
    let pairs = expected.iter().zip(&found.rgb);
    let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    assert_eq!(expected.len(), found.rgb.len());
    assert!(worst <= 1, "painting {seed} differs by {worst}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_crops_that_line_up_run_as_a_batch_and_each_is_what_it_is_alone() {
    let (runtime, model) = load(3, RunFaults::default()).await;
    let (_, alone) = load(1, RunFaults::default()).await;
    assert_eq!((model.max_batch(), alone.max_batch()), (3, 1));
    let before = runs(&runtime);
    let steps: Vec<_> = (1..6).map(|_| Arc::new(AtomicU32::new(0))).collect();
    let others = (1..6).zip(&steps).map(|(seed, steps)| {
        let steps = Arc::clone(steps);
        let progress = Arc::new(move |_| {
            steps.fetch_add(1, Ordering::SeqCst);
        });
        let mut painting = painting(&model, seed);
        if seed == 2 {
            // Another size, so it waits for its turn.
            let (width, height) = (96, 64);
            painting.rgb = vec![90; width * height * 3];
            painting.hole = (0..width * height).map(|at| at % width > 48).collect();
            (painting.width, painting.height) = (width as u32, height as u32);
        }
        (painting, PaintControl { progress, cancel: CancellationToken::new() })
    });
    let painted = paint_while_busy(&model, others.collect()).await;
    for (seed, painted) in (1..6).zip(painted) {
        let painted = painted.unwrap();
        if seed == 2 {
            assert_eq!(painted.rgb.len(), 96 * 64 * 3);
        } else {
            assert_same(&alone, seed, &painted).await;
        }
    }
    let steps: Vec<_> = steps.iter().map(|steps| steps.load(Ordering::SeqCst)).collect();
    assert_eq!(steps, [4; 5]);
    // The first one, three in line (1, 3, 4), the wide one, and the last.
    assert_eq!(runs(&runtime) - before - 1, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crops_with_prompts_of_different_lengths_run_apart() {
    let (runtime, model) = load(3, RunFaults::default()).await;
    let before = runs(&runtime);
    let others = [1, 100, 1, 100].map(|words| {
        let caption = "flower ".repeat(words);
        (Painting { caption, ..painting(&model, 1) }, unwatched())
    });
    let painted = paint_while_busy(&model, others.into()).await;
    assert!(painted.iter().all(Result::is_ok));
    // The first one, the two short ones, and the two long ones.
    assert_eq!(runs(&runtime) - before - 1, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canceled_crop_leaves_its_batch() {
    let (runtime, model) = load(3, RunFaults::default()).await;
    let (_, alone) = load(1, RunFaults::default()).await;
    let before = runs(&runtime);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let canceling = PaintControl { progress: Arc::new(move |_| stop.cancel()), cancel };
    let others = vec![
        (painting(&model, 1), unwatched()),
        (painting(&model, 2), canceling),
        (painting(&model, 3), unwatched()),
    ];
    let painted = paint_while_busy(&model, others).await;
    assert!(matches!(painted[1], Err(PaintError::Canceled)), "{:?}", painted[1]);
    for (seed, painted) in [(1, &painted[0]), (3, &painted[2])] {
        assert_same(&alone, seed, painted.as_ref().unwrap()).await;
    }
    assert_eq!(runs(&runtime) - before - 1, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crops_that_lack_memory_together_are_painted_one_by_one() {
    // The first run is that of the first crop, the second that of the batch.
    let faults = crate::faults(&["--fault-out-of-memory-at-run=2"]);
    let (runtime, model) = load(3, faults).await;
    let (_, alone) = load(1, RunFaults::default()).await;
    let others = (1..4).map(|seed| (painting(&model, seed), unwatched()));
    let painted = paint_while_busy(&model, others.collect()).await;
    for (seed, painted) in (1..4).zip(painted) {
        assert_same(&alone, seed, &painted.unwrap()).await;
    }
    assert_eq!(runs(&runtime), 5);
}
