//! Tensors of the denoising nets kept on the device between steps, tested with the CPU as the device: only the location of
//! the memory differs.

use retouch_inference::faults::RunFaults;
use retouch_inference::session::{Batching, GpuSettings, Runtime, RuntimeSettings};

use super::*;
use crate::settings;

pub fn keeping() -> Runtime {
    // On a CPU, nothing records graphs.
    let gpu = GpuSettings { keep_tensors: Some(true), graphs: true, ..GpuSettings::default() };
    let settings = settings(Batching::NONE, RunFaults::default());
    Runtime::start(RuntimeSettings { gpu, ..settings }).expect("ONNX Runtime starts")
}

#[test]
fn pipelines_that_keep_tensors_paint_what_diffusers_paints() {
    assert_verified_on(&keeping(), &sd(), &sd().join("reference"), 17);
    assert_verified_on(&keeping(), &sdxl(), &sdxl().join("reference"), 10);
    let half = half_sdxl();
    assert_verified_on(&keeping(), half.path(), &sdxl().join("reference"), 10);
    assert_verified_on(&keeping(), &flux(), &flux().join("reference"), 2);
}

/// A picture of `width` × 64 pixels to repaint on the right.
fn wide(width: usize, prompt: &str) -> Request {
    Request {
        image: Array3::from_shape_fn((64, width, 3), |(y, x, c)| (x * 2 + y * (c + 1)) as u8),
        mask: Array2::from_shape_fn((64, width), |(_, x)| x > width / 2),
        ..request(prompt)
    }
}

#[test]
fn each_set_of_shapes_keeps_its_tensors_and_every_painting_gets_its_own_inputs() {
    for folder in [sd(), sdxl()] {
        let mut alone = SdInpaint::open(&folder, &runtime()).unwrap();
        let mut kept = SdInpaint::open(&folder, &keeping()).unwrap();
        let unguided = |request| Request { guidance: 1.0, ..request };
        let paintings = [
            wide(64, "a red flower"),
            // The same shapes with another prompt, mask, picture, or guidance.
            wide(64, "a cat with sunglasses"),
            request("a cat with sunglasses"),
            Request { guidance: 3.0, ..request("a cat with sunglasses") },
            // Other shapes: one row instead of two, and another size.
            unguided(request("a red flower")),
            wide(96, "a red flower"),
            wide(64, "a red flower"),
        ];
        for (seed, request) in paintings.iter().enumerate() {
            let seed = seed as u64;
            let expected = paint(&mut alone, request, seed).unwrap().image;
            let found = paint(&mut kept, request, seed).unwrap().image;
            assert_eq!(found, expected, "painting {seed} of {}", folder.display());
        }
        assert_eq!((alone.kept_shapes(), kept.kept_shapes()), (0, 3));
    }
}

#[test]
fn the_least_recently_used_shapes_make_room() {
    let mut alone = SdInpaint::open(&sd(), &runtime()).unwrap();
    let mut kept = SdInpaint::open(&sd(), &keeping()).unwrap();
    for width in (32..).step_by(16).take(10).chain([32]) {
        let request = wide(width, "a red flower");
        let expected = paint(&mut alone, &request, 1).unwrap().image;
        assert_eq!(paint(&mut kept, &request, 1).unwrap().image, expected, "{width}");
    }
    assert_eq!(kept.kept_shapes(), 8);
}

#[test]
fn flux_keeps_its_tensors() {
    let mut alone = Flux2Klein::open(&flux(), &runtime()).unwrap();
    let mut kept = Flux2Klein::open(&flux(), &keeping()).unwrap();
    for (seed, gray) in [(1, 90), (2, 200), (3, 90)] {
        let prompt = ArrayD::from_elem(vec![1, 12, 24], f32::from(gray) / 200.0);
        let request = Request {
            image: Array3::from_elem((96, 96, 3), gray),
            mask: Array2::from_shape_fn((96, 96), |(_, x)| x > 50),
            ..request("")
        };
        let [expected, found] = [&mut alone, &mut kept].map(|model| {
            let on_step = &mut |_: StepState<'_>| ControlFlow::Continue(());
            let noise = &mut SeededNoise::new(seed);
            model.inpaint_embedded(&request, &prompt, noise, on_step).unwrap().image
        });
        assert_eq!(found, expected, "seed {seed}");
    }
    assert_eq!((alone.kept_shapes(), kept.kept_shapes()), (0, 1));
}

#[test]
fn a_net_that_never_gives_the_same_output_runs_without_kept_tensors() {
    let folder = copy(&sd());
    fs::write(folder.path().join("unet/model.onnx"), nets::random_unet()).unwrap();
    let mut model = SdInpaint::open(folder.path(), &keeping()).unwrap();
    let image = paint(&mut model, &request("a red flower"), 1).unwrap().image;
    assert_eq!((image.dim(), model.kept_shapes()), ((64, 64, 3), 0));
}
