//! Crop and stitch: cuts out the surroundings of a mask at the model's working size, and puts the model's output back
//! inside the effective mask. No other sample of the picture changes.
//!
//! The crop gives the model enough context; at the picture's border it is shifted, not shrunk. Models shift colors.
//! On the ring of pixels just outside the effective mask the output should equal the input, so each channel's mean
//! and contrast are corrected by the difference on that ring (the idea behind `color_match` in Krita's AI plugin and
//! histogram matching in `IOPaint`).

mod canvas;
mod plan;

use crate::mask::EffectiveMask;
use crate::resize::resample;
use crate::tile::{self, Region, TileSize};
use crate::{Picture, PixelError};

pub use canvas::{Canvas, Fit};
pub use plan::plan;

/// The limits for correcting a channel's contrast.
const GAIN: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// A variance that counts as flat: 8 levels, squared.
const FLAT: f64 = 64.0;

/// The width of the ring around a hole on which colors are compared, in pixels of the crop.
pub const RING: usize = 16;

/// A part of a picture at the size a model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crop {
    pub region: Region,
    pub width: u32,
    pub height: u32,
    /// The width and height of the content, at the top left. Mirrored padding fills the rest, so that a model that
    /// needs squares or whole blocks gets them without distortion.
    pub content: (u32, u32),
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// One flag per pixel: true where the model paints, wherever the effective mask touches the pixel.
    pub hole: Vec<bool>,
    /// One flag per pixel: true wherever a transparent pixel of the picture touches it, so that its color is invented.
    /// `None` if no pixel is transparent.
    pub hidden: Option<Vec<bool>>,
}

/// Cuts out a region and scales it to the canvas. `is_replaced` says whether the model replaces what is masked: then its
/// colors do not spread into transparent pixels.
///
/// # Errors
/// [`PixelError::Internal`] if resizing fails.
pub fn crop(
    picture: &Picture,
    mask: &EffectiveMask,
    region: &Region,
    canvas: Canvas,
    is_replaced: bool,
) -> Result<Crop, PixelError> {
    let own = (region.width(), region.height());
    let content = content_size(own, canvas);
    let (width, height) = match canvas.fit {
        Fit::Square => (canvas.side, canvas.side),
        Fit::Scale | Fit::Keep => (
            content.0.next_multiple_of(canvas.multiple_of),
            content.1.next_multiple_of(canvas.multiple_of),
        ),
    };
    // Visible colors spread into transparent pixels, which are often black.
    let keeps = |x, y| !is_replaced || mask.weight(x, y) == 0;
    let own_rgb = tile::cut_spreading(picture, region, 0, TileSize::ANY, keeps).rgb;
    let rgb = resample(own_rgb, own, content)?;
    let hole = touched(region, content, |x, y| mask.weight(x, y) > 0);
    let hidden = picture
        .alpha
        .as_ref()
        .map(|alpha| touched(region, content, |x, y| alpha[y * picture.width as usize + x] == 0));
    let hidden = hidden.filter(|hidden| hidden.contains(&true));
    let padded = |flags: Vec<bool>| pad_mirrored(&flags, content, (width, height));
    let (rgb, hole, hidden) = if (width, height) == content {
        (rgb, hole, hidden)
    } else {
        let pixels: Vec<[u8; 3]> = rgb.as_chunks().0.to_vec();
        let rgb = pad_mirrored(&pixels, content, (width, height)).as_flattened().to_vec();
        (rgb, padded(hole), hidden.map(padded))
    };
    Ok(Crop { region: region.clone(), width, height, content, rgb, hole, hidden })
}

/// Marks the pixels of a region scaled to `content` that touch a pixel of the picture, at column `x` and row `y`, for
/// which `is_marked(x, y)`.
fn touched(
    region: &Region,
    content: (u32, u32),
    is_marked: impl Fn(usize, usize) -> bool,
) -> Vec<bool> {
    let own = (region.width(), region.height());
    let mut touched = vec![false; content.0 as usize * content.1 as usize];
    let range = |at: u32, from: u32, to: u32| {
        let (at, from, to) = (at as usize, from as usize, to as usize);
        at * to / from..((at + 1) * to).div_ceil(from)
    };
    for y in 0..own.1 {
        for x in 0..own.0 {
            if is_marked((region.x.start + x) as usize, (region.y.start + y) as usize) {
                for row in range(y, own.1, content.1) {
                    let columns = range(x, own.0, content.0);
                    touched[row * content.0 as usize..][columns].fill(true);
                }
            }
        }
    }
    touched
}

/// Returns true if the model sees this region pixel for pixel, without scaling.
pub fn keeps_size(region: &Region, canvas: Canvas) -> bool {
    let own = (region.width(), region.height());
    content_size(own, canvas) == own
}

/// Returns the size of a region on the canvas, without padding. The aspect ratio changes only by rounding.
fn content_size((width, height): (u32, u32), canvas: Canvas) -> (u32, u32) {
    let longest = width.max(height);
    if canvas.fit == Fit::Keep && longest <= canvas.side {
        return (width, height);
    }
    let scale = f64::from(canvas.side) / f64::from(longest);
    let length = |length: u32| (f64::from(length) * scale).round().max(1.0) as u32;
    (length(width), length(height))
}

/// Extends a plane to the right and downwards by mirroring it, without repeating the last column or row.
fn pad_mirrored<T: Copy>(plane: &[T], from: (u32, u32), to: (u32, u32)) -> Vec<T> {
    let columns = tile::mirrored(0, to.0, from.0);
    tile::mirrored(0, to.1, from.1)
        .into_iter()
        .flat_map(|y| {
            let row = &plane[y * from.0 as usize..];
            columns.iter().map(move |x| row[*x])
        })
        .collect()
}

/// Blends `painted`, the R, G, B that a model made of a crop, into the picture inside the effective mask, and clears
/// those pixels in the mask: a later crop sees them as they are now and does not change them again.
///
/// With `match_colors`, corrects each channel by the difference on the ring around the hole. In a gray picture,
/// R, G and B become equal.
///
/// # Errors
/// [`PixelError::InvalidOutput`] if `painted` and the crop differ in size.
pub fn stitch(
    picture: &mut Picture,
    mask: &mut EffectiveMask,
    crop: &Crop,
    painted: Vec<u8>,
    match_colors: bool,
) -> Result<(), PixelError> {
    if painted.len() != crop.rgb.len() {
        return Err(PixelError::InvalidOutput("its size differs from the crop's".to_owned()));
    }
    let painted = if match_colors { color_matched(crop, painted) } else { painted };
    let (width, height) = (crop.region.width(), crop.region.height());
    let painted = resample(without_padding(crop, painted), crop.content, (width, height))?;
    let gray = picture.gray;
    for y in 0..height as usize {
        for x in 0..width as usize {
            let at = (crop.region.x.start as usize + x, crop.region.y.start as usize + y);
            let weight = mask.weight(at.0, at.1);
            if weight == 0 {
                continue;
            }
            mask.clear(at.0, at.1);
            let mut new = [0; 3];
            new.copy_from_slice(&painted[(y * width as usize + x) * 3..][..3]);
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

fn without_padding(crop: &Crop, painted: Vec<u8>) -> Vec<u8> {
    if crop.content == (crop.width, crop.height) {
        return painted;
    }
    let row = crop.content.0 as usize * 3;
    let rows = painted.chunks_exact(crop.width as usize * 3).take(crop.content.1 as usize);
    rows.flat_map(|all| &all[..row]).copied().collect()
}

/// Corrects each channel so that its mean on the ring around the hole is the crop's, and its contrast as far as both
/// rings show the same detail. A flat ring, or one with a new texture, says nothing about contrast.
fn color_matched(crop: &Crop, mut painted: Vec<u8>) -> Vec<u8> {
    let ring = ring(crop);
    // Too few pixels for statistics.
    if ring.len() < 64 {
        return painted;
    }
    let count = ring.len() as f64;
    for channel in 0..3 {
        let pairs = || {
            let at = ring.iter().map(|at| at * 3 + channel);
            at.map(|at| (f64::from(crop.rgb[at]), f64::from(painted[at])))
        };
        let (mut wanted, mut own) = (0.0, 0.0);
        for (a, b) in pairs() {
            wanted += a / count;
            own += b / count;
        }
        let (mut wanted_variance, mut own_variance, mut covariance) = (FLAT, FLAT, 0.0);
        for (a, b) in pairs() {
            wanted_variance += (a - wanted).powi(2) / count;
            own_variance += (b - own).powi(2) / count;
            covariance += (a - wanted) * (b - own) / count;
        }
        // The squared correlation of the rings, 0 to 1.
        let likeness = covariance.powi(2) / (wanted_variance * own_variance);
        let ratio = (wanted_variance / own_variance).sqrt();
        let gain = likeness.mul_add(ratio - 1.0, 1.0).clamp(*GAIN.start(), *GAIN.end());
        let table: [u8; 256] = std::array::from_fn(|sample| {
            let value = (sample as f64 - own).mul_add(gain, wanted);
            value.round().clamp(0.0, 255.0) as u8
        });
        for sample in painted.iter_mut().skip(channel).step_by(3) {
            *sample = table[usize::from(*sample)];
        }
    }
    painted
}

/// Returns the indices of the visible pixels outside the hole and at most [`RING`] pixels away from it.
fn ring(crop: &Crop) -> Vec<usize> {
    let (width, height) = (crop.width as usize, crop.height as usize);
    // The city-block distance to the nearest pixel of the hole, in two passes.
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
    let is_visible = |at: &usize| crop.hidden.as_ref().is_none_or(|hidden| !hidden[*at]);
    (0..steps.len()).filter(|at| (1..=RING).contains(&steps[*at])).filter(is_visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::Mask;

    const FREE: Canvas = Canvas { side: 1024, multiple_of: 1, fit: Fit::Keep };
    const FIXED: Canvas = Canvas { side: 512, multiple_of: 8, fit: Fit::Scale };

    /// A linear congruential generator with Knuth's MMIX constants.
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
    fn no_byte_changes_outside_the_effective_mask() {
        let mut noise = Noise(7);
        for round in 0..60 {
            let size = (1 + noise.below(300) as u32, 1 + noise.below(300) as u32);
            let before = picture(size.0, size.1, &mut noise);
            let mask = strokes(size.0, size.1, &mut noise);
            let effective = mask.effective(noise.below(20) as u16);
            let canvas = [
                FREE,
                FIXED,
                Canvas { side: 96, ..FREE },
                Canvas { side: 64, fit: Fit::Square, ..FIXED },
            ][round % 4];
            let (mut after, mut left) = (before.clone(), effective.clone());
            for region in plan(&effective, size, canvas, true) {
                let crop = crop(&after, &left, &region, canvas, true).expect("a crop");
                let painted = (0..crop.rgb.len()).map(|_| noise.below(256) as u8).collect();
                stitch(&mut after, &mut left, &crop, painted, round % 2 == 0).expect("stitched");
            }
            assert!(left.is_empty(), "every pixel of the effective mask was in some crop");
            for (at, (old, new)) in before.rgb.chunks(3).zip(after.rgb.chunks(3)).enumerate() {
                let (x, y) = (at % size.0 as usize, at / size.0 as usize);
                assert!(effective.weight(x, y) > 0 || old == new, "{size:?} ({x}, {y})");
            }
        }
    }

    #[test]
    fn a_model_that_returns_its_input_changes_nothing() {
        let mut noise = Noise(3);
        let before = picture(200, 150, &mut noise);
        let mut mask = strokes(200, 150, &mut noise).effective(6);
        let mut after = before.clone();
        for region in plan(&mask, (200, 150), FREE, true) {
            let crop = crop(&after, &mask, &region, FREE, true).expect("a crop");
            let painted = crop.rgb.clone();
            stitch(&mut after, &mut mask, &crop, painted, true).expect("stitched");
        }
        assert!(before == after, "no pixel moves and no color changes");
    }

    const SIDE: usize = 64;

    fn in_middle(at: usize) -> bool {
        (24..40).contains(&(at / SIDE)) && (24..40).contains(&(at % SIDE))
    }

    /// Returns R, G, B of `SIDE` × `SIDE` pixels, gray.
    fn gray(sample: impl FnMut(usize) -> u8) -> Vec<u8> {
        (0..SIDE * SIDE).map(sample).flat_map(|sample| [sample; 3]).collect()
    }

    /// Returns a crop of these pixels, whose hole is the square in the middle.
    fn crop_of(rgb: Vec<u8>) -> Crop {
        let (side, hole) = (SIDE as u32, (0..SIDE * SIDE).map(in_middle).collect());
        let region = Region { x: 0..side, y: 0..side };
        Crop { region, width: side, height: side, content: (side, side), rgb, hole, hidden: None }
    }

    /// Returns the mean and the standard deviation of the hole.
    fn in_hole(rgb: &[u8]) -> (f64, f64) {
        let inside = (0..SIDE * SIDE).filter(|at| in_middle(*at));
        let inside: Vec<_> = inside.map(|at| f64::from(rgb[at * 3])).collect();
        let mean = inside.iter().sum::<f64>() / inside.len() as f64;
        let squares = inside.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
        (mean, (squares / inside.len() as f64).sqrt())
    }

    #[test]
    fn flat_surroundings_leave_the_contrast_of_a_patch_alone() {
        for (around, inside) in [(255, 0), (0, 255), (255, 100)] {
            let painted = gray(|at| if in_middle(at) { inside } else { around });
            let (mean, _) = in_hole(&color_matched(&crop_of(gray(|_| around)), painted));
            assert!((mean - f64::from(inside)).abs() < 0.5, "{inside} on {around} became {mean}");
        }
    }

    #[test]
    fn a_wall_whose_grain_the_model_smooths_leaves_the_contrast_of_a_patch_alone() {
        let mut noise = Noise(17);
        // A standard deviation of 6, of which the model leaves a quarter.
        let wall = gray(|_| 110 + (0..3).map(|_| noise.below(13) as u8).sum::<u8>());
        let painted = gray(|at| if in_middle(at) { 40 } else { 96 + wall[at * 3] / 4 });
        let (mean, _) = in_hole(&color_matched(&crop_of(wall), painted));
        assert!((mean - 40.0).abs() < 2.0, "a dark patch of 40 became {mean}");
    }

    #[test]
    fn contrast_is_corrected_as_far_as_both_rings_show_the_same_detail() {
        let (mut noise, mut other) = (Noise(19), Noise(23));
        let crop = crop_of(gray(|_| 60 + noise.below(136) as u8));
        let change = |painted: Vec<u8>| {
            let (_, before) = in_hole(&painted);
            in_hole(&color_matched(&crop, painted)).1 / before
        };
        let halved = change(gray(|at| crop.rgb[at * 3] / 2 + 64));
        assert!((halved - 1.25).abs() < 0.02, "halved contrast is raised to the limit: {halved}");
        let unrelated = change(gray(|_| 94 + other.below(68) as u8));
        assert!((unrelated - 1.0).abs() < 0.02, "another texture keeps its contrast: {unrelated}");
        let cast = gray(|at| (f32::from(crop.rgb[at * 3]) * 1.03) as u8);
        let matched = color_matched(&crop, cast);
        let worst = crop.rgb.iter().zip(&matched).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst <= Some(1), "a cast of 3 % disappears: {worst:?}");
    }

    #[test]
    fn a_circle_stays_a_circle_on_a_canvas_of_whole_blocks() {
        let strip = Canvas { side: 512, multiple_of: 64, fit: Fit::Scale };
        let mut noise = Noise(13);
        let before = picture(728, 90, &mut noise);
        let mask = strokes(728, 90, &mut noise).effective(0);
        let region = Region { x: 0..728, y: 0..90 };
        let made = crop(&before, &mask, &region, strip, true).expect("a crop");
        assert_eq!((made.width, made.height, made.content), (512, 64, (512, 63)));
        let kept = Canvas { fit: Fit::Keep, side: 1024, ..strip };
        assert!(keeps_size(&region, kept), "padding to whole blocks does not scale");
        let made = crop(&before, &mask, &region, kept, true).expect("a crop");
        assert_eq!((made.width, made.height, made.content), (768, 128, (728, 90)));
        let (mut after, mut mask) = (before.clone(), mask);
        stitch(&mut after, &mut mask, &made, made.rgb.clone(), false).expect("stitched");
        assert!(after == before, "a model that returns its input changes nothing");
    }

    #[test]
    fn a_crop_keeps_its_aspect_ratio() {
        assert_eq!(content_size((90, 60), FIXED), (512, 341));
        assert_eq!(content_size((90, 60), FREE), (90, 60));
        let square = Canvas { side: 64, multiple_of: 64, fit: Fit::Square };
        assert_eq!(content_size((48, 16), square), (64, 21));
        let mut noise = Noise(11);
        let before = picture(64, 20, &mut noise);
        let mut mask = strokes(64, 20, &mut noise).effective(0);
        let region = Region { x: 0..64, y: 0..20 };
        assert!(keeps_size(&region, square), "padding to a square does not scale");
        let crop = crop(&before, &mask, &region, square, true).expect("a crop");
        assert_eq!((crop.width, crop.height, crop.content), (64, 64, (64, 20)));
        let row = |y: usize| &crop.rgb[y * 64 * 3..][..64 * 3];
        assert!((0..20).all(|y| row(y) == &before.rgb[y * 64 * 3..][..64 * 3]));
        assert!((1..20).all(|y| row(19 + y) == row(19 - y)), "the padding mirrors the content");
        assert!((0..64).all(|x| crop.hole[20 * 64 + x] == crop.hole[18 * 64 + x]));
        let mut after = before.clone();
        stitch(&mut after, &mut mask, &crop, crop.rgb.clone(), false).expect("stitched");
        assert!(after == before, "a model that returns its input changes nothing");
    }

    /// A blue object at the right edge of an orange cutout is about to disappear.
    #[test]
    fn transparent_pixels_show_nothing_of_what_disappears() {
        const ORANGE: [u8; 3] = [240, 140, 20];
        const BLUE: [u8; 3] = [20, 40, 220];
        let is_object = |at: usize| (40..64).contains(&(at % 96)) && (40..64).contains(&(at / 96));
        let places = 0..96 * 96;
        let color = |at| if is_object(at) { BLUE } else { ORANGE };
        let cutout = Picture {
            width: 96,
            height: 96,
            rgb: places.clone().flat_map(color).collect(),
            alpha: Some(places.clone().map(|at| if at % 96 < 64 { 255 } else { 0 }).collect()),
            gray: false,
            icc: None,
        };
        let mask = Mask::new(96, 96, places.map(is_object).collect()).expect("a mask");
        let region = Region { x: 0..96, y: 0..96 };
        let mask = mask.exact(2);
        let kept = crop(&cutout, &mask, &region, FREE, false).expect("a crop");
        let beside = &kept.rgb[(50 * 96 + 65) * 3..][..3];
        assert_eq!(beside, BLUE, "what stays spreads its colors");
        let crop = crop(&cutout, &mask, &region, FREE, true).expect("a crop");
        let hidden = crop.hidden.clone().expect("hidden pixels");
        for (at, pixel) in crop.rgb.as_chunks::<3>().0.iter().enumerate() {
            assert_eq!(hidden[at], at % 96 >= 64, "at {at}");
            assert!(!hidden[at] || pixel[2] <= 128, "{pixel:?} at {at} continues the object");
        }
        assert!(ring(&crop).iter().all(|at| !hidden[*at]), "colors are matched on visible pixels");
    }

    #[test]
    fn a_color_cast_is_corrected_on_the_ring() {
        let mut noise = Noise(5);
        let before = picture(128, 128, &mut noise);
        let mut on = vec![false; 128 * 128];
        for y in 50..80 {
            on[y * 128 + 50..y * 128 + 80].fill(true);
        }
        let mut mask = Mask::new(128, 128, on).expect("a mask").effective(0);
        let region = plan(&mask, (128, 128), FREE, true).remove(0);
        let crop = crop(&before, &mask, &region, FREE, true).expect("a crop");
        let cast = crop.rgb.iter().map(|sample| sample / 2 + 40).collect();
        let mut after = before.clone();
        stitch(&mut after, &mut mask, &crop, cast, true).expect("stitched");
        let off: f64 =
            before.rgb.iter().zip(&after.rgb).map(|(a, b)| f64::from(a.abs_diff(*b))).sum();
        // The gain is limited to 1.25, so halved contrast is not restored in full.
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
