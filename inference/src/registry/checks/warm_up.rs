//! The warm-up step: one run gives finite, plausible values.

use std::ops::Range;

use ndarray::Array4;
use retouch_pixels::alpha::MapRange;

use super::run::{odd_input, run, sample_inputs};
use super::samples::{SAMPLE_SIDE, disc_on_gradient};
use crate::manifest::{self, NetTask, Segmentation, Upscale};
use crate::output::{Extremes, Output};
use crate::registry::steps::Outcome;
use crate::safety::SafetyChecker;
use crate::segment_anything::{Prompt, SegmentAnything};
use crate::session::PictureNet;

mod likeness;
mod painting;

pub use painting::{run_fill, run_painter};

/// A largest value of a map below which a wrong `output.white` is likely: bytes for floats give 1/255.
const FAINT: f32 = 0.02;

/// Runs a net on a disc on a gradient, and an upscaler of any size also on a small tile of odd sides.
pub fn run_net(net: &mut PictureNet, task: NetTask<'_>) -> Outcome<()> {
    let [input, _] = sample_inputs(task);
    let output = match run(net, &input) {
        Ok(output) => output,
        Err(reason) => return Outcome::refused(reason),
    };
    let (low, high) = range(&output);
    let finding = format!("output in {low:.3}..{high:.3}");
    let defect = wrong_shape(task, &input, &output)
        .or_else(|| not_finite(&output))
        .or_else(|| out_of_range(task, low, high))
        .or_else(|| match task {
            NetTask::Segmentation(segmentation) => wrong_postprocess(segmentation, low, high),
            NetTask::Upscale(upscale) => likeness::find_difference(upscale, &input, &output)
                .or_else(|| odd_sides_fail(net, upscale)),
        });
    // A defect does not prevent comparing golden images, which may show more.
    Outcome { finding, reasons: Vec::from_iter(defect), value: Some(()) }
}

/// Returns the shape that an output must have: of maps `[batch, channel, row, column]`, of pictures `[batch, row, column,
/// channel]`.
fn expected_shape(task: NetTask<'_>, input: &Array4<u8>) -> [usize; 4] {
    match task {
        NetTask::Segmentation(segmentation) => {
            let (width, height) = segmentation.map_size();
            [1, segmentation.postprocess.classes as usize, height as usize, width as usize]
        }
        NetTask::Upscale(upscale) => {
            let (_, rows, columns, _) = input.dim();
            let scale = upscale.upscale.scale as usize;
            [1, rows * scale, columns * scale, 3]
        }
    }
}

fn wrong_shape(task: NetTask<'_>, input: &Array4<u8>, output: &Output) -> Option<String> {
    let (shape, expected) = (output.shape(), expected_shape(task, input));
    let (axes, advice) = match task {
        NetTask::Segmentation(_) => (
            "batch, channels, height, width",
            "set output.width, output.height, and postprocess.classes to what it has",
        ),
        NetTask::Upscale(_) => {
            ("batch, height, width, channels", "set upscale.scale to output pixels per input pixel")
        }
    };
    (shape != expected).then(|| {
        format!("the output has shape {shape:?}, but the manifest expects {expected:?} ({axes}); {advice}")
    })
}

fn not_finite(output: &Output) -> Option<String> {
    if output.is_finite() {
        return None;
    }
    let found = match output {
        Output::Maps(maps) => {
            let maps = maps.view();
            let count = |is: fn(f32) -> bool| maps.iter().filter(|value| is(**value)).count();
            let (nan, infinite) = (count(f32::is_nan), count(f32::is_infinite));
            let (count, all) = (nan + infinite, maps.len());
            format!(
                "{count} of {all} output values are not finite: {nan} are NaN and {infinite} infinite"
            )
        }
        Output::Pictures { .. } => "some output values are not finite".to_owned(),
    };
    Some(format!(
        "{found}; check input.divide_by, input.mean, and input.std, or export the model in f32 if it overflows in f16"
    ))
}

/// Refuses a smallest and largest value that no working model returns.
fn out_of_range(task: NetTask<'_>, low: f32, high: f32) -> Option<String> {
    // The picture has a subject and colors.
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

/// Refuses a map that the manifest turns into a ghost of a cutout, half transparent everywhere.
fn wrong_postprocess(segmentation: &Segmentation, low: f32, high: f32) -> Option<String> {
    let range = segmentation.postprocess.range;
    match range {
        // Logits in 0..1 would mean alpha between 0.5 and 0.73, so a net that can tell a subject has others.
        MapRange::Sigmoid | MapRange::Softmax if low >= 0.0 && high <= 1.0 => Some(format!(
            "output values range from {low} to {high}: these are probabilities already; set postprocess.range = \"clip\""
        )),
        // Where the manifest does not state white, a net that knows only other subjects may see none here.
        MapRange::Clip
            if segmentation.output.white.is_some_and(|white| white > 1.0) && high < FAINT =>
        {
            Some(format!(
                "the largest output value is {high} after division by output.white; check output.white"
            ))
        }
        MapRange::Clip | MapRange::Sigmoid | MapRange::Softmax | MapRange::Minmax => None,
    }
}

/// Runs an upscaler on sides that only nets of any size take. Real pictures have such sides: nearly every one would fail.
fn odd_sides_fail(net: &mut PictureNet, upscale: &Upscale) -> Option<String> {
    let input = odd_input(upscale)?;
    let (_, rows, columns, _) = input.dim();
    let expected = expected_shape(NetTask::Upscale(upscale), &input);
    let reason = match run(net, &input) {
        Ok(output) if output.shape() == expected => return None,
        Ok(output) => format!("the output has shape {:?} instead of {expected:?}", output.shape()),
        Err(reason) => reason,
    };
    Some(format!(
        "sides of {columns} × {rows} fail: {reason}; set tiling.multiple_of to what the net needs, such as 2, 8, 16, or 64"
    ))
}

/// Returns the least and the largest value of an output.
fn range(output: &Output) -> (f32, f32) {
    let wider =
        |(low, high): (f32, f32), least: f32, largest: f32| (low.min(least), high.max(largest));
    let empty = (f32::INFINITY, f32::NEG_INFINITY);
    match output {
        Output::Maps(maps) => {
            maps.view().iter().fold(empty, |range, value| wider(range, *value, *value))
        }
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
