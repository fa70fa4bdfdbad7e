//! Makes an area clearer at the size it has: the upscaler makes it larger, and a resize brings it back. Noise
//! and the blocks of JPEG go, edges get firm.
//!
//! Where an area holds nothing in its finest octave, because it is out of focus or was enlarged, the model is
//! given half of its size: what it makes of that has detail where there was none.

use std::time::Duration;

use retouch_catalog::{Count, CountUnit};
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use crate::tools::upscale::Net;
use retouch_inference::manifest::Upscale;
use retouch_pixels::Picture;
use retouch_pixels::patch::{Crop, resized};
use retouch_pixels::tile::{self, Region, Trim};

/// Below this share of the next octave's strength the finest one is empty. Sharp photos have more than half.
const EMPTY_OCTAVE: f32 = 0.3;

/// Input pixels around a tile that the resize back sees: its filter ends before.
const MARGIN: u32 = 4;

/// The crop with all of it made clearer, and how long the model ran.
pub async fn clarify(
    crop: Crop,
    net: &impl Net,
    pixels: &PixelPool,
    progress: &(dyn Fn(Count) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<(Crop, Vec<u8>, Duration), ToolError> {
    let (crop, picture, factor) = pixels
        .run(move || {
            let size = (crop.width, crop.height);
            let reduction = if is_empty_octave(&crop) && size.0.min(size.1) >= 32 { 2 } else { 1 };
            let small = (size.0.div_ceil(reduction), size.1.div_ceil(reduction));
            let rgb = resized(crop.rgb.clone(), size, small)?;
            let picture = Picture {
                width: small.0,
                height: small.1,
                rgb,
                alpha: None,
                gray: false,
                icc: None,
            };
            Ok::<_, ToolError>((crop, picture, reduction))
        })
        .await??;
    let Upscale { input, tiling, upscale, .. } = net.contract().clone();
    let normalization = input.normalization();
    let step = tiling.largest.min(256);
    let (columns, rows) = (picture.width.div_ceil(step), picture.height.div_ceil(step));
    let size = (picture.width * factor, picture.height * factor);
    let mut made = vec![0; size.0 as usize * size.1 as usize * 3];
    let mut ran = Duration::ZERO;
    let picture = std::sync::Arc::new(picture);
    for index in 0..columns * rows {
        if cancel.is_cancelled() {
            return Err(ToolError::Canceled);
        }
        let (x, y) = (index % columns * step, index / columns * step);
        let region =
            Region { x: x..(x + step).min(picture.width), y: y..(y + step).min(picture.height) };
        // What blends where tiles meet is no use here: the padding is what keeps them alike.
        let padding = tiling.padding.max(2 * MARGIN);
        let (source, part) = (std::sync::Arc::clone(&picture), region.clone());
        let multiple_of = tiling.multiple_of;
        let tensor = pixels
            .run(move || {
                tile::to_tensor(&tile::cut(&source, &part, padding, multiple_of), &normalization)
            })
            .await?;
        let inference = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ToolError::Canceled),
            inference = net.enlarge(tensor) => inference?,
        };
        ran += inference.ran;
        let scale = upscale.scale;
        let part = region.clone();
        let tile =
            pixels.run(move || back_to(&inference.output, &part, padding, scale, factor)).await??;
        put(&mut made, size.0, &region, factor, &tile);
        progress(Count { unit: CountUnit::Tiles, done: index + 1, total: columns * rows });
    }
    let wanted = (crop.width, crop.height);
    let made = pixels
        .run(move || {
            // Half of an odd side, doubled, is a pixel more.
            let stride = size.0 as usize * 3;
            let rows = made.chunks_exact(stride).take(wanted.1 as usize);
            rows.flat_map(|row| &row[..wanted.0 as usize * 3]).copied().collect::<Vec<_>>()
        })
        .await?;
    Ok((crop, made, ran))
}

/// The pixels of a region, `factor` for each of its own a side, from an output that has `scale`.
fn back_to(
    output: &ndarray::Array4<f32>,
    region: &Region,
    padding: u32,
    scale: u32,
    factor: u32,
) -> Result<Vec<u8>, ToolError> {
    let around = Region { x: 0..region.width() + 2 * MARGIN, y: 0..region.height() + 2 * MARGIN };
    let trim = Trim { padding: padding - MARGIN, scale, halve: false };
    let [red, green, blue] = tile::planes(output, &around, trim)?;
    let large: Vec<u8> = red
        .iter()
        .zip(&green)
        .zip(&blue)
        .flat_map(|((r, g), b)| [*r, *g, *b].map(tile::to_byte))
        .collect();
    let size = (around.width() * factor, around.height() * factor);
    let small = resized(large, (around.width() * scale, around.height() * scale), size)?;
    let margin = (MARGIN * factor) as usize;
    let inner = (region.width() * factor) as usize;
    let rows = small
        .chunks_exact(size.0 as usize * 3)
        .skip(margin)
        .take((region.height() * factor) as usize);
    Ok(rows.flat_map(|row| &row[margin * 3..(margin + inner) * 3]).copied().collect())
}

fn put(made: &mut [u8], width: u32, region: &Region, factor: u32, tile: &[u8]) {
    let inner = (region.width() * factor) as usize * 3;
    let left = (region.x.start * factor) as usize * 3;
    let rows = made.chunks_exact_mut(width as usize * 3).skip((region.y.start * factor) as usize);
    for (row, tile) in rows.zip(tile.chunks_exact(inner)) {
        row[left..left + inner].copy_from_slice(tile);
    }
}

/// Whether what is to be made clearer has nothing in its finest octave.
fn is_empty_octave(crop: &Crop) -> bool {
    let (width, height) = (crop.width as usize, crop.height as usize);
    // The mean difference of samples so many pixels apart, where all three lie in the hole.
    let strength = |step: usize| {
        let (mut sum, mut count) = (0_u64, 0_u64);
        for y in 0..height {
            for x in step..width.saturating_sub(step) {
                let at = y * width + x;
                if !(crop.hole[at - step] && crop.hole[at] && crop.hole[at + step]) {
                    continue;
                }
                let green = |at: usize| i32::from(crop.rgb[at * 3 + 1]);
                let bend = 2 * green(at) - green(at - step) - green(at + step);
                sum += u64::from(bend.unsigned_abs());
                count += 1;
            }
        }
        sum as f32 / count.max(1) as f32
    };
    strength(1) < EMPTY_OCTAVE * strength(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crop(samples: impl Fn(u32, u32) -> u8) -> Crop {
        let (width, height) = (64, 64);
        let rgb = (0..width * height).flat_map(|at| [samples(at % width, at / width); 3]).collect();
        let region = Region { x: 0..width, y: 0..height };
        Crop { region, width, height, shown: (width, height), rgb, hole: vec![true; 64 * 64] }
    }

    #[test]
    fn what_is_blurred_is_told_from_what_is_sharp() {
        let sharp = crop(|x, y| if (x * 7 + y * 13) % 11 < 5 { 30 } else { 200 });
        let blurred = crop(|x, _| (127.0 + 100.0 * (x as f32 / 6.0).sin()) as u8);
        assert!(!is_empty_octave(&sharp));
        assert!(is_empty_octave(&blurred));
    }
}
