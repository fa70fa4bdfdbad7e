//! Restores detail in an area at its own size: the upscaler enlarges it, and a resize brings it back. This removes noise
//! and JPEG blocks and sharpens edges.
//!
//! If the area has no detail in its finest octave, because it is out of focus or was enlarged, the model gets it at half
//! the size and its output adds the missing detail. A net that does not enlarge only cleans.

use std::sync::Arc;
use std::time::Duration;

use retouch_catalog::{Count, CountUnit};
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use crate::tools::upscale::Net;
use retouch_inference::manifest::{Tiling, Upscale};
use retouch_pixels::Picture;
use retouch_pixels::band::{self, BandTile};
use retouch_pixels::patch::Crop;
use retouch_pixels::resize::resample;
use retouch_pixels::tile::{self, OutputLayout, Region, TileSize};

/// The finest octave is empty if its strength is below this share of the next octave's. In sharp photos the share is
/// above one half.
const EMPTY_OCTAVE: f32 = 0.3;

/// Input pixels around a tile for the resize back; more than its filter needs.
const MARGIN: u32 = Upscale::MARGIN;

/// The largest side of a tile, in input pixels.
const LARGEST_SIDE: u32 = Upscale::LARGEST_AREA;

/// Restores detail in a whole crop. Returns the crop, its new R, G, B, and how long the model ran. If the model runs out of
/// memory, starts again with tiles of half the size.
pub async fn clarify(
    crop: Crop,
    net: &impl Net,
    pixels: &PixelPool,
    tile_memory_bytes: u64,
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
    let Tiling { padding, smallest, .. } = contract.tiling;
    let mut tile_size = contract.tile_size();
    let (mut side, padding) = if let Some(side) = contract.fixed_region(padding.max(MARGIN)) {
        // It has no room to spare.
        (side, padding.max(MARGIN))
    } else {
        let padding = padding.max(2 * MARGIN);
        let side = contract.tiling.side_within(padding, tile_memory_bytes).min(LARGEST_SIDE);
        if net.has_few_shapes() {
            let (largest, smallest) = (side + 2 * padding, smallest + 2 * padding);
            let multiple_of = contract.tiling.multiple_of;
            tile_size = TileSize::Halving { largest, smallest, multiple_of };
        }
        (side, padding)
    };
    side = side.min(LARGEST_SIDE);
    let row = picture.width as usize * factor as usize * 3;
    let picture = Arc::new(picture);
    let (clarified, ran) = loop {
        let tiles = Tiles { picture: Arc::clone(&picture), side, padding, tile_size, factor };
        match tiles.clarify(net, pixels, progress, cancel).await {
            Err(ToolError::OutOfMemory(reason)) if side > smallest => {
                let longest = side.min(picture.width.max(picture.height));
                side = tile_size.half_as_large(longest, padding).max(smallest);
                tracing::warn!(reason, "Out of memory; starting again with tiles of {side} pixels");
            }
            made => break made?,
        }
    };
    let (width, height) = (crop.width as usize, crop.height as usize);
    let clarified = pixels
        .run(move || {
            // Halving and doubling an odd side adds a pixel.
            let rows = clarified.chunks_exact(row).take(height);
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

/// A picture in tiles.
struct Tiles {
    picture: Arc<Picture>,
    /// The largest side of a tile, without padding.
    side: u32,
    padding: u32,
    tile_size: TileSize,
    /// Output pixels per input pixel, along each side.
    factor: u32,
}

impl Tiles {
    /// Returns R, G, B of the clarified picture, and how long the model ran.
    async fn clarify(
        self,
        net: &impl Net,
        pixels: &PixelPool,
        progress: &(dyn Fn(Count) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<(Vec<u8>, Duration), ToolError> {
        let Self { picture, side, padding, tile_size, factor } = self;
        let scale = net.contract().upscale.scale;
        let width = picture.width * factor;
        let mut clarified = vec![0; width as usize * (picture.height * factor) as usize * 3];
        let mut ran = Duration::ZERO;
        // The padding makes tiles match at their borders, so none fades into another.
        let tiles: Vec<_> = band::pieces(picture.height, side, 0)
            .iter()
            .flat_map(|rows| band::tiles(picture.width, rows, side, 0))
            .collect();
        let total = tiles.len() as u32;
        for (done, BandTile { region, .. }) in (1..).zip(tiles) {
            let (source, part) = (Arc::clone(&picture), region.clone());
            let cut = move || tile::cut(&source, &part, padding, tile_size).colors();
            let input = pixels.run(cut).await?;
            let inference = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ToolError::Canceled),
                inference = net.enlarge(None, input) => inference?,
            };
            ran += inference.ran;
            let (part, output) = (region.clone(), inference.output.into_pictures()?);
            let resize = move || resize_back(&output, &part, padding, scale, factor);
            let tile = pixels.run(resize).await??;
            paste(&mut clarified, width, &region, factor, &tile);
            progress(Count { unit: CountUnit::Tiles, done, total });
        }
        Ok((clarified, ran))
    }
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
    use std::path::Path;
    use std::sync::Mutex;

    use ndarray::Array4;
    use retouch_inference::manifest::{Manifest, Task};
    use retouch_inference::output::{Extremes, Output};
    use retouch_inference::registry::{Announcement, Inference};
    use retouch_inference::session::SessionError;

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

    /// Repeats pixels, and takes tiles of at most this side with their padding.
    struct Repeating {
        contract: Upscale,
        largest: usize,
    }

    impl Net for Repeating {
        fn contract(&self) -> &Upscale {
            &self.contract
        }

        async fn enlarge(
            &self,
            _: Option<Announcement>,
            tile: Array4<u8>,
        ) -> Result<Inference, SessionError> {
            let (_, height, width, _) = tile.dim();
            if height.max(width) > self.largest {
                return Err(SessionError::OutOfMemory("the test's limit".to_owned()));
            }
            let scale = self.contract.upscale.scale as usize;
            let shape = (1, height * scale, width * scale, 3);
            let samples =
                Array4::from_shape_fn(shape, |(_, y, x, c)| tile[[0, y / scale, x / scale, c]]);
            let extremes = vec![Some(Extremes { least: 0.0, largest: 1.0 })];
            let output = Output::Pictures { samples, extremes };
            Ok(Inference { output, waited: Duration::ZERO, ran: Duration::ZERO })
        }
    }

    #[tokio::test]
    async fn tiles_fit_into_memory_and_shrink_when_it_runs_out() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tiny/upscale");
        let Task::Upscale(contract) = Manifest::read(&models).expect("it is valid").task else {
            panic!("an upscaler");
        };
        let per_pixel = u64::from(contract.tiling.memory_bytes_per_pixel);
        let pixels = PixelPool::new(1).expect("a thread starts");
        let sharp = || crop(|x, y| if (x * 7 + y * 13) % 11 < 5 { 30 } else { 200 });
        let mut whole = None;
        // Padding takes 16 pixels. Memory for 48 leaves tiles of 32; a net that takes 40 gets tiles of 16.
        for (memory, largest, tiles) in
            [(1000, 1000, 1), (48, 1000, 4), (48, 40, 16), (1000, 40, 16)]
        {
            let net = Repeating { contract: contract.clone(), largest };
            let counted = Mutex::new(Vec::new());
            let progress = |count| counted.lock().expect("one").push(count);
            let (memory, never) = (memory * memory * per_pixel, CancellationToken::new());
            let made = clarify(sharp(), &net, &pixels, memory, &progress, &never).await;
            let (_, made, _) = made.expect("it is clarified");
            let total = counted.lock().expect("one").last().map(|count| count.total);
            assert_eq!(total, Some(tiles), "memory {memory}, largest {largest}");
            assert!(*whole.get_or_insert_with(|| made.clone()) == made, "tiles show");
        }
    }
}
