//! Text-guided inpainting with tiny nets of random weights, compared with vectors recorded from diffusers.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Array3, ArrayD};
use retouch_inference::diffusion::verify::{CaseReport, Precision, verify};
use retouch_inference::diffusion::{
    DiffusionError, Flux2Klein, Generated, MaskToLatents, Request, SdInpaint, SeededNoise,
    StepState,
};
use retouch_inference::session::Runtime;
use serde_json::Value;

use crate::{repository, runtime};

mod kept;
mod nets;
mod together;

fn sd() -> PathBuf {
    repository().join("models/tiny/sd-inpaint")
}

fn sdxl() -> PathBuf {
    repository().join("models/tiny/sdxl-inpaint")
}

fn flux() -> PathBuf {
    repository().join("models/tiny/flux2-klein")
}

fn assert_verified(model: &Path, reference: &Path, cases: usize) {
    assert_verified_on(&runtime(), model, reference, cases);
}

fn assert_verified_on(runtime: &Runtime, model: &Path, reference: &Path, cases: usize) {
    let reports = verify(model, reference, runtime).expect("the reference is complete").cases;
    let lines: Vec<String> = reports.iter().map(CaseReport::to_string).collect();
    let table = lines.join("\n");
    let worst = reports.iter().map(CaseReport::worst_difference).fold(0.0, f64::max);
    println!("{table}\nworst {worst:.1e}");
    assert!(reports.len() >= cases, "only {} cases:\n{table}", reports.len());
    assert!(reports.iter().all(CaseReport::passed), "\n{table}");
}

#[test]
fn stable_diffusion_paints_what_diffusers_paints() {
    assert_verified(&sd(), &sd().join("reference"), 17);
}

#[test]
fn every_scheduler_setting_acts_as_in_diffusers() {
    assert_verified(&sd(), &sd().join("reference-more"), 47);
}

#[test]
fn sdxl_paints_what_diffusers_paints() {
    // Six cases, the ids and hidden states of both encoders, and the pooled output.
    assert_verified(&sdxl(), &sdxl().join("reference"), 10);
}

/// The same nets exported in half precision.
fn half_sdxl() -> tempfile::TempDir {
    let model = copy(&sdxl());
    for part in fs::read_dir(sdxl().join("half")).expect("there is such a folder") {
        let part = part.expect("the folder can be read");
        let target = model.path().join(part.file_name()).join("model.onnx");
        fs::copy(part.path().join("model.onnx"), target).expect("files can be copied");
    }
    model
}

#[test]
fn an_export_in_half_precision_is_compared_as_one() {
    let model = half_sdxl();
    assert_verified(model.path(), &sdxl().join("reference"), 10);
    let report = verify(model.path(), &sdxl().join("reference"), &runtime()).unwrap();
    assert_eq!(report.precision, Precision::F16);
    let strict = Precision::F32.tolerance();
    let worst = report.cases.iter().map(CaseReport::worst_difference).fold(0.0, f64::max);
    assert!(worst > strict.latents, "half precision is not visible: {worst:.1e}");
}

#[test]
fn flux_paints_what_diffusers_paints() {
    assert_verified(&flux(), &flux().join("reference"), 2);
}

#[test]
fn flux_gets_timesteps_scaled_by_its_training() {
    let model = copy(&flux());
    let reference = flux().join("reference-500");
    let config = "scheduler_config.json";
    fs::copy(reference.join(config), model.path().join(config)).unwrap();
    assert_verified(model.path(), &reference, 1);
}

#[test]
fn a_flux_model_that_is_not_distilled_is_refused() {
    let model = copy(&flux());
    let index = model.path().join("model_index.json");
    let open = || Flux2Klein::open(model.path(), &runtime()).map(drop);
    fs::write(&index, r#"{"is_distilled": true}"#).unwrap();
    open().unwrap();
    for text in ["{}", r#"{"is_distilled": false}"#] {
        fs::write(&index, text).unwrap();
        let error = open().unwrap_err().to_string();
        assert!(error.contains("`is_distilled` is not true"), "{error}");
    }
}

/// Copies a folder, so that a test can modify it.
pub fn copy(folder: &Path) -> tempfile::TempDir {
    fn copy_into(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).expect("the folder can be read") {
            let entry = entry.expect("the folder can be read");
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            if path.is_dir() {
                fs::create_dir(&target).expect("the copy is new");
                copy_into(&path, &target);
            } else {
                fs::copy(&path, &target).expect("files can be copied");
            }
        }
    }
    let copy = tempfile::tempdir().expect("there is room for a copy");
    copy_into(folder, copy.path());
    copy
}

fn failures(model: &Path, reference: &Path) -> Vec<String> {
    let reports = verify(model, reference, &runtime()).expect("the reference is complete");
    reports.cases.into_iter().filter(|report| !report.passed()).map(|report| report.name).collect()
}

/// A copy of Stable Diffusion's reference with few cases.
fn few_cases(names: &[&str]) -> tempfile::TempDir {
    let reference = copy(&sd().join("reference"));
    let meta = reference.path().join("meta.json");
    let text = fs::read_to_string(&meta).expect("there is a meta.json");
    let mut fields: Value = serde_json::from_str(&text).expect("it is JSON");
    let cases = fields["cases"].as_object_mut().expect("it has cases");
    cases.retain(|name, _| names.contains(&name.as_str()));
    assert_eq!(cases.len(), names.len());
    fs::write(&meta, fields.to_string()).expect("the copy is ours");
    reference
}

#[test]
fn a_wrong_reference_fails() {
    let reference = few_cases(&["ddim_leading", "lcm4", "lcm4_nocfg"]);
    let file = |name: &str| reference.path().join(name);
    fs::copy(file("lcm4.npz"), file("lcm4_nocfg.npz")).unwrap();
    assert_eq!(failures(&sd(), reference.path()), ["lcm4_nocfg"]);

    let mut noise = fs::read(file("init_noise.npy")).unwrap();
    let end = noise.len() - 4;
    noise[end..].copy_from_slice(&3.0_f32.to_le_bytes());
    fs::write(file("init_noise.npy"), noise).unwrap();
    let failed = failures(&sd(), reference.path());
    assert_eq!(failed, ["unet_t501", "ddim_leading", "lcm4", "lcm4_nocfg"]);

    let reference = copy(&flux().join("reference"));
    let file = |name: &str| reference.path().join(name);
    fs::copy(file("klein4.npz"), file("klein10_strength06.npz")).unwrap();
    assert_eq!(failures(&flux(), reference.path()), ["klein10_strength06"]);
}

#[test]
fn a_refused_setting_fails_only_its_case() {
    let reference = few_cases(&["ddim_leading", "lcm4"]);
    let meta = reference.path().join("meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    fs::write(&meta, text.replacen(r#""clip_sample":false"#, r#""clip_sample":true"#, 1)).unwrap();
    let reports = verify(&sd(), reference.path(), &runtime()).unwrap().cases;
    let failed: Vec<_> = reports.iter().filter(|report| !report.passed()).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0].to_string().contains("`clip_sample` is true"), "{}", failed[0]);
}

#[test]
fn a_recording_with_another_scheduler_says_so() {
    let reference = few_cases(&["ddim_leading", "dpmpp2m_leading", "lcm4"]);
    let meta = reference.path().join("meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    let text = text.replacen("DPMSolverMultistepScheduler", "PNDMScheduler", 1);
    fs::write(&meta, text.replacen("LCMScheduler", "HeunDiscreteScheduler", 1)).unwrap();
    let reports = verify(&sd(), reference.path(), &runtime()).unwrap().cases;
    let failed: Vec<_> =
        reports.iter().filter(|report| !report.passed()).map(ToString::to_string).collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(
        failed[0].contains("recorded with PNDMScheduler, but Retouch runs dpm-solver++"),
        "{failed:?}"
    );
    assert!(failed[0].contains("DPMSolverMultistepScheduler.from_config"), "{failed:?}");
    assert!(
        failed[1].contains("recorded with HeunDiscreteScheduler, which is not implemented"),
        "{failed:?}"
    );
}

#[test]
fn a_model_with_any_scheduler_can_be_compared() {
    let model = copy(&sd());
    let file = model.path().join("scheduler/scheduler_config.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("DDIMScheduler", "HeunDiscreteScheduler")).unwrap();
    assert_refused(model.path(), "`sampling.scheduler` = \"ddim\"");
    let reference = few_cases(&["ddim_leading"]);
    assert_eq!(failures(model.path(), reference.path()), Vec::<String>::new());
}

#[test]
fn an_incomplete_reference_is_an_error() {
    let reference = copy(&sd().join("reference"));
    let error_without = |name: &str| {
        let path = reference.path().join(name);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let error = verify(&sd(), reference.path(), &runtime()).unwrap_err().to_string();
        fs::write(&path, bytes).unwrap();
        assert!(error.contains(name), "{error}");
    };
    for name in ["meta.json", "image.png", "mask.png", "init_noise.npy", "tcd4_eta03.npz"] {
        error_without(name);
    }
    fs::write(reference.path().join("meta.json"), r#"{"cases": {}}"#).unwrap();
    let error = verify(&sd(), reference.path(), &runtime()).unwrap_err().to_string();
    assert!(error.contains("no cases"), "{error}");
}

/// Returns a request to repaint the center of a picture of 64 × 64 pixels.
fn request(prompt: &str) -> Request {
    Request {
        image: Array3::from_shape_fn((64, 64, 3), |(y, x, c)| (x * 3 + y * (c + 1)) as u8),
        mask: Array2::from_shape_fn((64, 64), |(y, x)| {
            (16..48).contains(&y) && (16..48).contains(&x)
        }),
        prompt: prompt.to_owned(),
        negative_prompt: String::new(),
        steps: 4,
        guidance: 7.5,
        strength: 1.0,
        eta: 0.0,
        mask_to_latents: MaskToLatents::MaxPool,
        reference: None,
    }
}

fn paint(model: &mut SdInpaint, request: &Request, seed: u64) -> Result<Generated, DiffusionError> {
    model.inpaint(request, &mut SeededNoise::new(seed), &mut |_| ControlFlow::Continue(()))
}

fn assert_refused(model: &Path, reason: &str) {
    let Err(error) = SdInpaint::open(model, &runtime()) else {
        panic!("accepted instead of: {reason}")
    };
    assert!(error.to_string().contains(reason), "{error}");
}

fn mean_difference(a: &Array3<f32>, b: &Array3<f32>) -> f32 {
    (a - b).mapv(f32::abs).mean().expect("pictures have pixels") * 255.0
}

#[test]
fn seed_prompt_and_strength_determine_the_picture() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let flower = paint(&mut model, &request("a red flower"), 1).unwrap().image;
    assert_eq!(flower.dim(), (64, 64, 3));
    assert_eq!(flower, paint(&mut model, &request("a red flower"), 1).unwrap().image);
    let other_seed = paint(&mut model, &request("a red flower"), 2).unwrap().image;
    assert!(mean_difference(&flower, &other_seed) > 5.0);
    let cat = paint(&mut model, &request("a cat with sunglasses"), 1).unwrap().image;
    assert!(mean_difference(&flower, &cat) > 5.0);
    let weaker = Request { strength: 0.5, ..request("a red flower") };
    let weaker = paint(&mut model, &weaker, 1).unwrap().image;
    assert!(mean_difference(&flower, &weaker) > 1.0);
}

#[test]
fn without_guidance_the_negative_prompt_is_not_run() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let unguided = Request { guidance: 1.0, ..request("a red flower") };
    let negative = Request { negative_prompt: "blurry".to_owned(), ..unguided.clone() };
    let first = paint(&mut model, &unguided, 1).unwrap().image;
    assert_eq!(first, paint(&mut model, &negative, 1).unwrap().image);
    let negative = Request { guidance: 7.5, ..negative };
    let guided = paint(&mut model, &request("a red flower"), 1).unwrap().image;
    assert!(mean_difference(&guided, &paint(&mut model, &negative, 1).unwrap().image) > 1.0);
}

#[test]
fn a_prompt_is_embedded_once_until_it_changes() {
    for folder in [sd(), sdxl()] {
        let mut model = SdInpaint::open(&folder, &runtime()).unwrap();
        let cut = request(&"flower ".repeat(400));
        let mut embeds = |request: &Request| {
            let before = model.run_times()[1];
            assert_eq!(before.0, "text_encoder");
            let painted = paint(&mut model, request, 1).unwrap();
            (model.run_times()[1].1 > before.1, painted)
        };
        let (is_embedded, first) = embeds(&cut);
        assert!(is_embedded);
        let (is_embedded, again) = embeds(&cut);
        assert!(!is_embedded);
        assert_eq!(first.image, again.image);
        assert!(again.prompt_tokens_cut > 0);
        assert_eq!(first.prompt_tokens_cut, again.prompt_tokens_cut);
        assert!(embeds(&Request { negative_prompt: "blurry".to_owned(), ..cut.clone() }).0);
        // Without guidance there is one text instead of two.
        assert!(embeds(&Request { guidance: 1.0, ..cut.clone() }).0);
        assert!(embeds(&request("a cat")).0);
        assert!(!embeds(&cut).0);
    }
}

#[test]
fn cut_tokens_are_counted() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let request = Request { steps: 1, ..request(&"flower ".repeat(400)) };
    assert!(paint(&mut model, &request, 1).unwrap().prompt_tokens_cut > 0);
}

#[test]
fn the_end_of_a_long_prompt_counts() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let mut painted = |end: &str| {
        let request = request(&("flower ".repeat(100) + end));
        let painted = paint(&mut model, &request, 1).unwrap();
        assert_eq!(painted.prompt_tokens_cut, 0);
        painted.image
    };
    assert!(mean_difference(&painted("with a cat"), &painted("in the snow")) > 0.5);
    let text = "flower ".repeat(100);
    assert_eq!(model.windows("", &text, 7.5).unwrap(), 2);
    assert_eq!(model.windows(&text, "flower", 7.5).unwrap(), 2, "both texts get as many");
    assert_eq!(model.windows(&text, "flower", 1.0).unwrap(), 1, "the negative one is not used");
    // Its net takes texts of one window.
    let mut model = SdInpaint::open(&sdxl(), &runtime()).unwrap();
    assert_eq!(model.windows("", &text, 7.5).unwrap(), 1);
    assert!(paint(&mut model, &request(&text), 1).unwrap().prompt_tokens_cut > 0);
}

#[test]
fn a_canceled_run_ends_after_the_current_step() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let mut seen = Vec::new();
    let mut on_step = |StepState { index, total, latents }: StepState<'_>| {
        assert_eq!(latents.shape(), [1, 4, 8, 8]);
        seen.push((index, total));
        if index == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ended = model.inpaint(&request("a red flower"), &mut SeededNoise::new(1), &mut on_step);
    assert!(matches!(ended, Err(DiffusionError::Canceled)));
    assert_eq!(seen, [(0, 4), (1, 4)]);
}

#[test]
fn other_picture_sizes_work() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let mut wide = request("a red flower");
    wide.image = Array3::from_elem((48, 96, 3), 90);
    wide.mask = Array2::from_shape_fn((48, 96), |(_, x)| x > 50);
    assert_eq!(paint(&mut model, &wide, 1).unwrap().image.dim(), (48, 96, 3));
}

#[test]
fn invalid_requests_are_refused() {
    let mut model = SdInpaint::open(&sd(), &runtime()).unwrap();
    let good = request("a red flower");
    let refused = [
        (
            Request { image: Array3::zeros((60, 64, 3)), ..good.clone() },
            "the mask is 64 × 64 pixels, but the picture is 64 × 60",
        ),
        (
            Request {
                image: Array3::zeros((60, 64, 3)),
                mask: Array2::from_elem((60, 64), true),
                ..good.clone()
            },
            "the picture is 64 × 60 pixels, but both sides must be multiples of 16",
        ),
        (Request { mask: Array2::from_elem((64, 64), false), ..good.clone() }, "the mask is empty"),
        (Request { steps: 0, ..good.clone() }, "steps must be at least 1"),
        (Request { steps: 2000, ..good.clone() }, "2000 steps"),
        (Request { strength: 0.1, ..good.clone() }, "leaves no step of 4"),
        (Request { strength: f64::NAN, ..good.clone() }, "strength is NaN"),
        (Request { eta: 2.0, ..good.clone() }, "eta is 2"),
        (Request { guidance: f32::INFINITY, ..good }, "guidance is inf"),
    ];
    for (request, reason) in refused {
        let error = paint(&mut model, &request, 1).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_prompt_requires_a_text_encoder() {
    let mut model = Flux2Klein::open(&flux(), &runtime()).unwrap();
    let on_step = &mut |_: StepState<'_>| ControlFlow::Continue(());
    let error =
        model.inpaint(&request("a red flower"), &mut SeededNoise::new(1), on_step).unwrap_err();
    assert!(error.to_string().starts_with("text_encoder: "), "{error}");
}

#[test]
fn flux_gives_the_same_picture_for_the_same_seed() {
    let mut model = Flux2Klein::open(&flux(), &runtime()).unwrap();
    let prompt = ArrayD::from_elem(vec![1, 12, 24], 0.3);
    // The tiny transformer's graph fixes the number of latents.
    let request = Request {
        image: Array3::from_elem((96, 96, 3), 90),
        mask: Array2::from_shape_fn((96, 96), |(_, x)| x > 50),
        ..request("")
    };
    let mut paint = |seed| {
        let on_step = &mut |_: StepState<'_>| ControlFlow::Continue(());
        let noise = &mut SeededNoise::new(seed);
        model.inpaint_embedded(&request, &prompt, noise, on_step).unwrap().image
    };
    assert_eq!(paint(1), paint(1));
    assert!(mean_difference(&paint(1), &paint(2)) > 1.0);
}

/// At full strength a run starts from noise, so in the first step only the reference can tell the net what is under the
/// mask.
#[test]
fn flux_does_not_see_what_its_reference_hides() {
    let mut model = Flux2Klein::open(&flux(), &runtime()).unwrap();
    let prompt = ArrayD::from_elem(vec![1, 12, 24], 0.3);
    let is_inside = |y: usize, x: usize| (16..80).contains(&y) && (16..80).contains(&x);
    let picture = |inside: u8| {
        Array3::from_shape_fn((96, 96, 3), |(y, x, _)| if is_inside(y, x) { inside } else { 90 })
    };
    let mut first_step = |inside: u8, reference: Option<u8>| {
        let request = Request {
            image: picture(inside),
            mask: Array2::from_shape_fn((96, 96), |(y, x)| is_inside(y, x)),
            reference: reference.map(picture),
            ..request("")
        };
        let mut made = Vec::new();
        let mut on_step = |step: StepState<'_>| {
            let latents = step.latents.outer_iter().next().expect("one picture").to_owned();
            // Latents are 6 × 6 tokens; of these, 4 × 4 are wholly under the mask.
            let rows = latents.outer_iter().enumerate();
            let masked = rows.filter(|(at, _)| is_inside(at / 6 * 16 + 8, at % 6 * 16 + 8));
            made =
                masked.flat_map(|(_, token)| token.iter().copied().collect::<Vec<_>>()).collect();
            ControlFlow::Break(())
        };
        let noise = &mut SeededNoise::new(1);
        let ended = model.inpaint_embedded(&request, &prompt, noise, &mut on_step);
        assert!(matches!(ended, Err(DiffusionError::Canceled)));
        assert_eq!(made.len(), 16 * 16, "16 tokens of 16 channels");
        made
    };
    let worst = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).fold(0.0_f32, |worst, (a, b)| worst.max((a - b).abs()))
    };
    let (dark, bright) = (first_step(10, None), first_step(240, None));
    let seen = worst(&dark, &bright);
    println!("the pixels under the mask change the first step by {seen:.2e}");
    assert!(seen > 1e-4, "{seen:.2e}");
    assert_eq!(first_step(10, Some(128)), first_step(240, Some(128)));
    assert_ne!(first_step(10, Some(128)), dark);
    assert_eq!(first_step(10, Some(10)), dark, "a picture is its own reference");
}
