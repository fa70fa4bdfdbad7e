//! Crop and stitch: what is around a mask is cut out at the size that a model works at, and what the model
//! makes of it is put back inside the effective mask. No other sample of the picture changes.
//!
//! The crop shows the model enough of the surroundings to go on from; at the picture's border it is shifted,
//! not shrunk. A model shifts colours: on the ring of pixels just outside of the effective mask it should
//! have given back what it was given, so each channel's mean and spread are corrected by what it made of
//! that ring (the idea of `color_match` in Krita's AI plugin and of histogram matching in `IOPaint`).

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::mask::Reach;
use super::tile::{self, Region};
use super::{Picture, PipelineError};
use crate::models::manifest::{Canvas, Fit};

/// How far a correction of a channel's spread may go.
const GAIN: std::ops::RangeInclusive<f32> = 0.8..=1.25;

/// How wide the ring is that colours are compared on, in pixels of the crop.
const RING: usize = 16;

/// A grid of so many cells a side is fine enough to tell strokes that are far apart.
const CELLS: usize = 128;

/// A part of a picture as a model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crop {
    /// Where it is in the picture.
    pub region: Region,
    /// Its columns.
    pub width: u32,
    /// Its rows.
    pub height: u32,
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// What is to be painted: everything that the effective mask touches.
    pub hole: Vec<bool>,
}

/// The parts of a picture that a mask needs: one for strokes that are near each other, several for strokes
/// that are far apart.
pub fn plan(reach: &Reach, size: (u32, u32), canvas: Canvas) -> Vec<Region> {
    let (left, top, width, height) = reach.bounds();
    let cell = width.max(height).div_ceil(CELLS).max(1);
    let (columns, rows) = (width.div_ceil(cell), height.div_ceil(cell));
    let mut boxes: Vec<Option<Box>> = vec![None; columns * rows];
    for y in 0..height {
        for x in 0..width {
            if reach.weight(left + x, top + y) > 0 {
                let cell = &mut boxes[y / cell * columns + x / cell];
                let pixel = Box::pixel(left + x, top + y);
                *cell = Some(cell.map_or(pixel, |known| known.joined(pixel)));
            }
        }
    }
    let mut boxes: Vec<_> = boxes.into_iter().flatten().collect();
    // What has its surroundings in common is one part, and so is what a crop would show half of.
    merge(&mut boxes, |a, b| {
        a.with_context(size).touches(b.with_context(size))
            || b.touches(Box::of(&a.region(size, canvas)))
            || a.touches(Box::of(&b.region(size, canvas)))
    });
    let mut regions: Vec<_> = boxes.iter().map(|part| part.region(size, canvas)).collect();
    if regions.len() > 1 {
        let whole = boxes.iter().copied().reduce(Box::joined).map(|all| all.region(size, canvas));
        let area = |region: &Region| u64::from(region.width()) * u64::from(region.height());
        // Several crops are worth their runs only where one would be much larger.
        if let Some(whole) = whole
            && regions.iter().map(area).sum::<u64>() * 2 > area(&whole)
        {
            regions = vec![whole];
        }
    }
    regions
}

/// Joins what `belongs` together until nothing more does.
fn merge(boxes: &mut Vec<Box>, belongs: impl Fn(Box, Box) -> bool) {
    let mut at = 0;
    while at < boxes.len() {
        match (at + 1..boxes.len()).find(|other| belongs(boxes[at], boxes[*other])) {
            Some(other) => {
                let joined = boxes[at].joined(boxes.swap_remove(other));
                boxes[at] = joined;
                at = 0;
            }
            None => at += 1,
        }
    }
}

/// A rectangle of pixels; the ends are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Box {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

impl Box {
    const fn pixel(x: usize, y: usize) -> Self {
        Self { left: x, top: y, right: x + 1, bottom: y + 1 }
    }

    const fn of(region: &Region) -> Self {
        Self {
            left: region.x.start as usize,
            top: region.y.start as usize,
            right: region.x.end as usize,
            bottom: region.y.end as usize,
        }
    }

    fn joined(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    const fn touches(self, other: Self) -> bool {
        self.left <= other.right
            && other.left <= self.right
            && self.top <= other.bottom
            && other.top <= self.bottom
    }

    /// How much around it a model should see: a sixteenth of the picture, or half of what is painted.
    fn margin(self, size: (u32, u32)) -> usize {
        let mean = usize::midpoint(self.right - self.left, self.bottom - self.top);
        (size.0.max(size.1) as usize / 16).max(mean / 2).max(16)
    }

    fn with_context(self, size: (u32, u32)) -> Self {
        let margin = self.margin(size);
        Self {
            left: self.left.saturating_sub(margin),
            top: self.top.saturating_sub(margin),
            right: (self.right + margin).min(size.0 as usize),
            bottom: (self.bottom + margin).min(size.1 as usize),
        }
    }

    /// The part of a picture that shows it with its surroundings.
    fn region(self, size: (u32, u32), canvas: Canvas) -> Region {
        let margin = 2 * self.margin(size);
        let sides = (self.right - self.left + margin, self.bottom - self.top + margin);
        let longest = sides.0.max(sides.1);
        // A model that always works at one size sees no more than it has to, and never less than that.
        let (wanted_width, wanted_height) = match canvas.fit {
            Fit::Keep => sides,
            Fit::Scale | Fit::Square => {
                let square = longest.max(canvas.side as usize);
                (square, square)
            }
        };
        Region {
            x: shifted(usize::midpoint(self.left, self.right), wanted_width, size.0),
            y: shifted(usize::midpoint(self.top, self.bottom), wanted_height, size.1),
        }
    }
}

/// So many pixels around a centre, moved inside of the picture.
fn shifted(centre: usize, wanted: usize, size: u32) -> std::ops::Range<u32> {
    let length = wanted.min(size as usize);
    let start = centre.saturating_sub(length / 2).min(size as usize - length);
    start as u32..(start + length) as u32
}

/// Cuts a region out and brings it to the canvas.
///
/// # Errors
/// [`PipelineError::Defect`] when the resizer refuses its buffers.
pub fn take(
    picture: &Picture,
    reach: &Reach,
    region: &Region,
    canvas: Canvas,
) -> Result<Crop, PipelineError> {
    let own = (region.width(), region.height());
    let (width, height) = canvas_size(own, canvas);
    // What is transparent has the colours of what is nearest: those that nobody sees are often black.
    let rgb = resized(tile::cut(picture, region, 0, 1).rgb, own, (width, height))?;
    let mut hole = vec![false; width as usize * height as usize];
    // Everything that the effective mask touches: rounding never leaves a rim of what is to go.
    let range = |at: u32, from: u32, to: u32| {
        let (at, from, to) = (at as usize, from as usize, to as usize);
        at * to / from..((at + 1) * to).div_ceil(from)
    };
    for y in 0..own.1 {
        for x in 0..own.0 {
            if reach.weight((region.x.start + x) as usize, (region.y.start + y) as usize) > 0 {
                for row in range(y, own.1, height) {
                    let columns = range(x, own.0, width);
                    hole[row * width as usize..][columns].fill(true);
                }
            }
        }
    }
    Ok(Crop { region: region.clone(), width, height, rgb, hole })
}

/// Whether a model sees this part of a picture pixel for pixel.
pub fn keeps_size(region: &Region, canvas: Canvas) -> bool {
    let own = (region.width(), region.height());
    canvas_size(own, canvas) == own
}

fn canvas_size((width, height): (u32, u32), canvas: Canvas) -> (u32, u32) {
    if canvas.fit == Fit::Square {
        return (canvas.side, canvas.side);
    }
    let longest = width.max(height);
    let multiple = |length: u32| {
        let scaled = if canvas.fit == Fit::Keep && longest <= canvas.side {
            f64::from(length)
        } else {
            f64::from(length) * f64::from(canvas.side) / f64::from(longest)
        };
        let steps = (scaled / f64::from(canvas.multiple_of)).round().max(1.0);
        steps as u32 * canvas.multiple_of
    };
    (multiple(width), multiple(height))
}

/// Puts what a model made of a crop back into the picture, inside the effective mask only, and settles
/// those pixels: a later crop takes them as they are now.
///
/// With `matches_colours` each channel is corrected by what the model made of the ring around the hole.
/// Where the picture is gray and stays so, R, G and B are made equal.
///
/// # Errors
/// [`PipelineError::Model`] when what was made has another size than the crop.
pub fn stitch(
    picture: &mut Picture,
    reach: &mut Reach,
    crop: &Crop,
    made: Vec<u8>,
    matches_colours: bool,
) -> Result<(), PipelineError> {
    if made.len() != crop.rgb.len() {
        return Err(PipelineError::Model("what it made has another size than the crop".to_owned()));
    }
    let made = if matches_colours { matched(crop, made) } else { made };
    let (width, height) = (crop.region.width(), crop.region.height());
    let made = resized(made, (crop.width, crop.height), (width, height))?;
    let gray = picture.gray;
    for y in 0..height as usize {
        for x in 0..width as usize {
            let at = (crop.region.x.start as usize + x, crop.region.y.start as usize + y);
            let weight = reach.weight(at.0, at.1);
            if weight == 0 {
                continue;
            }
            reach.settle(at.0, at.1);
            let mut new = [0; 3];
            new.copy_from_slice(&made[(y * width as usize + x) * 3..][..3]);
            if gray {
                let [r, g, b] = new.map(u32::from);
                new = [((r * 299 + g * 587 + b * 114 + 500) / 1000) as u8; 3];
            }
            let old = &mut picture.rgb[(at.1 * picture.width as usize + at.0) * 3..][..3];
            for (old, new) in old.iter_mut().zip(new) {
                let (was, is, weight) = (u32::from(*old), u32::from(new), u32::from(weight));
                *old = ((is * weight + was * (255 - weight) + 127) / 255) as u8;
            }
        }
    }
    Ok(())
}

/// What was made, with each channel's mean and spread on the ring around the hole brought to what they are
/// in the crop.
fn matched(crop: &Crop, mut made: Vec<u8>) -> Vec<u8> {
    let ring = ring(crop);
    // Too few pixels say nothing about colours.
    if ring.len() < 64 {
        return made;
    }
    for channel in 0..3 {
        let moments = |samples: &[u8]| {
            let values = ring.iter().map(|at| f64::from(samples[at * 3 + channel]));
            let mean = values.clone().sum::<f64>() / ring.len() as f64;
            let variance =
                values.map(|value| (value - mean).powi(2)).sum::<f64>() / ring.len() as f64;
            (mean as f32, variance.sqrt() as f32)
        };
        let (wanted, own) = (moments(&crop.rgb), moments(&made));
        let gain = (wanted.1 / own.1.max(1e-3)).clamp(*GAIN.start(), *GAIN.end());
        let table: [u8; 256] = std::array::from_fn(|sample| {
            let value = (sample as f32 - own.0).mul_add(gain, wanted.0);
            value.round().clamp(0.0, 255.0) as u8
        });
        for sample in made.iter_mut().skip(channel).step_by(3) {
            *sample = table[usize::from(*sample)];
        }
    }
    made
}

/// The pixels outside of the hole and near it.
fn ring(crop: &Crop) -> Vec<usize> {
    let (width, height) = (crop.width as usize, crop.height as usize);
    // How far the nearest pixel of the hole is, in steps to the side, counted in two passes.
    let mut steps: Vec<usize> =
        crop.hole.iter().map(|is_hole| if *is_hole { 0 } else { usize::MAX / 2 }).collect();
    for at in 0..steps.len() {
        let (x, y) = (at % width, at / width);
        let left = if x > 0 { steps[at - 1] + 1 } else { usize::MAX };
        let above = if y > 0 { steps[at - width] + 1 } else { usize::MAX };
        steps[at] = steps[at].min(left).min(above);
    }
    for at in (0..steps.len()).rev() {
        let (x, y) = (at % width, at / width);
        let right = if x + 1 < width { steps[at + 1] + 1 } else { usize::MAX };
        let below = if y + 1 < height { steps[at + width] + 1 } else { usize::MAX };
        steps[at] = steps[at].min(right).min(below);
    }
    (0..steps.len()).filter(|at| (1..=RING).contains(&steps[*at])).collect()
}

/// Brings R, G, B to another size: Lanczos with three lobes down, Catmull-Rom up.
pub fn resized(rgb: Vec<u8>, from: (u32, u32), to: (u32, u32)) -> Result<Vec<u8>, PipelineError> {
    if from == to {
        return Ok(rgb);
    }
    let failed =
        |problem: &dyn std::error::Error| PipelineError::Defect(format!("resizing: {problem}"));
    let filter = if to.0 < from.0 { FilterType::Lanczos3 } else { FilterType::CatmullRom };
    let source =
        ImageRef::new(from.0, from.1, &rgb, PixelType::U8x3).map_err(|error| failed(&error))?;
    let mut out = Image::new(to.0, to.1, PixelType::U8x3);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    Resizer::new().resize(&source, &mut out, Some(&options)).map_err(|error| failed(&error))?;
    Ok(out.into_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::mask::Mask;

    const FREE: Canvas = Canvas { side: 1024, multiple_of: 1, fit: Fit::Keep };
    const FIXED: Canvas = Canvas { side: 512, multiple_of: 8, fit: Fit::Scale };

    /// A generator that needs no crate: Knuth's MMIX constants.
    struct Noise(u64);

    impl Noise {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % limit
        }
    }

    fn picture(width: u32, height: u32, noise: &mut Noise) -> Picture {
        let rgb = (0..width * height * 3).map(|_| noise.below(256) as u8).collect();
        Picture { width, height, rgb, alpha: None, gray: false, icc: None }
    }

    fn strokes(width: u32, height: u32, noise: &mut Noise) -> Mask {
        let (width, height) = (width as usize, height as usize);
        let mut on = vec![false; width * height];
        for _ in 0..=noise.below(4) {
            let (x, y) = (noise.below(width), noise.below(height));
            let (w, h) = (1 + noise.below(width / 3 + 1), 1 + noise.below(height / 3 + 1));
            for row in y..(y + h).min(height) {
                on[row * width + x..row * width + (x + w).min(width)].fill(true);
            }
        }
        Mask::new(width, height, on).expect("a mask")
    }

    #[test]
    fn outside_of_the_effective_mask_every_byte_stays() {
        let mut noise = Noise(7);
        for round in 0..60 {
            let size = (1 + noise.below(300) as u32, 1 + noise.below(300) as u32);
            let before = picture(size.0, size.1, &mut noise);
            let mask = strokes(size.0, size.1, &mut noise);
            let reach = mask.reach(noise.below(20) as u16);
            let canvas = [
                FREE,
                FIXED,
                Canvas { side: 96, ..FREE },
                Canvas { side: 64, fit: Fit::Square, ..FIXED },
            ][round % 4];
            let (mut after, mut left) = (before.clone(), reach.clone());
            for region in plan(&reach, size, canvas) {
                let crop = take(&after, &left, &region, canvas).expect("a crop");
                let made = (0..crop.rgb.len()).map(|_| noise.below(256) as u8).collect();
                stitch(&mut after, &mut left, &crop, made, round % 2 == 0).expect("stitched");
            }
            assert!(left.is_done(), "every pixel of the effective mask was in some crop");
            for (at, (old, new)) in before.rgb.chunks(3).zip(after.rgb.chunks(3)).enumerate() {
                let (x, y) = (at % size.0 as usize, at / size.0 as usize);
                assert!(reach.weight(x, y) > 0 || old == new, "{size:?} ({x}, {y})");
            }
        }
    }

    #[test]
    fn a_model_that_changes_nothing_changes_nothing() {
        let mut noise = Noise(3);
        let before = picture(200, 150, &mut noise);
        let mut reach = strokes(200, 150, &mut noise).reach(6);
        let mut after = before.clone();
        for region in plan(&reach, (200, 150), FREE) {
            let crop = take(&after, &reach, &region, FREE).expect("a crop");
            let made = crop.rgb.clone();
            stitch(&mut after, &mut reach, &crop, made, true).expect("stitched");
        }
        assert!(before == after, "no shift by a pixel, no change of colour");
    }

    #[test]
    fn crops_are_as_large_as_the_model_wants_and_shifted_at_the_border() {
        let mut on = vec![false; 2000 * 1000];
        on[3] = true;
        let reach = Mask::new(2000, 1000, on).expect("a mask").reach(4);
        let regions = plan(&reach, (2000, 1000), FIXED);
        assert_eq!(regions, [Region { x: 0..512, y: 0..512 }]);
        let small = Mask::new(90, 60, vec![true; 90 * 60]).expect("a mask").reach(4);
        let regions = plan(&small, (90, 60), FIXED);
        assert_eq!(regions, [Region { x: 0..90, y: 0..60 }]);
        assert_eq!(canvas_size((90, 60), FIXED), (512, 344));
        assert_eq!(canvas_size((90, 60), FREE), (90, 60));
    }

    #[test]
    fn strokes_far_apart_are_several_crops_and_near_ones_are_one() {
        let with = |dots: &[(usize, usize)]| {
            let mut on = vec![false; 4000 * 3000];
            for (x, y) in dots {
                on[y * 4000 + x] = true;
            }
            plan(&Mask::new(4000, 3000, on).expect("a mask").reach(8), (4000, 3000), FIXED).len()
        };
        assert_eq!(with(&[(100, 100), (3900, 2900)]), 2);
        assert_eq!(with(&[(100, 100), (3900, 100), (100, 2900)]), 3);
        assert_eq!(with(&[(100, 100), (300, 200)]), 1);
    }

    #[test]
    fn a_cast_is_corrected_on_the_ring() {
        let mut noise = Noise(5);
        let before = picture(128, 128, &mut noise);
        let mut on = vec![false; 128 * 128];
        for y in 50..80 {
            on[y * 128 + 50..y * 128 + 80].fill(true);
        }
        let mut reach = Mask::new(128, 128, on).expect("a mask").reach(0);
        let region = plan(&reach, (128, 128), FREE).remove(0);
        let crop = take(&before, &reach, &region, FREE).expect("a crop");
        let cast = crop.rgb.iter().map(|sample| sample / 2 + 40).collect();
        let mut after = before.clone();
        stitch(&mut after, &mut reach, &crop, cast, true).expect("stitched");
        let off: f64 =
            before.rgb.iter().zip(&after.rgb).map(|(a, b)| f64::from(a.abs_diff(*b))).sum();
        // The gain is limited to 1.25, so that half the contrast does not come back in full.
        assert!(off / (30.0 * 30.0 * 3.0) < 40.0, "{}", off / 2700.0);
        let mean = |samples: &Picture| {
            let mut sum = 0.0;
            for y in 50..80 {
                for x in 50..80 {
                    sum += f64::from(samples.rgb[(y * 128 + x) * 3]);
                }
            }
            sum / 900.0
        };
        assert!((mean(&before) - mean(&after)).abs() < 8.0);
    }
}
