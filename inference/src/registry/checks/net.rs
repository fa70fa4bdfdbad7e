//! What is judged of one net: its tensors, one run of it, and known pictures.

use std::fs;
use std::path::Path;

use ndarray::Array4;

use super::Outcome;
use crate::device::Device;
use crate::manifest::{Golden, NetTask, Segmentation, Upscale};
use crate::session::{Port, Session};
use retouch_pixels::alpha::MapRange;
use retouch_pixels::decode::decode;
use retouch_pixels::tile::{self, Region, Trim};
use retouch_pixels::{Limits, Picture};

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
        NetTask::Segmentation(segmentation) => segmentation.input.to_tensor(&picture),
        NetTask::Upscale(upscale) => tile_tensor(&picture, &whole_of(&picture), upscale),
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
    // The picture has a subject and colours: whatever a model makes of them, it is not one value.
    if high <= low {
        return Some(format!(
            "its output is {low} everywhere, for a picture of a disc on a gradient"
        ));
    }
    match task {
        NetTask::Segmentation(segmentation) => {
            // Half a unit of overshoot is no reason to refuse: it is cut off.
            let is_sane = match segmentation.postprocess.range {
                MapRange::Clip => low >= -0.5 && high <= 1.5,
                MapRange::Minmax | MapRange::Sigmoid => low.abs().max(high.abs()) < 1e4,
            };
            (!is_sane).then(|| format!("its output lies in {low}..{high}, which is no map"))
        }
        // Generative upscalers overshoot; what is far from 0..1 is another range, or noise.
        NetTask::Upscale(_) => (low < -1.0 || high > 2.0)
            .then(|| format!("its output lies in {low}..{high}, not in 0..1")),
    }
}

/// All of a picture.
fn whole_of(picture: &Picture) -> Region {
    Region { x: 0..picture.width, y: 0..picture.height }
}

/// A region of a picture, with its padding, as f32 `[1, 3, height, width]`.
fn tile_tensor(picture: &Picture, region: &Region, upscale: &Upscale) -> Array4<f32> {
    let Upscale { input, tiling, .. } = upscale;
    let cut = tile::cut(picture, region, tiling.padding, tiling.multiple_of);
    tile::to_tensor(&cut, &input.normalization())
}

/// What the model makes of a region as one tile: the samples of R, G and B, `scale` times as wide and high.
fn enlarge(
    session: &mut Session,
    upscale: &Upscale,
    picture: &Picture,
    region: &Region,
) -> Result<[Vec<u8>; 3], String> {
    let tensor = tile_tensor(picture, region, upscale);
    let output = run(session, NetTask::Upscale(upscale), &tensor)?;
    let (padding, scale) = (upscale.tiling.padding, upscale.upscale.scale);
    let planes = tile::planes(&output, region, Trim { padding, scale, halve: false })
        .map_err(|error| error.to_string())?;
    Ok(planes.map(|plane| plane.into_iter().map(tile::to_byte).collect()))
}

/// The side of the picture that tiles are tried with, and where it is cut: at an odd pixel, as pictures are.
const TILED_SIDE: u32 = 33;
const TILES_MEET_AT: u32 = 17;

/// Compares two tiles of a small picture with the whole of it, as exact tiling promises: one with neighbours at the
/// right and below, one with neighbours at the left and above.
pub fn tile_exactly(session: &mut Session, upscale: &Upscale, device: Device) -> Outcome<()> {
    // Other shapes may be computed in another order, and on a GPU with half of the digits.
    let accepted = match device {
        Device::Cpu => 1,
        Device::Cuda => 4,
    };
    let levels = match tile_difference(session, upscale) {
        Ok(levels) => levels,
        Err(reason) => return Outcome::refused(reason),
    };
    let padding = upscale.tiling.padding;
    let reasons = Vec::from_iter((levels > accepted).then(|| {
        format!(
            "tiles differ from the whole picture by up to {levels} of 255 levels, at most {accepted} is accepted: the \
             model looks further than tiling.padding = {padding}, give it more, or tiling.mode = \"blend\""
        )
    }));
    let finding = format!("tiles differ from the whole picture by {levels} of 255 levels at most");
    Outcome { finding, reasons, value: Some(()) }
}

/// The largest difference of a sample, in levels of 0..=255.
fn tile_difference(session: &mut Session, upscale: &Upscale) -> Result<u8, String> {
    let picture = noise(TILED_SIDE);
    let whole = enlarge(session, upscale, &picture, &whole_of(&picture))?;
    let scale = upscale.upscale.scale as usize;
    let mut furthest = 0;
    for side in [0..TILES_MEET_AT, TILES_MEET_AT..TILED_SIDE] {
        let region = Region { x: side.clone(), y: side };
        let tile = enlarge(session, upscale, &picture, &region)?;
        let (start, width) = (region.x.start as usize * scale, region.width() as usize * scale);
        for (whole, tile) in whole.iter().zip(&tile) {
            let rows = whole.chunks_exact(TILED_SIDE as usize * scale).skip(start);
            let same = rows.flat_map(|row| &row[start..start + width]);
            let differences = same.zip(tile).map(|(a, b)| a.abs_diff(*b));
            furthest = differences.fold(furthest, u8::max);
        }
    }
    Ok(furthest)
}

/// A picture in which hardly two pixels are alike: whatever is missing around a tile shows.
fn noise(side: u32) -> Picture {
    let mut state = 1_u32;
    let samples = (0..side * side * 3).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let rgb = samples.collect();
    Picture { width: side, height: side, rgb, alpha: None, gray: false, icc: None }
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
    let (finding, reasons) = match golden_error(session, task, folder, golden) {
        Ok(error) => (
            format!("{name} off by {error:.5}, at most {tolerance} is accepted"),
            Vec::from_iter((error.is_nan() || error > tolerance).then(|| {
                format!(
                    "{name}: the result is off by {error:.4} on average, at most {tolerance} is accepted"
                )
            })),
        ),
        Err(reasons) => (String::new(), reasons),
    };
    // The other golden pictures say more.
    Outcome { finding, reasons, value: Some(()) }
}

/// The mean absolute error of the result's samples as 0..=1; else everything that keeps it from being known, each in
/// one sentence with the file that it is about.
fn golden_error(
    session: &mut Session,
    task: NetTask<'_>,
    folder: &Path,
    golden: &Golden,
) -> Result<f32, Vec<String>> {
    let pictures = (picture_at(folder, &golden.image), picture_at(folder, &golden.expected));
    let (picture, expected) = match pictures {
        (Ok(picture), Ok(expected)) => (picture, expected),
        (picture, expected) => {
            return Err([picture.err(), expected.err()].into_iter().flatten().collect());
        }
    };
    let scale = match task {
        NetTask::Segmentation(_) => 1,
        NetTask::Upscale(upscale) => upscale.upscale.scale,
    };
    let (width, height) = (picture.width * scale, picture.height * scale);
    if (expected.width, expected.height) != (width, height) {
        return Err(vec![format!(
            "{}: it has another size than what is made of {}: {} × {}, not {width} × {height}",
            golden.expected.display(),
            golden.image.display(),
            expected.width,
            expected.height
        )]);
    }
    let made = golden_samples(session, task, &picture)
        .map_err(|reason| vec![format!("{}: {reason}", golden.image.display())])?;
    // Of three equal samples of a gray picture the first is enough.
    let step = match task {
        NetTask::Segmentation(_) => 3,
        NetTask::Upscale(_) => 1,
    };
    let expected = expected.rgb.iter().step_by(step);
    let sum: u64 = made.iter().zip(expected).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    Ok(sum as f32 / 255.0 / made.len() as f32)
}

/// A decoded picture of a model's folder; else why there is none, with its name.
fn picture_at(folder: &Path, path: &Path) -> Result<Picture, String> {
    let failed = |error: String| format!("{}: {error}", path.display());
    let bytes = fs::read(folder.join(path)).map_err(|error| failed(error.to_string()))?;
    decode(&bytes, &Limits::default()).map_err(|error| failed(error.to_string()))
}

/// What a model makes of a known picture: alpha of every pixel, or R, G, B of every pixel of a larger picture.
fn golden_samples(
    session: &mut Session,
    task: NetTask<'_>,
    picture: &Picture,
) -> Result<Vec<u8>, String> {
    match task {
        NetTask::Segmentation(segmentation) => {
            let map = run(session, task, &segmentation.input.to_tensor(picture))?;
            segmentation.postprocess.to_alpha(&map, picture).map_err(|error| error.to_string())
        }
        NetTask::Upscale(upscale) => {
            let [red, green, blue] = enlarge(session, upscale, picture, &whole_of(picture))?;
            let made = red.into_iter().zip(green).zip(blue);
            Ok(made.flat_map(|((red, green), blue)| [red, green, blue]).collect())
        }
    }
}
