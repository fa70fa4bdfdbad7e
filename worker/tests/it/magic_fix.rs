//! Magic Fix: pixels that must not change, each kind of model, and whole jobs through a worker process.

use std::fs;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use image::{DynamicImage, GrayImage, ImageFormat, Luma, RgbaImage};
use retouch_catalog::{FixMode, Tier, Tool};
use retouch_core::JobId;
use retouch_core::jobs::{self, JobState, NewJob};
use retouch_core::results;
use retouch_inference::registry::ModelHandle;
use retouch_pixels::decode::decode;
use retouch_pixels::{Limits, PixelError};
use retouch_prompts::Prompt;
use retouch_standins::testing::{ISSUER, sign_in};
use retouch_worker::pixel_pool::PixelPool;
use retouch_worker::tools::magic_fix::{FixModels, FixRequest, Fixed, ProgressFn, magic_fix};
use retouch_worker::tools::{Settings, ToolError};
use sqlx::PgPool;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::process::Services;
use crate::{altered, copy, load, repository};

const TIMEOUT: Duration = Duration::from_mins(1);

pub fn png(picture: impl Into<DynamicImage>) -> Bytes {
    let mut bytes = Cursor::new(Vec::new());
    picture.into().write_to(&mut bytes, ImageFormat::Png).expect("a PNG in memory");
    bytes.into_inner().into()
}

/// Returns stripes with a red disc in the middle, half transparent on the left.
pub fn picture(width: u32, height: u32) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height / 2));
        let stripe = if (x + y) % 16 < 8 { [60, 120, 90] } else { [160, 140, 70] };
        let [r, g, b] = if dx * dx + dy * dy < 14 * 14 { [250, 20, 30] } else { stripe };
        image::Rgba([r, g, b, if x < 8 { 128 } else { 255 }])
    })
}

/// Returns a mask with a disc of this radius in the middle.
pub fn disc(width: u32, height: u32, radius: u32) -> Bytes {
    png(GrayImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height / 2));
        Luma([if dx * dx + dy * dy < radius * radius { 255 } else { 0 }])
    }))
}

const SETTINGS: Settings =
    Settings { limits: Limits { max_dimension: 6000 }, tile_memory_bytes: u64::MAX };

async fn tiny(name: &str) -> ModelHandle {
    load(&repository().join("models/tiny").join(name)).await.expect("it loads")
}

pub async fn fix(
    input: Bytes,
    mask: Bytes,
    prompt: &str,
    models: &FixModels,
) -> Result<Fixed, ToolError> {
    fix_with(input, mask, false, prompt, models).await
}

async fn fix_with(
    input: Bytes,
    mask: Bytes,
    is_mask_exact: bool,
    prompt: &str,
    models: &FixModels,
) -> Result<Fixed, ToolError> {
    let prompt = Prompt::parse(prompt).expect("a prompt");
    let request = FixRequest { mode: prompt.mode(), prompt, mask, is_mask_exact, seed: 5 };
    let pixels = PixelPool::new(2).expect("threads");
    let (cancel, on_progress): (_, ProgressFn) = (CancellationToken::new(), Arc::new(|_, _, _| {}));
    magic_fix(input, request, models, &pixels, &SETTINGS, &cancel, &on_progress).await
}

pub fn only(bound: ModelHandle) -> FixModels {
    FixModels { bound, clarifier: None, safety_checker: None }
}

#[tokio::test]
async fn removal_clears_the_mask_and_changes_nothing_else() {
    let models = only(tiny("classical").await);
    let (width, height) = (160, 120);
    let input = png(picture(width, height));
    let made = fix(input.clone(), disc(width, height, 16), "remove it", &models)
        .await
        .expect("it is fixed");
    let before = image::load_from_memory(&input).expect("read").to_rgba8();
    let after = image::load_from_memory(&made.png).expect("read").to_rgba8();
    assert_eq!(after.dimensions(), (width, height));
    for (x, y, old) in before.enumerate_pixels() {
        let new = after.get_pixel(x, y);
        assert_eq!(old.0[3], new.0[3], "alpha stays at {x}, {y}");
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height / 2));
        // The disc and the 8 pixels by which a removal grows the mask.
        if dx * dx + dy * dy > 25 * 25 {
            assert_eq!(old, new, "({x}, {y})");
        }
        assert!(new.0[0] < 200, "the red disc is still visible at {x}, {y}: {new:?}");
    }
    assert_eq!(made.model.name, "classical");
    assert!(!made.is_demo);
    assert_eq!(image::load_from_memory(&made.made.copies.thumbnail).expect("read").width(), width);
}

/// Counts the pixels outside a disc in the middle that differ, and those inside.
fn changed(before: &[u8], after: &[u8], radius: u32) -> (usize, usize) {
    let before = image::load_from_memory(before).expect("read").to_rgba8();
    let after = image::load_from_memory(after).expect("read").to_rgba8();
    let (width, height) = before.dimensions();
    let (mut outside, mut inside) = (0, 0);
    let differs = |(x, y, old): &(u32, u32, &image::Rgba<u8>)| *old != after.get_pixel(*x, *y);
    for (x, y, _) in before.enumerate_pixels().filter(differs) {
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height / 2));
        let count = if dx * dx + dy * dy < radius * radius { &mut inside } else { &mut outside };
        *count += 1;
    }
    (outside, inside)
}

#[tokio::test]
async fn with_an_exact_mask_no_pixel_outside_it_changes() {
    let (width, height) = (200, 150);
    let input = png(picture(width, height));
    for (model, prompt) in [
        ("classical", "remove it"),
        ("sd-inpaint", "a red circle"),
        ("sd-inpaint", "add a red circle"),
        ("blur-upscale", "enhance"),
    ] {
        let models = only(tiny(model).await);
        let mask = disc(width, height, 22);
        let exact = fix_with(input.clone(), mask, true, prompt, &models).await;
        let (outside, inside) = changed(&input, &exact.expect("it is fixed").png, 22);
        assert_eq!(outside, 0, "{model}: {prompt}");
        assert!(inside > 200, "{model}: {prompt} changed {inside} pixels of the mask");
        // This one leaves a rim of the red disc, which a fix that reaches further changes too.
        let reaching =
            fix_with(input.clone(), disc(width, height, 12), false, prompt, &models).await;
        let (outside, _) = changed(&input, &reaching.expect("it is fixed").png, 12);
        assert!(outside > 0, "{model}: without it, {prompt} changes the surroundings");
    }
}

#[tokio::test]
async fn profile_and_gray_are_kept() {
    let models = only(tiny("classical").await);
    let gray = image::imageops::grayscale(&picture(96, 80));
    let made = fix(png(gray), disc(96, 80, 16), "remove it", &models).await.expect("it is fixed");
    assert_eq!(image::load_from_memory(&made.png).expect("read").color(), image::ColorType::L8);
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    let mut profile: Vec<u8> = (0..600_u32).map(|at| (at % 251) as u8).collect();
    profile[..4].copy_from_slice(&600_u32.to_be_bytes());
    profile[16..20].copy_from_slice(b"RGB ");
    profile[36..40].copy_from_slice(b"acsp");
    profile[128..132].fill(0);
    image::ImageEncoder::set_icc_profile(&mut encoder, profile.clone()).expect("a profile");
    picture(96, 80).write_with_encoder(encoder).expect("encoded");
    let made = fix(bytes.into(), disc(96, 80, 16), "remove it", &models).await.expect("fixed");
    let read = decode(&made.png, &Limits::default()).expect("read");
    assert_eq!(read.icc, Some(profile));
}

#[tokio::test]
async fn an_unusable_mask_is_a_mask_error() {
    let models = only(tiny("classical").await);
    let input = png(picture(64, 64));
    for mask in
        [disc(64, 48, 10), disc(64, 64, 0), Bytes::from_static(b"no png"), disc(64, 64, 200)]
    {
        let refused = fix(input.clone(), mask, "remove it", &models).await;
        assert!(matches!(refused, Err(ToolError::Pixels(PixelError::Mask(_)))), "{refused:?}");
    }
}

#[tokio::test]
async fn an_area_that_nobody_can_see_is_a_mask_error() {
    let models = only(tiny("classical").await);
    let half = RgbaImage::from_fn(64, 64, |x, _| image::Rgba([9, 9, 9, u8::from(x >= 30)]));
    let below =
        |edge: u32| png(GrayImage::from_fn(64, 64, |x, _| Luma([u8::from(x < edge) * 255])));
    let refused = fix(png(half.clone()), below(30), "remove it", &models).await;
    assert!(matches!(refused, Err(ToolError::Pixels(PixelError::Mask(_)))), "{refused:?}");
    fix(png(half), below(31), "remove it", &models).await.expect("a column can be seen");
}

#[tokio::test]
async fn a_thing_that_stands_alone_in_a_cutout_becomes_transparent() {
    let models = only(tiny("classical").await);
    let cutout = |has_edge: bool, has_disc: bool| {
        RgbaImage::from_fn(160, 120, |x, y| {
            let (dx, dy) = (x.abs_diff(80), y.abs_diff(60));
            let is_visible = has_edge && x < 20 || has_disc && dx * dx + dy * dy < 14 * 14;
            image::Rgba(if is_visible { [200, 90, 30, 255] } else { [0; 4] })
        })
    };
    let made = fix(png(cutout(true, true)), disc(160, 120, 16), "remove it", &models).await;
    let after = image::load_from_memory(&made.expect("it is fixed").png).expect("read").to_rgba8();
    assert!(after == cutout(true, false), "the disc is gone, and the rest is as it was");
    let refused = fix(png(cutout(false, true)), disc(160, 120, 16), "remove it", &models).await;
    assert!(matches!(refused, Err(ToolError::Pixels(PixelError::Mask(_)))), "{refused:?}");
}

#[tokio::test]
async fn a_text_guided_model_paints_the_mask_and_only_that() {
    let models = only(tiny("sd-inpaint").await);
    let (width, height) = (150, 100);
    let input = png(picture(width, height));
    let paint = |prompt: &'static str| fix(input.clone(), disc(width, height, 20), prompt, &models);
    let (red, again, blue) =
        tokio::join!(paint("a red circle"), paint("a red circle"), paint("a blue circle"));
    let (red, again, blue) = (red.expect("red"), again.expect("again"), blue.expect("blue"));
    assert_eq!(red.png, again.png, "the same seed and prompt give the same bytes");
    assert_ne!(red.png, blue.png, "the prompt reaches the net");
    assert!(red.is_demo);
    let before = image::load_from_memory(&input).expect("read").to_rgba8();
    let after = image::load_from_memory(&red.png).expect("read").to_rgba8();
    for (x, y, old) in before.enumerate_pixels() {
        let (dx, dy) = (x.abs_diff(width / 2), y.abs_diff(height / 2));
        let far = dx * dx + dy * dy > 25 * 25;
        assert!(!far || old == after.get_pixel(x, y), "({x}, {y})");
    }
}

#[tokio::test]
async fn a_clarified_area_does_not_move() {
    let models = only(tiny("upscale").await);
    let (width, height) = (300, 280);
    let input = png(picture(width, height));
    let made =
        fix(input.clone(), disc(width, height, 120), "enhance", &models).await.expect("done");
    let before = image::load_from_memory(&input).expect("read").to_rgb8();
    let after = image::load_from_memory(&made.png).expect("read").to_rgb8();
    // The tiny model repeats pixels, so the output equals the input up to rounding.
    let off = before.iter().zip(after.iter()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
    assert!(off / before.len() as u64 <= 2, "mean error {}", off as f64 / before.len() as f64);
}

#[tokio::test]
async fn restore_fills_scratches_and_clarifies_areas() {
    let models =
        FixModels { clarifier: Some(tiny("upscale").await), ..only(tiny("classical").await) };
    let input = png(picture(300, 280));
    let scratch = png(GrayImage::from_fn(300, 280, |x, y| {
        Luma([if (100..104).contains(&x) && y > 60 && y < 200 { 255 } else { 0 }])
    }));
    let made = fix(input.clone(), scratch, "restore", &models).await.expect("done");
    assert_eq!(made.model.name, "classical");
    let made = fix(input, disc(300, 280, 60), "restore", &models).await.expect("done");
    assert_eq!(made.model.name, "upscale");
}

#[tokio::test]
async fn an_area_to_restore_needs_a_model_that_only_enhances() {
    let models = TempDir::new().expect("a folder");
    let folder = models.path().join("sd-inpaint");
    copy(&repository().join("models/tiny/sd-inpaint"), &folder);
    let manifest = fs::read_to_string(folder.join("model.toml")).expect("read");
    let enhancing = manifest.replace("[strength]", "[strength]\nenhance = 1.0");
    fs::write(folder.join("model.toml"), enhancing).expect("written");
    let clarifier = Some(load(&folder).await.expect("it loads"));
    let models = FixModels { clarifier, ..only(tiny("classical").await) };
    let input = png(picture(300, 280));
    let made = fix(input, disc(300, 280, 60), "restore", &models).await.expect("done");
    assert_eq!(made.model.name, "sd-inpaint");
}

#[tokio::test]
async fn restore_treats_scratches_and_areas_of_one_mask_separately() {
    let models =
        FixModels { clarifier: Some(tiny("upscale").await), ..only(tiny("classical").await) };
    let is_scratch = |x: u32, y: u32| (20..24).contains(&x) && y > 60 && y < 200;
    let mut scratched = picture(300, 280);
    for (x, y, pixel) in scratched.enumerate_pixels_mut() {
        if is_scratch(x, y) {
            *pixel = image::Rgba([255; 4]);
        }
    }
    let mask = png(GrayImage::from_fn(300, 280, |x, y| {
        let is_area = x.abs_diff(150).pow(2) + y.abs_diff(140).pow(2) < 60 * 60;
        Luma([if is_area || is_scratch(x, y) { 255 } else { 0 }])
    }));
    let made = fix(png(scratched), mask, "restore", &models).await.expect("done");
    assert_eq!(made.model.name, "classical + upscale");
    let after = image::load_from_memory(&made.png).expect("read").to_rgb8();
    let white = after.enumerate_pixels().filter(|(x, y, _)| is_scratch(*x, *y));
    let white = white.filter(|(.., pixel)| pixel.0.iter().all(|sample| *sample > 200)).count();
    assert_eq!(white, 0, "some of the scratch is left");
}

#[tokio::test]
async fn fill_nets_work_with_every_element_type() {
    // Both paint the hole gray and return the rest unchanged.
    for name in ["fill-floats", "fill-f16", "fill-bytes"] {
        let models = only(tiny(name).await);
        let (width, height) = (90, 70);
        let input = png(picture(width, height));
        let made = fix(input.clone(), disc(width, height, 14), "remove it", &models).await;
        let after = image::load_from_memory(&made.expect(name).png).expect("read").to_rgba8();
        assert_eq!(after.get_pixel(width / 2, height / 2).0, [128, 128, 128, 255], "{name}");
        let before = image::load_from_memory(&input).expect("read").to_rgba8();
        assert_eq!(after.get_pixel(0, 0), before.get_pixel(0, 0));
    }
}

#[tokio::test]
async fn a_fill_that_shifts_colors_leaves_no_edge() {
    // It returns everything brighter by a sixth: 128 becomes 148, in the hole and around it.
    let (_dir, folder) = altered("fill-bytes", &[("output_white = 255", "output_white = 220")]);
    let models = only(load(&folder).await.expect("it loads"));
    let input = png(image::RgbImage::from_pixel(90, 70, image::Rgb([128; 3])));
    let made = fix(input, disc(90, 70, 14), "remove it", &models).await.expect("it is fixed");
    let after = image::load_from_memory(&made.png).expect("read").to_rgb8();
    let most = after.iter().map(|sample| sample.abs_diff(128)).max();
    assert!(most <= Some(2), "the patch is off by {most:?} levels");
}

#[tokio::test]
async fn an_unsafe_result_is_discarded() {
    // The tiny safety models rate red pictures as unsafe.
    for name in ["safety", "safety-f16"] {
        let safety_checker = Some(tiny(name).await);
        let models = FixModels { safety_checker, ..only(tiny("classical").await) };
        let gray = image::RgbImage::from_fn(96, 96, |x, y| image::Rgb([((x * y) % 200) as u8; 3]));
        fix(png(gray), disc(96, 96, 12), "remove it", &models).await.expect("it is safe");
        let red =
            image::RgbImage::from_fn(96, 96, |x, y| image::Rgb([250, ((x * y) % 30) as u8, 10]));
        let refused = fix(png(red), disc(96, 96, 12), "remove it", &models).await;
        assert!(matches!(refused, Err(ToolError::Unsafe(_))), "{name}: {refused:?}");
        assert!(!refused.expect_err("refused").is_retryable());
    }
}

#[tokio::test]
async fn a_canceled_run_ends_between_steps() {
    let models = only(tiny("sd-inpaint").await);
    let request = FixRequest {
        prompt: Prompt::parse("a red circle").expect("a prompt"),
        mode: FixMode::Edit,
        mask: disc(128, 128, 30),
        is_mask_exact: true,
        seed: 1,
    };
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let on_progress: ProgressFn = Arc::new(move |_, done, _| {
        if done > 0.2 {
            stop.cancel();
        }
    });
    let pixels = PixelPool::new(2).expect("threads");
    let input = png(picture(128, 128));
    let ended = magic_fix(input, request, &models, &pixels, &SETTINGS, &cancel, &on_progress).await;
    assert_eq!(ended.expect_err("it was canceled"), ToolError::Canceled);
}

pub async fn submit(services: &Services, prompt: &str, mask: &[u8]) -> JobId {
    let image = retouch_standins::testing::image(
        &services.pool,
        Some(&services.bucket.storage),
        services.ada,
        &png(picture(160, 120)),
    )
    .await;
    let prompt = Prompt::parse(prompt).expect("a prompt");
    let new = NewJob {
        owner: Some(services.ada),
        image,
        tool: Tool::MagicFix(prompt.mode()),
        tier: Tier::Paid,
        idempotency_key: None,
        fix: Some(jobs::FixParameters {
            prompt: prompt.text().to_owned(),
            mask: Bytes::copy_from_slice(mask),
            mask_sha256: vec![1; 32],
            is_mask_exact: prompt.mode().is_mask_exact_by_default(),
        }),
        queue_limit: None,
    };
    let job = jobs::submit(&services.pool, &new).await.expect("submitted").into_job();
    services.queue.ring(job.class(), job.id).await.expect("rung");
    job.id
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_fixes_pictures_and_records_the_model(pool: PgPool) {
    let services = Services::start(pool, 6).await;
    let _worker = services.worker().start();
    let drawing = disc(160, 120, 16);
    let removed = submit(&services, "remove it", &drawing).await;
    let painted = submit(&services, "a red circle", &drawing).await;
    services.until(JobState::Done, 2, TIMEOUT).await;
    for (job, mode, model, is_demo) in [
        (removed, FixMode::Remove, "classical", false),
        (painted, FixMode::Edit, "sd-inpaint", true),
    ] {
        let made = &results::for_job(&services.pool, job).await.expect("listed")[0];
        assert_eq!((made.mode, made.model.as_str(), made.is_demo), (Some(mode), model, is_demo));
        assert_eq!((made.width, made.height, made.credits), (160, 120, 8));
        assert!(made.prompt.is_some());
    }
    let offer = retouch_core::workers::fix_offer(
        &retouch_core::workers::known_models(&services.pool).await.expect("known"),
    );
    assert_eq!(offer.modes, [FixMode::Edit, FixMode::Restore, FixMode::Remove, FixMode::Enhance]);
    assert!(offer.is_demo && offer.vocabulary.is_some());
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (30 - 16, 0));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_with_an_unusable_mask_costs_nothing(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let _worker = services.worker().start();
    let job = submit(&services, "remove it", b"no png").await;
    services.until(JobState::Failed, 1, TIMEOUT).await;
    let failed = jobs::get(&services.pool, job).await.expect("read").expect("there");
    assert_eq!(failed.failure.expect("a reason").code, "mask_invalid");
    let kept = jobs::mask(&services.pool, job).await.expect("read");
    assert_eq!(kept.as_deref(), Some(&b"no png"[..]), "an operator can retry it");
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (20, 0));
}

#[test]
fn tools_toml_binds_models_that_need_no_download() {
    let bindings = retouch_inference::bindings::Bindings::read(&repository().join("models"))
        .expect("it reads");
    for mode in [FixMode::Remove, FixMode::Restore] {
        let demand =
            retouch_inference::bindings::Demand { tool: Tool::MagicFix(mode), tier: Tier::Paid };
        let device = retouch_inference::device::Device::Cpu;
        assert_eq!(bindings.model_for(demand, device), Some("classical"));
    }
}
