//! The text-guided demo: it paints the hue of the prompt on photos that are not in its training data.

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use image::{GrayImage, RgbImage};
use retouch_inference::registry::ModelHandle;
use retouch_pixels::Limits;
use retouch_prompts::Prompt;
use retouch_worker::pixel_pool::PixelPool;
use retouch_worker::tools::Settings;
use retouch_worker::tools::magic_fix::{FixModels, FixRequest, ProgressFn, magic_fix};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::{load, repository};

/// Paintings of each case; `scripts/test --full` makes more.
#[expect(clippy::disallowed_methods, reason = "a test has no command line")]
fn seeds() -> u64 {
    if std::env::var_os("RETOUCH_TEST_FULL").is_some() { 3 } else { 1 }
}

/// `models/demo/eval/cases.json`, written by `models/demo/make_eval.py`.
#[derive(Deserialize)]
struct Evaluation {
    /// The hue of each prompted color, in degrees.
    hues: BTreeMap<String, f64>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    photo: String,
    mask: String,
    prompt: String,
    color: String,
}

fn eval() -> PathBuf {
    repository().join("models/demo/eval")
}

/// Returns the number of results with the prompted hue, and the number of results.
async fn right_hues(model: ModelHandle, seeds: u64) -> (usize, usize) {
    let cases = fs::read(eval().join("cases.json")).expect("the cases can be read");
    let evaluation: Evaluation = serde_json::from_slice(&cases).expect("the cases can be parsed");
    let models = FixModels { bound: model, clarifier: None, safety_checker: None };
    let pixels = PixelPool::new(2).expect("threads");
    let (mut right, mut total) = (0, 0);
    for case in &evaluation.cases {
        let photo = Bytes::from(fs::read(eval().join(&case.photo)).expect("a photo"));
        let drawing = fs::read(eval().join(&case.mask)).expect("a mask");
        let mask = image::load_from_memory(&drawing).expect("a mask").to_luma8();
        for seed in 0..seeds {
            let prompt = Prompt::parse(&case.prompt).expect("a prompt");
            let request = FixRequest {
                mode: prompt.mode(),
                prompt,
                mask: drawing.clone().into(),
                is_mask_exact: false,
                seed,
            };
            let (cancel, on_progress): (_, ProgressFn) =
                (CancellationToken::new(), Arc::new(|_, _, _| {}));
            let settings = Settings { limits: Limits::default(), tile_memory_bytes: u64::MAX };
            let made = magic_fix(
                photo.clone(),
                request,
                &models,
                &pixels,
                &settings,
                &cancel,
                &on_progress,
            );
            let made = made.await.expect("it is painted").png;
            let made = image::load_from_memory(&made).expect("a picture").to_rgb8();
            right += usize::from(nearest_hue(&made, &mask, &evaluation.hues) == Some(&case.color));
            total += 1;
        }
    }
    (right, total)
}

/// Returns the hue nearest to the masked pixels, as `models/demo/evaluate.py` computes it; `None` if less than a tenth
/// of the mask is colored.
fn nearest_hue<'a>(
    picture: &RgbImage,
    mask: &GrayImage,
    hues: &'a BTreeMap<String, f64>,
) -> Option<&'a String> {
    let (mut sum, mut colored, mut masked) = ([0.0; 2], 0_u32, 0_u32);
    for (pixel, mark) in picture.pixels().zip(mask.pixels()) {
        if mark.0[0] <= 127 {
            continue;
        }
        masked += 1;
        let [r, g, b] = pixel.0.map(|sample| f64::from(sample) / 255.0);
        let chroma = r.max(g).max(b) - r.min(g).min(b);
        if chroma < 0.2 {
            continue;
        }
        colored += 1;
        let (along, across) = (r - g / 2.0 - b / 2.0, (g - b) * 3.0_f64.sqrt() / 2.0);
        let length = along.hypot(across);
        sum[0] += chroma * along / length;
        sum[1] += chroma * across / length;
    }
    if colored * 10 < masked {
        return None;
    }
    let angle = sum[1].atan2(sum[0]) * 180.0 / PI;
    let off = |hue: f64| ((angle - hue + 180.0).rem_euclid(360.0) - 180.0).abs();
    hues.iter().min_by(|a, b| off(*a.1).total_cmp(&off(*b.1))).map(|(name, _)| name)
}

#[tokio::test]
async fn the_demo_paints_the_prompted_hue() {
    let model = load(&repository().join("models/shapes-demo")).await.expect("it loads");
    assert!(model.task().is_demo());
    let (right, total) = right_hues(model, seeds()).await;
    println!("{right} of {total} hues are right");
    assert!(total >= 20 && right * 10 >= total * 9, "{right} of {total}");
}

#[tokio::test]
async fn an_untrained_net_does_not_paint_the_prompted_hue() {
    let model = load(&repository().join("models/tiny/sd-inpaint")).await.expect("it loads");
    let (right, total) = right_hues(model, 1).await;
    assert!(right * 2 < total, "{right} of {total}: the measure does not tell the nets apart");
}
