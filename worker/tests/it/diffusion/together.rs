//! Paintings whose steps line up, run as a batch: each is what it is alone.

use retouch_inference::diffusion::{BatchItem, NoiseSource};

use super::kept::keeping;
use super::*;

/// Paints together. `on_step` gets the place of the painting too.
fn paint_together(
    model: &mut SdInpaint,
    requests: &[Request],
    noises: Vec<Box<dyn NoiseSource>>,
    on_step: impl Fn(usize, StepState<'_>) -> ControlFlow<()>,
) -> Vec<Result<Generated, DiffusionError>> {
    paint_observed(model, requests, noises, on_step, &|| {})
}

fn paint_observed(
    model: &mut SdInpaint,
    requests: &[Request],
    noises: Vec<Box<dyn NoiseSource>>,
    on_step: impl Fn(usize, StepState<'_>) -> ControlFlow<()>,
    heartbeat: &dyn Fn(),
) -> Vec<Result<Generated, DiffusionError>> {
    let (mut noises, on_step) = (noises, &on_step);
    let mut callbacks: Vec<_> =
        (0..requests.len()).map(|place| move |step: StepState<'_>| on_step(place, step)).collect();
    let items = requests.iter().zip(&mut noises).zip(&mut callbacks);
    let items = items.map(|((request, noise), on_step)| BatchItem {
        request,
        noise: noise.as_mut(),
        on_step,
    });
    model.inpaint_together(items.collect(), heartbeat)
}

/// Paintings of 64 × 64 pixels that share nothing but size and steps. The second has no negative prompt.
fn paintings() -> [Request; 3] {
    let right = Array2::from_shape_fn((64, 64), |(_, x)| x > 40);
    [
        Request { eta: 1.0, ..request("a red flower") },
        Request { guidance: 1.0, ..request("a cat with sunglasses") },
        Request { guidance: 3.0, mask: right, negative_prompt: "a cat".to_owned(), ..request("") },
    ]
}

fn seeds() -> Vec<Box<dyn NoiseSource>> {
    (0..3).map(|seed| Box::new(SeededNoise::new(seed)) as Box<dyn NoiseSource>).collect()
}

/// Asserts that a painting is what it is alone, up to the order of summation.
fn assert_same(place: usize, found: &Generated, alone: &mut SdInpaint) {
    let expected = paint(alone, &paintings()[place], place as u64).expect("it paints alone");
    let worst = (&found.image - &expected.image).fold(0.0_f32, |worst, far| worst.max(far.abs()));
    println!("painting {place} differs from itself alone by {worst:.1e}");
    assert!(worst < 1e-4, "painting {place} differs by {worst:.1e}");
}

#[test]
fn each_painting_of_a_batch_is_what_it_is_alone() {
    for (folder, runtime) in [(sd(), runtime()), (sdxl(), runtime()), (sd(), keeping())] {
        let mut model = SdInpaint::open(&folder, &runtime).unwrap();
        let mut alone = SdInpaint::open(&folder, &runtime).unwrap();
        assert!(model.takes_batches());
        for _ in 0..2 {
            let go_on = |_, _: StepState<'_>| ControlFlow::Continue(());
            let made = paint_together(&mut model, &paintings(), seeds(), go_on);
            for (place, made) in made.into_iter().enumerate() {
                assert_same(place, &made.unwrap(), &mut alone);
            }
        }
    }
}

#[test]
fn a_canceled_painting_leaves_the_batch_and_the_others_go_on() {
    let mut model = SdInpaint::open(&sd(), &keeping()).unwrap();
    let mut alone = SdInpaint::open(&sd(), &runtime()).unwrap();
    let seen = std::cell::RefCell::new(Vec::new());
    let cancel = |place, StepState { index, .. }: StepState<'_>| {
        seen.borrow_mut().push((place, index));
        if (place, index) == (0, 1) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let made = paint_together(&mut model, &paintings(), seeds(), cancel);
    let [canceled, second, third] = <[_; 3]>::try_from(made).expect("three results");
    assert!(matches!(canceled, Err(DiffusionError::Canceled)));
    assert_same(1, &second.unwrap(), &mut alone);
    assert_same(2, &third.unwrap(), &mut alone);
    let steps = |of| seen.borrow().iter().filter(|(place, _)| *place == of).count();
    assert_eq!([steps(0), steps(1), steps(2)], [2, 4, 4]);
}

#[test]
fn a_batch_shows_progress_before_its_first_step_and_after_its_last() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let seen = std::cell::RefCell::new(String::new());
    let on_step = |place: usize, _: StepState<'_>| {
        if place == 0 {
            seen.borrow_mut().push('s');
        }
        ControlFlow::Continue(())
    };
    let heartbeat = || seen.borrow_mut().push('h');
    let made = paint_observed(&mut model, &paintings(), seeds(), on_step, &heartbeat);
    assert!(made.iter().all(Result::is_ok));
    assert_eq!(*seen.borrow(), "hhhsssshhh");
}

/// Noise that no net survives.
struct Endless;

impl NoiseSource for Endless {
    fn draw(&mut self, shape: &[usize]) -> Result<ArrayD<f32>, DiffusionError> {
        Ok(ArrayD::from_elem(shape, f32::INFINITY))
    }
}

#[test]
fn a_painting_that_is_not_finite_fails_alone() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let mut alone = SdInpaint::open(&sd(), &runtime()).unwrap();
    let mut noises = seeds();
    noises[1] = Box::new(Endless);
    let go_on = |_, _: StepState<'_>| ControlFlow::Continue(());
    let made = paint_together(&mut model, &paintings(), noises, go_on);
    let [first, failed, third] = <[_; 3]>::try_from(made).expect("three results");
    assert!(matches!(failed, Err(DiffusionError::NotFinite { part: "unet" })), "{failed:?}");
    assert_same(0, &first.unwrap(), &mut alone);
    assert_same(2, &third.unwrap(), &mut alone);
}

#[test]
fn a_painting_that_is_not_in_line_is_refused() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let mut alone = SdInpaint::open(&sd(), &runtime()).unwrap();
    let [first, ..] = paintings();
    let weaker = Request { strength: 0.5, ..first.clone() };
    let fewer = Request { steps: 3, ..first.clone() };
    let go_on = |_, _: StepState<'_>| ControlFlow::Continue(());
    let made = paint_together(&mut model, &[first, weaker, fewer], seeds(), go_on);
    let [first, weaker, fewer] = <[_; 3]>::try_from(made).expect("three results");
    assert_same(0, &first.unwrap(), &mut alone);
    for refused in [weaker, fewer] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("not in line with the first of its batch"), "{error}");
    }
}
