//! The warm-up step: one run gives finite, plausible values.

use std::ops::Range;

use ndarray::Array4;
use retouch_catalog::FixMode;
use retouch_pixels::alpha::MapRange;
use retouch_pixels::patch::Canvas;
use tokio_util::sync::CancellationToken;

use super::run::{run, sample_inputs};
use super::samples::{SAMPLE_SIDE, disc_on_gradient, sample_painting};
use crate::manifest::{self, NetTask};
use crate::output::{Extremes, Output};
use crate::painter::{Painter, Watch};
use crate::registry::steps::Outcome;
use crate::safety::SafetyChecker;
use crate::segment_anything::{Prompt, SegmentAnything};
use crate::session::PictureNet;

/// Runs a net on a disc on a gradient.
pub fn run_net(net: &mut PictureNet, task: NetTask<'_>) -> Outcome<()> {
    let [input, _] = sample_inputs(task);
    let output = match run(net, &input) {
        Ok(output) => output,
        Err(reason) => return Outcome::refused(reason),
    };
    let (low, high) = range(&output);
    let finding = format!("output in {low:.3}..{high:.3}");
    let reasons = Vec::from_iter(find_defect(task, &input, &output, low, high));
    // A defect does not prevent comparing golden images, which may show more.
    Outcome { finding, reasons, value: Some(()) }
}

/// Describes the first defect of an output; `low` and `high` are its smallest and largest value.
fn find_defect(
    task: NetTask<'_>,
    input: &Array4<u8>,
    output: &Output,
    low: f32,
    high: f32,
) -> Option<String> {
    let (_, rows, columns, _) = input.dim();
    let (axes, expected, advice) = match task {
        NetTask::Segmentation(segmentation) => {
            let (width, height) = segmentation.map_size();
            let classes = segmentation.postprocess.classes as usize;
            (
                "batch, channels, height, width",
                [1, classes, height as usize, width as usize],
                "set output.width, output.height, and postprocess.classes to what it has",
            )
        }
        NetTask::Upscale(upscale) => {
            let scale = upscale.upscale.scale as usize;
            (
                "batch, height, width, channels",
                [1, rows * scale, columns * scale, 3],
                "set upscale.scale to output pixels per input pixel",
            )
        }
    };
    if output.shape() != expected {
        let shape = output.shape();
        return Some(format!(
            "the output has shape {shape:?}, but the manifest expects {expected:?} ({axes}); {advice}"
        ));
    }
    if !output.is_finite() {
        let found = match output {
            Output::Maps(maps) => {
                let count = |is: fn(f32) -> bool| maps.iter().filter(|value| is(**value)).count();
                let (nan, infinite) = (count(f32::is_nan), count(f32::is_infinite));
                let (count, all) = (nan + infinite, maps.len());
                format!(
                    "{count} of {all} output values are not finite: {nan} are NaN and {infinite} infinite"
                )
            }
            Output::Pictures { .. } => "some output values are not finite".to_owned(),
        };
        return Some(format!(
            "{found}; check input.divide_by, input.mean, and input.std, or export the model in f32 if it overflows in f16"
        ));
    }
    // The picture has a subject and colors, so no working model returns a single value.
    if high <= low {
        return Some(format!(
            "the output is {low} everywhere for a picture of a disc on a gradient; check output.name, input.divide_by, \
             input.mean, and input.std"
        ));
    }
    let (least, most) = match task {
        NetTask::Segmentation(segmentation) => match segmentation.postprocess.range {
            // Overshoot of half a unit is tolerated, because it is clipped.
            MapRange::Clip => (-0.5, 1.5),
            MapRange::Minmax | MapRange::Sigmoid | MapRange::Softmax => (-1e4, 1e4),
        },
        // Generative upscalers overshoot. Values far from 0..1 mean another range, or noise.
        NetTask::Upscale(_) => (-1.0, 2.0),
    };
    let advice = match task {
        NetTask::Segmentation(_) => {
            "set postprocess.range = \"sigmoid\" if these are logits, or output.white to the largest value"
        }
        NetTask::Upscale(_) => "set output.white to the value of white, such as 255",
    };
    (low < least || high > most).then(|| {
        format!(
            "output values range from {low} to {high}, but must be {least} to {most} after division by output.white; \
             {advice}"
        )
    })
}

/// Returns the least and the largest value of an output.
fn range(output: &Output) -> (f32, f32) {
    let wider =
        |(low, high): (f32, f32), least: f32, largest: f32| (low.min(least), high.max(largest));
    let empty = (f32::INFINITY, f32::NEG_INFINITY);
    match output {
        Output::Maps(maps) => maps.iter().fold(empty, |range, value| wider(range, *value, *value)),
        Output::Pictures { extremes, .. } => extremes
            .iter()
            .flatten()
            .fold(empty, |range, Extremes { least, largest }| wider(range, *least, *largest)),
    }
}

/// Checks a disc on a gradient with a safety net.
pub fn run_safety_net(checker: &mut SafetyChecker) -> Outcome<()> {
    let picture = disc_on_gradient(SAMPLE_SIDE);
    match checker.unsafety(&picture.rgb, picture.width, picture.height) {
        Ok(score) => Outcome::passed(format!("a disc is unsafe with probability {score:.3}"), ()),
        Err(error) => Outcome::refused(error.to_string()),
    }
}

/// Clicks on the disc of a disc on a gradient. The mask must tell the disc from the rest.
pub fn run_segment_anything(
    model: &mut SegmentAnything,
    contract: &manifest::SegmentAnything,
) -> Outcome<()> {
    let input = &contract.input;
    let picture = disc_on_gradient(SAMPLE_SIDE);
    let frame = input.framing().frame((SAMPLE_SIDE, SAMPLE_SIDE), (input.width, input.height));
    let middle = |range: &Range<u32>| (range.start + range.end) as f32 / 2.0;
    let click = (middle(&frame.x), middle(&frame.y));
    let prompt = Prompt { positive: vec![click], ..Prompt::default() };
    let found = model
        .features(&input.to_tensor(&picture))
        .and_then(|features| model.mask(&features, &prompt));
    let mask = match found {
        Ok(mask) => mask,
        Err(error) => return Outcome::refused(error.to_string()),
    };
    let above = mask.logits.iter().filter(|logit| **logit > 0.0).count();
    if above == 0 || above == mask.logits.len() {
        let selected = if above == 0 { "nothing" } else { "the whole picture" };
        return Outcome::refused(format!(
            "a click on a disc selects {selected}; check input.divide_by, input.mean, input.std, and decoder.masks"
        ));
    }
    let percent = above as f32 * 100.0 / mask.logits.len() as f32;
    Outcome::passed(format!("a click on a disc selects {percent:.0} % of the picture"), ())
}

/// Paints a sample crop. The result must have the size of the crop and be neither black, white nor a single color.
pub fn run_painter(painter: &mut dyn Painter, canvas: Canvas, mode: FixMode) -> Outcome<()> {
    let painting = sample_painting(canvas, mode);
    let cancel = CancellationToken::new();
    let out = match painter
        .paint(&painting, Watch { progress: &|_| {}, heartbeat: &|| {}, cancel: &cancel })
    {
        Ok(out) => out,
        Err(error) => return Outcome::refused(error.to_string()),
    };
    let mut reasons = Vec::new();
    if out.len() == painting.rgb.len() {
        let inside = out.chunks_exact(3).zip(&painting.hole).filter(|(_, hole)| **hole);
        let mut inside = inside.flat_map(|(pixel, _)| pixel).copied();
        // Values that overflow 16 bits come out black.
        if inside.clone().all(|sample| sample == 0) || inside.all(|sample| sample == u8::MAX) {
            reasons.push("the painted hole is entirely black or white".to_owned());
        } else if let [first, rest @ ..] = out.as_slice()
            && rest.iter().all(|sample| sample == first)
        {
            // Inside the hole this may be right, but the rest is a picture of a disc on a gradient.
            reasons.push(format!("every sample of the result is {first}, even outside the hole"));
        }
    } else {
        let (found, expected) = (out.len(), painting.rgb.len());
        reasons.push(format!("the result has {found} samples instead of {expected}"));
    }
    let finding = format!("painted a hole of {} × {}", painting.width / 4, painting.height / 4);
    Outcome { finding, reasons, value: Some(()) }
}
