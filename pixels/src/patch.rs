//! Crop and stitch: what is around a mask is cut out at the size that a model works at, and what the model
//! makes of it is put back inside the effective mask. No other sample of the picture changes.
//!
//! The crop shows the model enough of the surroundings to go on from; at the picture's border it is shifted,
//! not shrunk. A model shifts colours: on the ring of pixels just outside of the effective mask it should
//! have given back what it was given, so each channel's mean and spread are corrected by what it made of
//! that ring (the idea of `color_match` in Krita's AI plugin and of histogram matching in `IOPaint`).

mod canvas;
mod plan;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::mask::Reach;
use crate::tile::{self, Region};
use crate::{Picture, PixelError};

pub use canvas::{Canvas, Fit};

pub use plan::plan;

/// How far a correction of a channel's spread may go.
const GAIN: std::ops::RangeInclusive<f32> = 0.8..=1.25;

/// How wide the ring is that colours are compared on, in pixels of the crop.
const RING: usize = 16;

/// A part of a picture as a model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crop {
    /// Where it is in the picture.
    pub region: Region,
    /// Its columns.
    pub width: u32,
    /// Its rows.
    pub height: u32,
    /// The columns and rows of it that show the region, from its upper left corner. What is beyond mirrors them: a
    /// model that wants squares gets them, and sees nothing squeezed.
    pub shown: (u32, u32),
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// What is to be painted: everything that the effective mask touches.
    pub hole: Vec<bool>,
}

/// Cuts a region out and brings it to the canvas.
///
/// # Errors
/// [`PixelError::Internal`] when the resizer refuses its buffers.
pub fn take(
    picture: &Picture,
    reach: &Reach,
    region: &Region,
    canvas: Canvas,
) -> Result<Crop, PixelError> {
    let own = (region.width(), region.height());
    let shown = shown_size(own, canvas);
    let (width, height) =
        if canvas.fit == Fit::Square { (canvas.side, canvas.side) } else { shown };
    // What is transparent has the colours of what is nearest: those that nobody sees are often black.
    let rgb = resized(tile::cut(picture, region, 0, 1).rgb, own, shown)?;
    let mut hole = vec![false; shown.0 as usize * shown.1 as usize];
    // Everything that the effective mask touches: rounding never leaves a rim of what is to go.
    let range = |at: u32, from: u32, to: u32| {
        let (at, from, to) = (at as usize, from as usize, to as usize);
        at * to / from..((at + 1) * to).div_ceil(from)
    };
    for y in 0..own.1 {
        for x in 0..own.0 {
            if reach.weight((region.x.start + x) as usize, (region.y.start + y) as usize) > 0 {
                for row in range(y, own.1, shown.1) {
                    let columns = range(x, own.0, shown.0);
                    hole[row * shown.0 as usize..][columns].fill(true);
                }
            }
        }
    }
    let (rgb, hole) = if (width, height) == shown {
        (rgb, hole)
    } else {
        let pixels: Vec<[u8; 3]> = rgb.as_chunks().0.to_vec();
        (
            mirrored(&pixels, shown, (width, height)).as_flattened().to_vec(),
            mirrored(&hole, shown, (width, height)),
        )
    };
    Ok(Crop { region: region.clone(), width, height, shown, rgb, hole })
}

/// Whether a model sees this part of a picture pixel for pixel.
pub fn keeps_size(region: &Region, canvas: Canvas) -> bool {
    let own = (region.width(), region.height());
    shown_size(own, canvas) == own
}

/// How large a region is shown: as the canvas wants it, and never squeezed by more than rounding.
fn shown_size((width, height): (u32, u32), canvas: Canvas) -> (u32, u32) {
    let longest = width.max(height);
    // What is mirrored beyond it makes up for what is missing of a square.
    let step = if canvas.fit == Fit::Square { 1 } else { canvas.multiple_of };
    let length = |length: u32| {
        let scaled = if canvas.fit == Fit::Keep && longest <= canvas.side {
            f64::from(length)
        } else {
            f64::from(length) * f64::from(canvas.side) / f64::from(longest)
        };
        let steps = (scaled / f64::from(step)).round().max(1.0);
        steps as u32 * step
    };
    (length(width), length(height))
}

/// A plane with more columns and rows, which mirror those that are there, its last ones not repeated.
fn mirrored<T: Copy>(plane: &[T], from: (u32, u32), to: (u32, u32)) -> Vec<T> {
    let back = |at: u32, length: u32| {
        let period = (2 * (length - 1)).max(1);
        let at = at % period;
        at.min(period - at).min(length - 1) as usize
    };
    let columns: Vec<usize> = (0..to.0).map(|x| back(x, from.0)).collect();
    (0..to.1)
        .flat_map(|y| {
            let row = &plane[back(y, from.1) * from.0 as usize..];
            columns.iter().map(move |x| row[*x])
        })
        .collect()
}

/// Puts what a model made of a crop back into the picture, inside the effective mask only, and settles
/// those pixels: a later crop takes them as they are now.
///
/// With `matches_colours` each channel is corrected by what the model made of the ring around the hole.
/// Where the picture is gray and stays so, R, G and B are made equal.
///
/// # Errors
/// [`PixelError::InvalidOutput`] when what was made has another size than the crop.
pub fn stitch(
    picture: &mut Picture,
    reach: &mut Reach,
    crop: &Crop,
    made: Vec<u8>,
    matches_colours: bool,
) -> Result<(), PixelError> {
    if made.len() != crop.rgb.len() {
        return Err(PixelError::InvalidOutput(
            "what it made has another size than the crop".to_owned(),
        ));
    }
    let made = if matches_colours { matched(crop, made) } else { made };
    let (width, height) = (crop.region.width(), crop.region.height());
    let made = resized(shown(crop, made), crop.shown, (width, height))?;
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

/// What was made of the region itself.
fn shown(crop: &Crop, made: Vec<u8>) -> Vec<u8> {
    if crop.shown == (crop.width, crop.height) {
        return made;
    }
    let row = crop.shown.0 as usize * 3;
    let rows = made.chunks_exact(crop.width as usize * 3).take(crop.shown.1 as usize);
    rows.flat_map(|all| &all[..row]).copied().collect()
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
pub fn resized(rgb: Vec<u8>, from: (u32, u32), to: (u32, u32)) -> Result<Vec<u8>, PixelError> {
    if from == to {
        return Ok(rgb);
    }
    let failed =
        |problem: &dyn std::error::Error| PixelError::Internal(format!("resizing: {problem}"));
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
    use crate::mask::Mask;

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
    fn what_is_shown_keeps_its_shape() {
        assert_eq!(shown_size((90, 60), FIXED), (512, 344));
        assert_eq!(shown_size((90, 60), FREE), (90, 60));
        let square = Canvas { side: 64, multiple_of: 64, fit: Fit::Square };
        assert_eq!(shown_size((48, 16), square), (64, 21));
        let mut noise = Noise(11);
        let before = picture(64, 20, &mut noise);
        let mut reach = strokes(64, 20, &mut noise).reach(0);
        let region = Region { x: 0..64, y: 0..20 };
        assert!(keeps_size(&region, square), "a square that is filled up is no other size");
        let crop = take(&before, &reach, &region, square).expect("a crop");
        assert_eq!((crop.width, crop.height, crop.shown), (64, 64, (64, 20)));
        let row = |y: usize| &crop.rgb[y * 64 * 3..][..64 * 3];
        assert!((0..20).all(|y| row(y) == &before.rgb[y * 64 * 3..][..64 * 3]));
        assert!((1..20).all(|y| row(19 + y) == row(19 - y)), "beyond the border it goes back");
        assert!((0..64).all(|x| crop.hole[20 * 64 + x] == crop.hole[18 * 64 + x]));
        let mut after = before.clone();
        stitch(&mut after, &mut reach, &crop, crop.rgb.clone(), false).expect("stitched");
        assert!(after == before, "a model that changes nothing changes nothing");
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
