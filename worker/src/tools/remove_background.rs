//! Remove background: cuts the subject out at full resolution with soft alpha. The job runner and the command line both
//! call [`remove_background`].

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, Steps};
use crate::pixel_pool::PixelPool;
use crate::tools::{Made, ToolError};
use retouch_inference::manifest::Task;
use retouch_inference::registry::ModelHandle;
use retouch_pixels::Limits;
use retouch_pixels::cutout::FAINTEST;
use retouch_pixels::decode::decode;
use retouch_pixels::encode::Channels;
use retouch_pixels::foreground::EdgeColors;
use retouch_pixels::icc;
use retouch_pixels::result;

/// A cutout counts as empty if fewer than one in this many pixels is visible and kept by half or more. In a picture of 12
/// megapixels, the limit is a square of 35 pixels a side.
const PIXELS_PER_SUBJECT: usize = 10_000;

/// Returns the peak memory of a run in bytes, without models: the decoded picture, its alpha, the cutout and the
/// encoder's buffers.
pub fn memory_bytes(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height) * 24
}

/// Returns the number of pixels with an alpha of at least one half in the cutout. Does not count those that are nearly
/// transparent in the picture itself, whose alpha is `own`.
fn visible(alpha: &[u8], own: Option<&[u8]>) -> usize {
    let is_kept = |alpha: u8| alpha >= 128;
    match own {
        Some(own) => {
            let both = alpha.iter().zip(own);
            both.filter(|(alpha, own)| is_kept(**alpha) && **own >= FAINTEST).count()
        }
        None => alpha.iter().filter(|alpha| is_kept(**alpha)).count(),
    }
}

/// Cuts the subject out of its background. Returns an RGBA PNG of the input's upright size.
///
/// Calls `progress` when a stage starts. `cancel` takes effect between stages and while waiting for a thread or the
/// model.
///
/// # Errors
/// [`ToolError::NoSubject`] if hardly any pixel of the cutout would be visible; otherwise see [`ToolError`].
pub async fn remove_background(
    input: Bytes,
    model: &ModelHandle,
    pixels: &PixelPool,
    limits: &Limits,
    cancel: &CancellationToken,
    progress: impl Fn(Stage) + Send,
) -> Result<(Bytes, Made), ToolError> {
    let Task::Segmentation(contract) = model.task().clone() else {
        return Err(ToolError::Model(format!("{} is not a segmentation model", model.identity())));
    };
    let limits = *limits;
    let mut steps = Steps::new(pixels, cancel, progress);

    let picture = steps.on_pixels(Stage::Decode, move || Ok(decode(&input, &limits)?)).await?;
    let announcement = model.announce();
    let (contract, picture, seen, input, clear) = steps
        .on_pixels(Stage::Preprocess, move || {
            let seen = picture.alpha.is_some().then(|| picture.clone().on_gray());
            let input = contract.input.to_bytes(seen.as_ref().unwrap_or(&picture));
            // Take edges and colors from the picture itself, not from its copy on gray.
            let clear = contract.input.stretched(&input, (picture.width, picture.height));
            Ok((contract, picture, seen, input, clear))
        })
        .await?;
    let map = steps.on_model(model, announcement, clear).await?.into_maps()?;
    let (picture, alpha) = steps
        .on_pixels(Stage::Postprocess, move || {
            let seen = seen.as_ref().unwrap_or(&picture);
            let alpha = contract.to_alpha(&map.view(), seen, &input)?;
            // Don't charge for an empty cutout. The net may mistake a transparent area for the subject.
            if visible(&alpha, picture.alpha.as_deref()) * PIXELS_PER_SUBJECT < alpha.len() {
                return Err(ToolError::NoSubject);
            }
            Ok((picture, alpha))
        })
        .await?;
    let (picture, alpha, colors) = steps
        .on_pixels(Stage::Foreground, move || {
            let colors = EdgeColors::estimate(&picture, &alpha);
            Ok((picture, alpha, colors))
        })
        .await?;
    let size = (picture.width, picture.height);
    let (png, copies) = steps
        .on_pixels(Stage::Encode, move || {
            let icc = picture.icc.as_deref().and_then(icc::of_rgb);
            Ok(result::encode(size, Channels::Rgba, icc.as_deref(), |rows, out| {
                colors.cut_out(&picture, &alpha, rows, out);
            })?)
        })
        .await?;
    Ok((png, Made { copies, size, stages: steps.times }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faint_picture_has_a_subject_and_a_transparent_one_has_none() {
        assert_eq!(visible(&[255, 128, 127, 0], None), 2);
        assert_eq!(visible(&[255, 200, 255, 255], Some(&[102, 60, 4, 0])), 2);
    }
}
