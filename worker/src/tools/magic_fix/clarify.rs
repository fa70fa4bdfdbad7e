//! Restores detail in an area at its own size: the upscaler enlarges it, and a resize brings it back. This removes noise
//! and JPEG blocks and sharpens edges.
//!
//! If the area has no detail in its finest octave, because it is out of focus or was enlarged, the model gets it at half
//! the size and its output adds the missing detail. A net that does not enlarge only cleans.

use std::time::Duration;

use retouch_catalog::{Count, CountUnit};
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use crate::tools::upscale::Net;
use retouch_inference::manifest::Upscale;
use retouch_pixels::Picture;
use retouch_pixels::patch::Crop;
use retouch_pixels::resize::resample;
use retouch_pixels::tile::{self, OutputLayout, Region};

/// The finest octave is empty if its strength is below this share of the next octave's. In sharp photos the share is
/// above one half.
const EMPTY_OCTAVE: f32 = 0.3;

/// Input pixels around a tile for the resize back; more than its filter needs.
const MARGIN: u32 = Upscale::MARGIN;

/// The largest side of a tile, in input pixels.
const MAX_STEP: u32 = Upscale::LARGEST_AREA;

/// Restores detail in a whole crop. Returns the crop, its new R, G, B, and how long the model ran.
pub async fn clarify(
    crop: Crop,
    net: &impl Net,
    pixels: &PixelPool,
    progress: &(dyn Fn(Count) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<(Crop, Vec<u8>, Duration), ToolError> {
    let contract = net.contract().clone();
    let adds_detail = contract.upscale.scale > 1;
    let (crop, picture, factor) = pixels
        .run(move || {
            let size = (crop.width, crop.height);
            let is_empty = adds_detail && size.0.min(size.1) >= 32 && has_empty_octave(&crop);
            let reduction = if is_empty { 2 } else { 1 };
            let small = (size.0.div_ceil(reduction), size.1.div_ceil(reduction));
            let rgb = resample(crop.rgb.clone(), size, small)?;
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
    let tile_size = contract.tile_size();
    let (scale, own_padding) = (contract.upscale.scale, contract.tiling.padding);
    // A tile of fixed size has no room to spare.
    let (step, padding) = match contract.fixed_region(own_padding.max(MARGIN)) {
        Some(side) => (side.min(MAX_STEP), own_padding.max(MARGIN)),
        None => (contract.tiling.largest.min(MAX_STEP), own_padding.max(2 * MARGIN)),
    };
    let (columns, rows) = (picture.width.div_ceil(step), picture.height.div_ceil(step));
    let size = (picture.width * factor, picture.height * factor);
    let mut clarified = vec![0; size.0 as usize * size.1 as usize * 3];
    let mut ran = Duration::ZERO;
    let picture = std::sync::Arc::new(picture);
    for index in 0..columns * rows {
        if cancel.is_cancelled() {
            return Err(ToolError::Canceled);
        }
        let (x, y) = (index % columns * step, index / columns * step);
        let region =
            Region { x: x..(x + step).min(picture.width), y: y..(y + step).min(picture.height) };
        // Tiles do not overlap here; the padding makes them match at their borders.
        let (source, part) = (std::sync::Arc::clone(&picture), region.clone());
        let input =
            pixels.run(move || tile::cut(&source, &part, padding, tile_size).colors()).await?;
        let inference = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ToolError::Canceled),
            inference = net.enlarge(None, input) => inference?,
        };
        ran += inference.ran;
        let (part, output) = (region.clone(), inference.output.into_pictures()?);
        let tile =
            pixels.run(move || resize_back(&output, &part, padding, scale, factor)).await??;
        paste(&mut clarified, size.0, &region, factor, &tile);
        progress(Count { unit: CountUnit::Tiles, done: index + 1, total: columns * rows });
    }
    let (width, height) = (crop.width as usize, crop.height as usize);
    let clarified = pixels
        .run(move || {
            // Halving and doubling an odd side adds a pixel.
            let rows = clarified.chunks_exact(size.0 as usize * 3).take(height);
            rows.flat_map(|row| &row[..width * 3]).copied().collect::<Vec<_>>()
        })
        .await?;
    Ok((crop, clarified, ran))
}

/// Resizes the model's output for a region from `scale` to `factor` pixels per input pixel along a side; returns R, G, B.
fn resize_back(
    output: &ndarray::Array4<u8>,
    region: &Region,
    padding: u32,
    scale: u32,
    factor: u32,
) -> Result<Vec<u8>, ToolError> {
    let around = Region { x: 0..region.width() + 2 * MARGIN, y: 0..region.height() + 2 * MARGIN };
    let layout = OutputLayout { padding: padding - MARGIN, scale, factor: scale };
    let large = tile::region_of(output, &around, layout)?;
    let size = (around.width() * factor, around.height() * factor);
    let small = resample(large, (around.width() * scale, around.height() * scale), size)?;
    let margin = (MARGIN * factor) as usize;
    let inner = (region.width() * factor) as usize;
    let rows = small
        .chunks_exact(size.0 as usize * 3)
        .skip(margin)
        .take((region.height() * factor) as usize);
    Ok(rows.flat_map(|row| &row[margin * 3..(margin + inner) * 3]).copied().collect())
}

fn paste(clarified: &mut [u8], width: u32, region: &Region, factor: u32, tile: &[u8]) {
    let inner = (region.width() * factor) as usize * 3;
    let left = (region.x.start * factor) as usize * 3;
    let rows =
        clarified.chunks_exact_mut(width as usize * 3).skip((region.y.start * factor) as usize);
    for (row, tile) in rows.zip(tile.chunks_exact(inner)) {
        row[left..left + inner].copy_from_slice(tile);
    }
}

/// Returns true if the hole has no detail in its finest octave.
fn has_empty_octave(crop: &Crop) -> bool {
    let (width, height) = (crop.width as usize, crop.height as usize);
    // The mean second difference over `step` pixels, where all three pixels are in the hole.
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
        Crop { region, width, height, content: (width, height), rgb, hole: vec![true; 64 * 64] }
    }

    #[test]
    fn blurred_and_sharp_areas_are_distinguished() {
        let sharp = crop(|x, y| if (x * 7 + y * 13) % 11 < 5 { 30 } else { 200 });
        let blurred = crop(|x, _| (127.0 + 100.0 * (x as f32 / 6.0).sin()) as u8);
        assert!(!has_empty_octave(&sharp));
        assert!(has_empty_octave(&blurred));
    }
}
