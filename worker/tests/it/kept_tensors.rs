//! Tensors kept between runs, tested on a CPU, where they are in ordinary memory and nothing is recorded.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;

use ndarray::{Array4, s};
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Manifest;
use retouch_inference::output::Output;
use retouch_inference::session::{Batching, GpuSettings, PictureNet, Runtime, RuntimeSettings};

use crate::{repository, settings};

fn open(gpu: GpuSettings) -> PictureNet {
    let settings = settings(Batching::NONE, RunFaults::default());
    let runtime = Runtime::start(RuntimeSettings { gpu, ..settings }).unwrap();
    let folder = repository().join("models/tiny/upscale");
    let manifest = Manifest::read(&folder).unwrap();
    let (task, file) =
        (manifest.task.net().unwrap(), fs::read(folder.join("upscale.onnx")).unwrap());
    runtime.open_net(&file, &[], &task.tensors(), &task.input_shapes(1, 1 << 30)).unwrap()
}

fn keeping() -> PictureNet {
    open(GpuSettings { keep_tensors: Some(true), ..GpuSettings::default() })
}

fn run(net: &mut PictureNet, input: &Array4<u8>) -> Output {
    net.run(input).unwrap()
}

fn input(seed: usize, (batch, rows, columns): (usize, usize, usize)) -> Array4<u8> {
    Array4::from_shape_fn((batch, rows, columns, 3), |(n, y, x, c)| {
        ((seed * 7 + n * 13 + c * 5 + y * 3 + x) % 17 * 15) as u8
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
fn outputs_that_are_still_read_stay_as_they_are() {
    let (mut alone, mut kept) = (open(GpuSettings::default()), keeping());
    let inputs: Vec<_> = (0..10).map(|seed| input(seed, (2, 16, 16))).collect();
    // All of them at once need more memory than the net keeps.
    let outputs: Vec<_> = inputs.iter().map(|input| run(&mut kept, input)).collect();
    for (input, output) in inputs.iter().zip(&outputs) {
        assert_eq!(*output, run(&mut alone, input));
    }
    drop(outputs);
    let pictures: Vec<_> = inputs.iter().map(|input| input.slice(s![..1, .., .., ..])).collect();
    let [first, second, third] = [0, 1, 2].map(|at| {
        let pair = [pictures[at].view(), pictures[at + 1].view()];
        kept.run_each(&pair, 2).unwrap().swap_remove(1)
    });
    for (output, at) in [(first, 1), (second, 2), (third, 3)] {
        assert_eq!(output, run(&mut alone, &pictures[at].to_owned()), "{at}");
    }
    assert_eq!(kept.kept_shapes(), 1);
}

#[test]
fn an_output_outlives_its_net() {
    let mut kept = keeping();
    let picture = input(1, (1, 16, 16));
    let outputs = [(); 3].map(|()| run(&mut kept, &picture));
    assert_eq!(kept.kept_shapes(), 1);
    drop(kept);
    assert_eq!(outputs[2], outputs[0]);
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
    kept.run(&Array4::zeros((1, 16, 16, 5))).unwrap_err();
    assert_eq!(run(&mut kept, &good), output);
}
