//! What is judged of one net: its tensors, one run of it, and known pictures.

use std::fs;
use std::path::Path;

use ndarray::Array4;

use super::Outcome;
use crate::models::manifest::{Golden, NetTask, Range, Segmentation, Upscale};
use crate::models::session::{Port, Session};
use crate::pipeline::alpha::to_alpha;
use crate::pipeline::decode::decode;
use crate::pipeline::tensor::to_tensor;
use crate::pipeline::tile::{self, Region, Trim};
use crate::pipeline::{Limits, Picture};

pub fn contract(session: &Session, task: NetTask<'_>) -> Outcome<()> {
    let (input_shape, output_shape) = match task {
        NetTask::Segmentation(Segmentation { input, .. }) => {
            let (width, height) = (u64::from(input.width), u64::from(input.height));
            let fixed = |channels| [Some(1), Some(channels), Some(height), Some(width)];
            (fixed(3), fixed(1))
        }
        // Tiles have many sizes.
        NetTask::Upscale(_) => ([Some(1), Some(3), None, None], [Some(1), Some(3), None, None]),
    };
    let inputs = session.inputs();
    let mut reasons = Vec::new();
    reasons.extend(check_port("input", &inputs, task.input(), input_shape).err());
    // One that is named wrongly has been told of; the others are what the model needs beside it.
    if inputs.iter().any(|port| port.name == task.input()) {
        let beside = inputs.iter().filter(|port| port.name != task.input());
        reasons.extend(beside.map(|port| format!("the model also needs an input {:?}", port.name)));
    }
    reasons.extend(check_port("output", &session.outputs(), task.output(), output_shape).err());
    let finding = format!(
        "{} f32{} → {} f32{}",
        task.input(),
        shape_text(&input_shape),
        task.output(),
        shape_text(&output_shape)
    );
    let value = reasons.is_empty().then_some(());
    Outcome { finding, reasons, value }
}

fn shape_text(shape: &[Option<u64>]) -> String {
    let sizes: Vec<_> =
        shape.iter().map(|size| size.map_or("?".to_owned(), |size| size.to_string())).collect();
    format!("[{}]", sizes.join(", "))
}

/// A size that the manifest leaves open must be open in the graph too; one that it states must be that or
/// open.
fn check_port(
    kind: &str,
    ports: &[Port],
    name: &str,
    shape: [Option<u64>; 4],
) -> Result<(), String> {
    let Some(port) = ports.iter().find(|port| port.name == name) else {
        let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
        return Err(format!("the model has no {kind} {name:?}; it has {}", names.join(", ")));
    };
    if !port.is_f32 {
        return Err(format!("{kind} {name:?} holds {}, the manifest says f32", port.element));
    }
    let fits = port.shape.len() == shape.len()
        && port.shape.iter().zip(shape).all(|pair| match pair {
            (Some(size), Some(wanted)) => *size == wanted,
            (Some(_), None) => false,
            (None, _) => true,
        });
    if fits {
        Ok(())
    } else {
        Err(format!(
            "{kind} {name:?} has shape {}, the manifest makes it {}",
            shape_text(&port.shape),
            shape_text(&shape)
        ))
    }
}

pub fn warm_up(session: &mut Session, task: NetTask<'_>) -> Outcome<()> {
    let picture = disc_on_gradient();
    let input = match task {
        NetTask::Segmentation(segmentation) => to_tensor(&picture, &segmentation.input),
        NetTask::Upscale(upscale) => one_tile(&picture, upscale).1,
    };
    let output = match run(session, task, &input) {
        Ok(output) => output,
        Err(reason) => return Outcome::refused(reason),
    };
    let (low, high) = output
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let finding = format!("output in {low:.3}..{high:.3}");
    let reasons = Vec::from_iter(insanity(task, &input, &output, low, high));
    // Golden pictures may still say more.
    Outcome { finding, reasons, value: Some(()) }
}

/// What is wrong with an output, given its smallest and largest value.
fn insanity(
    task: NetTask<'_>,
    input: &Array4<f32>,
    output: &Array4<f32>,
    low: f32,
    high: f32,
) -> Option<String> {
    let (channels, scale) = match task {
        NetTask::Segmentation(_) => (1, 1),
        NetTask::Upscale(upscale) => (3, upscale.upscale.scale as usize),
    };
    let expected = [1, channels, input.shape()[2] * scale, input.shape()[3] * scale];
    if output.shape() != expected {
        let shape = output.shape();
        return Some(format!("its output has shape {shape:?}, the manifest makes it {expected:?}"));
    }
    let broken = output.iter().filter(|value| !value.is_finite()).count();
    if broken > 0 {
        return Some(format!("{broken} of {} output values are not numbers", output.len()));
    }
    match task {
        NetTask::Segmentation(segmentation) => {
            // Half a unit of overshoot is no reason to refuse: it is cut off.
            let is_sane = match segmentation.postprocess.range {
                Range::Clip => low >= -0.5 && high <= 1.5,
                Range::Minmax | Range::Sigmoid => high > low && low.abs().max(high.abs()) < 1e4,
            };
            (!is_sane).then(|| format!("its output lies in {low}..{high}, which is no map"))
        }
        // Generative upscalers overshoot; what is far from 0..1 is another range, or noise.
        NetTask::Upscale(_) => (low < -1.0 || high > 2.0)
            .then(|| format!("its output lies in {low}..{high}, not in 0..1")),
    }
}

/// A whole picture as one tile.
fn one_tile(picture: &Picture, upscale: &Upscale) -> (Region, Array4<f32>) {
    let region = Region { x: 0..picture.width, y: 0..picture.height };
    let Upscale { input, tiling, .. } = upscale;
    let cut = tile::cut(picture, &region, tiling.padding, tiling.multiple_of);
    let tensor = tile::to_tensor(&cut, input);
    (region, tensor)
}

/// A picture that any model of subjects has something to say about.
pub fn disc_on_gradient() -> Picture {
    const SIDE: i32 = 128;
    let mut rgb = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
            let distance = (x - SIDE / 2).pow(2) + (y - SIDE / 2).pow(2);
            let pixel = if distance < 40 * 40 { [230, 120, 40] } else { [40, 60, 90 + y as u8] };
            rgb.extend(pixel);
        }
    }
    Picture { width: SIDE as u32, height: SIDE as u32, rgb, alpha: None, gray: false, icc: None }
}

fn run(
    session: &mut Session,
    task: NetTask<'_>,
    input: &Array4<f32>,
) -> Result<Array4<f32>, String> {
    session.run(task.input(), input, task.output()).map_err(|error| error.to_string())
}

pub fn try_golden(
    session: &mut Session,
    task: NetTask<'_>,
    folder: &Path,
    golden: &Golden,
) -> Outcome<()> {
    let (name, tolerance) = (golden.image.display(), golden.tolerance);
    let (finding, reason) = match golden_error(session, task, folder, golden) {
        Ok(error) => (
            format!("{name} off by {error:.5}, at most {tolerance} is accepted"),
            (error.is_nan() || error > tolerance).then(|| {
                format!(
                    "{name}: the result is off by {error:.4} on average, at most {tolerance} is accepted"
                )
            }),
        ),
        Err(reason) => (String::new(), Some(format!("{name}: {reason}"))),
    };
    // The other golden pictures say more.
    Outcome { finding, reasons: Vec::from_iter(reason), value: Some(()) }
}

/// The mean absolute error of the result's samples as 0..=1.
fn golden_error(
    session: &mut Session,
    task: NetTask<'_>,
    folder: &Path,
    golden: &Golden,
) -> Result<f32, String> {
    let picture_at = |path: &Path| {
        let bytes = fs::read(folder.join(path)).map_err(|error| error.to_string())?;
        decode(&bytes, &Limits::default()).map_err(|error| error.to_string())
    };
    let picture = picture_at(&golden.image)?;
    let expected = picture_at(&golden.expected)?;
    let (scale, made, expected_samples): (u32, Vec<u8>, Vec<u8>) = match task {
        NetTask::Segmentation(segmentation) => {
            let map = run(session, task, &to_tensor(&picture, &segmentation.input))?;
            let alpha = to_alpha(&map, segmentation.postprocess, &picture)
                .map_err(|error| error.to_string())?;
            (1, alpha, expected.rgb.iter().copied().step_by(3).collect())
        }
        NetTask::Upscale(upscale) => {
            let (region, tensor) = one_tile(&picture, upscale);
            let output = run(session, task, &tensor)?;
            let scale = upscale.upscale.scale;
            let trim = Trim { padding: upscale.tiling.padding, scale, halve: false };
            let [red, green, blue] =
                tile::planes(&output, &region, trim).map_err(|error| error.to_string())?;
            let made = red.iter().zip(&green).zip(&blue);
            let made = made.flat_map(|((r, g), b)| [*r, *g, *b].map(tile::to_byte)).collect();
            (scale, made, expected.rgb.clone())
        }
    };
    if (expected.width, expected.height) != (picture.width * scale, picture.height * scale) {
        return Err(match scale {
            1 => "the expected result has another size".to_owned(),
            _ => format!("the expected result is not {scale} times its size"),
        });
    }
    let sum: u64 = made.iter().zip(&expected_samples).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    Ok(sum as f32 / 255.0 / made.len() as f32)
}
