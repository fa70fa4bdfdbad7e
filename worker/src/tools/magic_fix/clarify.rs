//! Restores detail in an area at its own size: the upscaler enlarges it, and a resize brings it back. This removes noise
//! and JPEG blocks and sharpens edges.
//!
//! If the area has no detail in its finest octave, because it is out of focus or was enlarged, the model gets it at half
//! the size and its output adds the missing detail. A net that does not enlarge only cleans.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use retouch_catalog::{Count, CountUnit};
use tokio_util::sync::CancellationToken;

use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;
use crate::tools::upscale::Net;
use retouch_inference::manifest::{Tiling, Upscale};
use retouch_pixels::Picture;
use retouch_pixels::band::{self, BandTile};
use retouch_pixels::patch::{self, Crop};
use retouch_pixels::resize::resample;
use retouch_pixels::tile::{self, COLOR_REACH, Correction, Region, TileSize};

/// The finest octave is empty if its strength is below this share of the next octave's. In sharp photos the share is
/// above one half.
const EMPTY_OCTAVE: f32 = 0.3;

/// Input pixels around a tile for the resize back; more than its filter needs.
const MARGIN: u32 = Upscale::MARGIN;

/// Maximum side of a tile, in input pixels.
const LARGEST_SIDE: u32 = Upscale::LARGEST_AREA;

/// Tiles in progress at once: the next one waits when the model has run one, so that it need not turn to inputs of other
/// callers, which may have another size.
const TILES_IN_FLIGHT: usize = 2;

/// Restores detail in the hole of a crop and as far around it as [`patch::RING`]; the rest may stay as it is. Returns
/// the crop, its new R, G, B, and how long the model ran. If the model runs out of memory, starts again with tiles of
/// half the size.
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
            // Halving an odd side would move every pixel but the first.
            let even = (small.0 * reduction, small.1 * reduction);
            let rgb = resample(with_sides(&crop.rgb, size, even), even, small)?;
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
        let source = Arc::clone(&picture);
        let tiles = Tiles { crop: &crop, picture: source, side, padding, tile_size, factor };
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
            // An odd side had a pixel more.
            let rows = clarified.chunks_exact(row).take(height);
            rows.flat_map(|row| &row[..width * 3]).copied().collect::<Vec<_>>()
        })
        .await?;
    Ok((crop, clarified, ran))
}

/// Repeats the last pixels of R, G, B, so that a picture of `from` (width, height) gets the size `to`, which is at
/// least as large.
fn with_sides(rgb: &[u8], from: (u32, u32), to: (u32, u32)) -> Vec<u8> {
    if from == to {
        return rgb.to_vec();
    }
    let row = |y: u32| {
        let row = &rgb[(y.min(from.1 - 1) * from.0) as usize * 3..][..from.0 as usize * 3];
        let more = row[row.len() - 3..].repeat((to.0 - from.0) as usize);
        row.iter().copied().chain(more)
    };
    (0..to.1).flat_map(row).collect()
}

/// Resizes the model's output for a region from `scale` to `factor` pixels per input pixel along a side; returns R, G, B.
fn resize_back(
    correction: &Correction<'_>,
    region: &Region,
    padding: u32,
    scale: u32,
    factor: u32,
) -> Result<Vec<u8>, ToolError> {
    let around = |length: u32| padding - MARGIN..padding + length + MARGIN;
    let large = correction.corrected(around(region.width()), around(region.height()));
    let (width, height) = (region.width() + 2 * MARGIN, region.height() + 2 * MARGIN);
    let size = (width * factor, height * factor);
    let small = resample(large, (width * scale, height * scale), size)?;
    let margin = (MARGIN * factor) as usize;
    let inner = (region.width() * factor) as usize;
    let rows = small
        .chunks_exact(size.0 as usize * 3)
        .skip(margin)
        .take((region.height() * factor) as usize);
    Ok(rows.flat_map(|row| &row[margin * 3..(margin + inner) * 3]).copied().collect())
}

struct Tiles<'a> {
    crop: &'a Crop,
    /// The model's input: the crop, or the crop at half size.
    picture: Arc<Picture>,
    /// Maximum side of a tile, without padding.
    side: u32,
    padding: u32,
    tile_size: TileSize,
    /// Output pixels per input pixel, along each side.
    factor: u32,
}

impl Tiles<'_> {
    /// Returns the regions of the tiles, in pixels of the picture: the tiles of the hole and of the ring around it.
    fn regions(&self) -> Vec<Region> {
        let Some(area) = self.around_hole() else { return Vec::new() };
        // The padding makes tiles match at their borders, so none fades into another.
        let tiles = band::pieces(area.height(), self.side, 0)
            .into_iter()
            .flat_map(|rows| band::tiles(area.width(), &rows, self.side, 0));
        let moved = tiles.map(|BandTile { region: Region { x, y }, .. }| Region {
            x: x.start + area.x.start..x.end + area.x.start,
            y: y.start + area.y.start..y.end + area.y.start,
        });
        moved.filter(|region| self.is_needed(region)).collect()
    }

    /// Returns the smallest region that holds the hole and the ring; `None` if there is no hole.
    fn around_hole(&self) -> Option<Region> {
        let Crop { width, height, hole, .. } = self.crop;
        let of_axis = |length: u32, filled: &dyn Fn(u32) -> bool| {
            let first = (0..length).find(|at| filled(*at))?;
            let last = (0..length).rfind(|at| filled(*at))?;
            let ring = patch::RING as u32;
            let (start, end) = (first.saturating_sub(ring), (last + 1 + ring).min(length));
            Some(start / self.factor..end.div_ceil(self.factor))
        };
        let at = |x: u32, y: u32| hole[(y * width + x) as usize];
        let x = of_axis(*width, &|x| (0..*height).any(|y| at(x, y)))?;
        let y = of_axis(*height, &|y| (0..*width).any(|x| at(x, y)))?;
        Some(Region { x, y })
    }

    /// Returns whether a part of the hole lies in a region of the picture, or so close to it that the ring does.
    fn is_needed(&self, region: &Region) -> bool {
        let Crop { width, height, hole, .. } = self.crop;
        let grown = |range: &Range<u32>, length: u32| {
            let ring = patch::RING as u32;
            let (start, end) = (range.start * self.factor, range.end * self.factor);
            start.saturating_sub(ring) as usize..(end + ring).min(length) as usize
        };
        let columns = grown(&region.x, *width);
        let rows = hole.chunks_exact(*width as usize);
        let rows = rows.take(grown(&region.y, *height).end).skip(grown(&region.y, *height).start);
        rows.flat_map(|row| &row[columns.clone()]).any(|is_hole| *is_hole)
    }

    /// Clarifies a region. Returns it with R, G, B of every pixel, and how long the model ran.
    async fn tile(
        &self,
        region: Region,
        net: &impl Net,
        pixels: &PixelPool,
    ) -> Result<(Region, Vec<u8>, Duration), ToolError> {
        let Self { padding, tile_size, factor, .. } = *self;
        let scale = net.contract().upscale.scale;
        let (source, part) = (Arc::clone(&self.picture), region.clone());
        let cut = move || tile::cut(&source, &part, padding, tile_size).colors();
        let input = pixels.run(cut).await?;
        let own = input.clone();
        let inference = net.enlarge(None, input).await?;
        let (part, output) = (region.clone(), inference.output.into_pictures()?);
        let resize = move || {
            let reach = (MARGIN + COLOR_REACH).min(padding);
            let around = |length: u32| padding - reach..padding + length + reach;
            let window = (around(part.width()), around(part.height()));
            let output = output.view();
            let correction = Correction::new(&output, &own, scale, window)?;
            resize_back(&correction, &part, padding, scale, factor)
        };
        Ok((region, pixels.run(resize).await??, inference.ran))
    }

    /// Returns R, G, B of the clarified picture, and how long the model ran.
    async fn clarify(
        &self,
        net: &impl Net,
        pixels: &PixelPool,
        progress: &(dyn Fn(Count) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<(Vec<u8>, Duration), ToolError> {
        let regions = self.regions();
        let Self { crop, picture, factor, .. } = self;
        let factor = *factor;
        let width = picture.width * factor;
        let row = width as usize * 3;
        let mut clarified = vec![0; row * (picture.height * factor) as usize];
        for (row, own) in
            clarified.chunks_exact_mut(row).zip(crop.rgb.chunks_exact(crop.width as usize * 3))
        {
            row[..own.len()].copy_from_slice(own);
        }
        let (mut ran, mut done, total) = (Duration::ZERO, 0, regions.len() as u32);
        let tiles = stream::iter(regions).map(|region| self.tile(region, net, pixels));
        let mut tiles = pin!(tiles.buffered(TILES_IN_FLIGHT));
        loop {
            let tile = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ToolError::Canceled),
                tile = tiles.try_next() => tile?,
            };
            let Some((region, tile, took)) = tile else { break };
            ran += took;
            done += 1;
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
        Crop {
            region,
            width,
            height,
            content: (width, height),
            rgb,
            hole: vec![true; 64 * 64],
            hidden: None,
        }
    }

    #[test]
    fn blurred_and_sharp_areas_are_distinguished() {
        let sharp = crop(|x, y| if (x * 7 + y * 13) % 11 < 5 { 30 } else { 200 });
        let blurred = crop(|x, _| (127.0 + 100.0 * (x as f32 / 6.0).sin()) as u8);
        assert!(!has_empty_octave(&sharp));
        assert!(has_empty_octave(&blurred));
    }

    #[tokio::test]
    async fn a_soft_area_stays_where_it_is_whatever_its_size() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tiny/upscale");
        let Task::Upscale(contract) = Manifest::read(&models).expect("it is valid").task else {
            panic!("an upscaler");
        };
        let (net, never) = (Repeating { contract, largest: 1000 }, CancellationToken::new());
        let pixels = PixelPool::new(1).expect("a thread starts");
        let wave = |x: usize| 127.0 + 100.0 * (x as f32 / 6.0).sin();
        for (width, height) in [(200, 40), (201, 40), (201, 41)] {
            let region = Region { x: 0..width, y: 0..height };
            let columns = (0..width * height).map(|at| wave((at % width) as usize) as u8);
            let rgb = columns.flat_map(|sample| [sample; 3]).collect();
            let hole = vec![true; (width * height) as usize];
            let soft =
                Crop { region, width, height, content: (width, height), rgb, hole, hidden: None };
            assert!(has_empty_octave(&soft));
            let made = clarify(soft, &net, &pixels, u64::MAX, &|_| (), &never).await;
            let (_, made, _) = made.expect("it is clarified");
            // Repeated pixels leave steps, which average out over a period of the wave.
            let row = &made[20 * width as usize * 3..][..width as usize * 3];
            let shift = |from: usize| {
                let at = from..from + 38;
                let sum = |offset: usize| -> f32 {
                    at.clone().map(|x| (f32::from(row[x * 3]) - wave(x + offset - 1)).abs()).sum()
                };
                (sum(0), sum(1), sum(2))
            };
            for from in [10, 150] {
                let (left, own, right) = shift(from);
                assert!(own < left && own < right, "{width}, {from}: {left}, {own}, {right}");
            }
        }
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
            let output = Output::Pictures { samples: samples.into(), extremes };
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

    #[tokio::test]
    async fn only_the_hole_and_its_ring_cost_time() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tiny/upscale");
        let Task::Upscale(contract) = Manifest::read(&models).expect("it is valid").task else {
            panic!("an upscaler");
        };
        let per_pixel = u64::from(contract.tiling.memory_bytes_per_pixel);
        let net = Repeating { contract, largest: 1000 };
        let pixels = PixelPool::new(1).expect("a thread starts");
        let never = CancellationToken::new();
        // Tiles of 32 with a padding of 8; the ring around a point takes 33.
        for (holes, tiles) in [(&[(20, 30)][..], 4), (&[(40, 63)], 2), (&[(2, 2), (60, 60)], 2)] {
            let sharp = || crop(|x, y| if (x * 7 + y * 13) % 11 < 5 { 30 } else { 200 });
            let mut part = sharp();
            part.hole.fill(false);
            for (x, y) in holes {
                part.hole[y * 64 + x] = true;
            }
            let counted = Mutex::new(Vec::new());
            let progress = |count| counted.lock().expect("one").push(count);
            let memory = 48 * 48 * per_pixel;
            let made = clarify(part, &net, &pixels, memory, &progress, &never).await;
            let (_, made, _) = made.expect("it is clarified");
            let total = counted.lock().expect("one").last().map(|count| count.total);
            assert_eq!(total, Some(tiles), "{holes:?}");
            let whole = clarify(sharp(), &net, &pixels, memory, &|_| (), &never).await;
            let (_, whole, _) = whole.expect("it is clarified");
            for (x, y) in holes {
                for y in y.saturating_sub(patch::RING)..(y + patch::RING + 1).min(64) {
                    let row = y * 64;
                    let from = (row + x.saturating_sub(patch::RING)) * 3;
                    let to = (row + (x + patch::RING + 1).min(64)) * 3;
                    assert_eq!(made[from..to], whole[from..to], "row {y} around {x}");
                }
            }
        }
    }
}
