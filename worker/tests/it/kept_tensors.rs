//! Tensors kept on the device between runs, tested with the CPU as the device: only the location of the memory differs.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;

use ndarray::Array4;
use retouch_inference::faults::RunFaults;
use retouch_inference::session::{Batching, GpuSettings, Runtime, RuntimeSettings, Session};
use retouch_inference::tensor::Tensors;

use crate::{repository, settings};

fn open(gpu: GpuSettings) -> Session {
    let settings = settings(Batching::NONE, RunFaults::default());
    let runtime = Runtime::start(RuntimeSettings { gpu, ..settings }).unwrap();
    let model = repository().join("models/tiny/upscale/upscale.onnx");
    runtime.open_net(&fs::read(model).unwrap(), &[]).unwrap()
}

fn keeping() -> Session {
    open(GpuSettings { keep_tensors: Some(true), graphs: true, ..GpuSettings::default() })
}

fn run(session: &mut Session, input: &Array4<f32>) -> Array4<f32> {
    let (from, to) = (session.inputs()[0].name.clone(), session.outputs()[0].name.clone());
    session.run(Tensors::plain(&from, &to), input).unwrap()
}

fn input(seed: usize, (batch, rows, columns): (usize, usize, usize)) -> Array4<f32> {
    Array4::from_shape_fn((batch, 3, rows, columns), |(n, c, y, x)| {
        ((seed * 7 + n * 13 + c * 5 + y * 3 + x) % 17) as f32 / 17.0
    })
}

#[test]
fn a_repeated_shape_keeps_its_tensors_and_gives_the_same_results() {
    let (mut alone, mut kept) = (open(GpuSettings::default()), keeping());
    let shapes = [(1, 16, 16), (2, 16, 16), (1, 24, 8)];
    for seed in 0..4 {
        for shape in shapes {
            let input = input(seed, shape);
            assert_eq!(run(&mut kept, &input), run(&mut alone, &input), "{shape:?}, seed {seed}");
        }
    }
    assert_eq!((alone.kept_shapes(), kept.kept_shapes()), (0, shapes.len()));
}

#[test]
fn a_further_shape_replaces_the_least_recently_used_one() {
    let (mut alone, mut kept) = (open(GpuSettings::default()), keeping());
    for side in 8..20 {
        for seed in 0..4 {
            let input = input(seed, (1, side, side));
            assert_eq!(run(&mut kept, &input), run(&mut alone, &input), "{side}, seed {seed}");
        }
    }
    assert_eq!(kept.kept_shapes(), 8);
}

#[test]
fn rarely_repeated_shapes_keep_no_tensors() {
    let mut kept = keeping();
    for seed in 0..3 {
        for side in 8..20 {
            run(&mut kept, &input(seed, (1, side, side)));
        }
    }
    assert_eq!(kept.kept_shapes(), 0);
}

#[test]
fn a_session_still_works_after_a_refused_input() {
    let mut kept = keeping();
    let good = input(1, (1, 16, 16));
    let output = run(&mut kept, &good);
    assert_eq!((run(&mut kept, &good), kept.kept_shapes()), (output.clone(), 1));
    let (from, to) = (kept.inputs()[0].name.clone(), kept.outputs()[0].name.clone());
    let five_channels = Array4::zeros((1, 5, 16, 16));
    kept.run(Tensors::plain(&from, &to), &five_channels).unwrap_err();
    assert_eq!(run(&mut kept, &good), output);
}
