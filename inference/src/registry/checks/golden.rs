//! The golden step of a net: known pictures come out as expected.

use std::fs;
use std::path::Path;

use retouch_pixels::decode::decode;
use retouch_pixels::{Limits, Picture};

use super::run::{enlarge_picture, run};
use crate::manifest::{Golden, NetTask};
use crate::registry::steps::Outcome;
use crate::session::PictureNet;

/// Compares the result for one golden image with the expected one.
pub fn compare(
    net: &mut PictureNet,
    task: NetTask<'_>,
    folder: &Path,
    golden: &Golden,
) -> Outcome<()> {
    let (name, tolerance) = (golden.image.display(), golden.accepted_error(&task.tensors()));
    let limit = match golden.tolerance {
        Some(_) => "the manifest accepts",
        None => "without golden.tolerance, these element types accept",
    };
    let (finding, reasons) = match mean_error(net, task, folder, golden) {
        Ok(error) => (
            format!("{name}: mean error {error:.5}, accepted {tolerance}"),
            Vec::from_iter((error.is_nan() || error > tolerance).then(|| {
                format!("{name}: the mean error is {error:.4}, but {limit} at most {tolerance}")
            })),
        ),
        Err(reasons) => (String::new(), reasons),
    };
    // A failed comparison does not prevent comparing the other golden images.
    Outcome { finding, reasons, value: Some(()) }
}

/// Returns the mean absolute error of the result, for samples in 0..=1.
///
/// # Errors
/// Everything that prevents the comparison, one sentence each, starting with the file name.
fn mean_error(
    net: &mut PictureNet,
    task: NetTask<'_>,
    folder: &Path,
    golden: &Golden,
) -> Result<f32, Vec<String>> {
    let pictures = (read_picture(folder, &golden.image), read_picture(folder, &golden.expected));
    let (picture, expected) = match pictures {
        (Ok(picture), Ok(expected)) => (picture, expected),
        (picture, expected) => {
            return Err([picture.err(), expected.err()].into_iter().flatten().collect());
        }
    };
    let is_alpha = expected.alpha.is_none()
        && expected
            .rgb
            .as_chunks()
            .0
            .iter()
            .all(|[red, green, blue]| red == green && green == blue);
    if matches!(task, NetTask::Segmentation(_)) && !is_alpha {
        let name = golden.expected.display();
        return Err(vec![format!("{name}: it must be the alpha as a gray picture, not a cutout")]);
    }
    let scale = match task {
        NetTask::Segmentation(_) => 1,
        NetTask::Upscale(upscale) => upscale.upscale.scale,
    };
    let (width, height) = (picture.width * scale, picture.height * scale);
    if (expected.width, expected.height) != (width, height) {
        return Err(vec![format!(
            "{}: the size is {} × {}, but the result for {} is {width} × {height}",
            golden.expected.display(),
            expected.width,
            expected.height,
            golden.image.display()
        )]);
    }
    let made = result_samples(net, task, &picture)
        .map_err(|reason| vec![format!("{}: {reason}", golden.image.display())])?;
    // A gray picture has three equal samples per pixel; the first is enough.
    let step = match task {
        NetTask::Segmentation(_) => 3,
        NetTask::Upscale(_) => 1,
    };
    let expected = expected.rgb.iter().step_by(step);
    let sum: u64 = made.iter().zip(expected).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    Ok(sum as f32 / 255.0 / made.len() as f32)
}

/// Reads a picture in a model's folder. An error starts with the file name.
fn read_picture(folder: &Path, path: &Path) -> Result<Picture, String> {
    let failed = |error: String| format!("{}: {error}", path.display());
    let bytes = fs::read(folder.join(path)).map_err(|error| failed(error.to_string()))?;
    decode(&bytes, &Limits::default()).map_err(|error| failed(error.to_string()))
}

/// Runs the model on a picture. Returns alpha per pixel, or R, G, B per pixel of the larger picture.
fn result_samples(
    net: &mut PictureNet,
    task: NetTask<'_>,
    picture: &Picture,
) -> Result<Vec<u8>, String> {
    match task {
        NetTask::Segmentation(segmentation) => {
            let output = run(net, &segmentation.input.to_bytes(picture))?;
            let alpha = output.into_maps().and_then(|map| {
                segmentation.enlarge_map(&map.view(), (picture.width, picture.height))
            });
            alpha.map_err(|error| error.to_string())
        }
        NetTask::Upscale(upscale) => enlarge_picture(net, upscale, picture),
    }
}
