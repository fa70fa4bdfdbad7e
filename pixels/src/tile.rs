//! A tile of a picture: cut out with its surroundings, made into a tensor, and made into pixels again.
//!
//! Beyond the picture's border its mirror image goes on, so that a model sees no black frame where the
//! picture ends: every tile, at the border or not, is computed with full surroundings.

use std::ops::Range;

use ndarray::Array4;

use crate::tensor::Normalization;
use crate::{Picture, PixelError, halve};

mod alpha;
mod compose;

pub use alpha::{Alpha, FILL};
pub use compose::compose;

/// A rectangle of a picture, in its pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Columns.
    pub x: Range<u32>,
    /// Rows.
    pub y: Range<u32>,
}

impl Region {
    /// How many columns.
    pub const fn width(&self) -> u32 {
        self.x.end - self.x.start
    }

    /// How many rows.
    pub const fn height(&self) -> u32 {
        self.y.end - self.y.start
    }
}

/// A region with its surroundings, as samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// R, G, B of every pixel. Where the picture is transparent, the colours of what is nearest.
    pub rgb: Vec<u8>,
    /// What is transparent.
    pub alpha: Alpha,
}

/// Cuts `region` out with `padding` pixels around it, and more at the right and the bottom where the sides
/// must be multiples of `multiple_of`.
pub fn cut(picture: &Picture, region: &Region, padding: u32, multiple_of: u32) -> Cut {
    let side = |length: u32| (length + 2 * padding).next_multiple_of(multiple_of.max(1));
    let (width, height) = (side(region.width()), side(region.height()));
    let left = i64::from(region.x.start) - i64::from(padding);
    let top = i64::from(region.y.start) - i64::from(padding);
    match &picture.alpha {
        None => {
            let columns = mirrored(left, width, picture.width);
            let rows = mirrored(top, height, picture.height);
            let rgb = gather::<3>(&picture.rgb, picture.width, &columns, &rows);
            Cut { width: width as usize, height: height as usize, rgb, alpha: Alpha::Opaque }
        }
        Some(own) => {
            // What a transparent pixel is filled with comes from up to FILL pixels further away.
            let columns = mirrored(left - i64::from(FILL), width + 2 * FILL, picture.width);
            let rows = mirrored(top - i64::from(FILL), height + 2 * FILL, picture.height);
            let mut rgb = gather::<3>(&picture.rgb, picture.width, &columns, &rows);
            let alpha = gather::<1>(own, picture.width, &columns, &rows);
            alpha::fill(&mut rgb, &alpha, columns.len());
            let rgb = crop::<3>(&rgb, columns.len(), FILL as usize);
            let alpha = Alpha::of(crop::<1>(&alpha, columns.len(), FILL as usize));
            Cut { width: width as usize, height: height as usize, rgb, alpha }
        }
    }
}

/// Where the samples of a line come from: the picture, mirrored at both ends for ever.
fn mirrored(start: i64, length: u32, size: u32) -> Vec<usize> {
    let period = (2 * i64::from(size) - 2).max(1);
    (start..start + i64::from(length))
        .map(|at| {
            let at = at.rem_euclid(period);
            (if at < i64::from(size) { at } else { period - at }) as usize
        })
        .collect()
}

fn gather<const N: usize>(
    samples: &[u8],
    width: u32,
    columns: &[usize],
    rows: &[usize],
) -> Vec<u8> {
    let stride = width as usize * N;
    let mut out = Vec::with_capacity(columns.len() * rows.len() * N);
    for row in rows {
        let line = &samples[row * stride..(row + 1) * stride];
        for column in columns {
            out.extend_from_slice(&line[column * N..(column + 1) * N]);
        }
    }
    out
}

fn crop<const N: usize>(samples: &[u8], width: usize, margin: usize) -> Vec<u8> {
    let rows: Vec<_> = samples.chunks_exact(width * N).collect();
    rows[margin..rows.len() - margin]
        .iter()
        .flat_map(|row| &row[margin * N..(width - margin) * N])
        .copied()
        .collect()
}

/// R, G and B of a cut as f32 `[1, 3, height, width]`, normalised as the manifest says.
pub fn to_tensor(cut: &Cut, normalization: &Normalization) -> Array4<f32> {
    let mut tensor = Array4::zeros((1, 3, cut.height, cut.width));
    for channel in 0..3 {
        let table = normalization.table(channel);
        let plane = tensor.slice_mut(ndarray::s![0, channel, .., ..]);
        for (value, pixel) in plane.into_iter().zip(cut.rgb.chunks_exact(3)) {
            *value = table[usize::from(pixel[channel])];
        }
    }
    tensor
}

/// Alpha as a gray picture: what the model makes of edges, it makes of the edges of alpha.
pub fn alpha_to_tensor(cut: &Cut, alpha: &[u8], normalization: &Normalization) -> Array4<f32> {
    let mut tensor = Array4::zeros((1, 3, cut.height, cut.width));
    for channel in 0..3 {
        let table = normalization.table(channel);
        let plane = tensor.slice_mut(ndarray::s![0, channel, .., ..]);
        for (value, sample) in plane.into_iter().zip(alpha) {
            *value = table[usize::from(*sample)];
        }
    }
    tensor
}

/// How a model's output becomes the pixels of its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Input pixels around the region that were computed in order to be thrown away.
    pub padding: u32,
    /// Output pixels a side for each input pixel, as the model makes them.
    pub scale: u32,
    /// Whether every 2 × 2 of them become one.
    pub halve: bool,
}

impl Trim {
    /// Output pixels a side for each input pixel, in the end.
    pub const fn factor(&self) -> u32 {
        if self.halve { self.scale / 2 } else { self.scale }
    }
}

/// The region's planes of an output `[1, 3, h, w]`: values are cut off at 0 and 1, the padding is thrown
/// away, and what is to be halved is.
///
/// # Errors
/// [`PixelError::InvalidOutput`] when the output has another size than it must or holds what is no number.
pub fn planes(
    output: &Array4<f32>,
    region: &Region,
    trim: Trim,
) -> Result<[Vec<f32>; 3], PixelError> {
    let wrong = |problem: String| PixelError::InvalidOutput(problem);
    let (_, channels, height, width) = output.dim();
    let needed = |length: u32| ((length + 2 * trim.padding) * trim.scale) as usize;
    if channels != 3 || height < needed(region.height()) || width < needed(region.width()) {
        return Err(wrong(format!("its output has the shape {:?}", output.shape())));
    }
    let samples =
        output.as_slice().ok_or_else(|| wrong("its output is not in order".to_owned()))?;
    let offset = (trim.padding * trim.scale) as usize;
    let size =
        ((region.width() * trim.factor()) as usize, (region.height() * trim.factor()) as usize);
    let plane = |channel: usize| {
        let plane = &samples[channel * height * width..(channel + 1) * height * width];
        if trim.halve {
            halve::halve(plane, width, offset, size)
        } else {
            let rows = plane.chunks_exact(width).skip(offset).take(size.1);
            rows.flat_map(|row| {
                row[offset..offset + size.0].iter().map(|value| value.clamp(0.0, 1.0))
            })
            .collect()
        }
    };
    let planes = [plane(0), plane(1), plane(2)];
    // Clamping keeps what is no number, and so does the sum of it.
    if planes.iter().flatten().sum::<f32>().is_finite() {
        Ok(planes)
    } else {
        Err(wrong("its output holds values that are not numbers".to_owned()))
    }
}

/// 0..=1 as a byte.
pub fn to_byte(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0 + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_goes_on_mirrored_beyond_its_border() {
        assert_eq!(mirrored(-3, 10, 4), [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
        assert_eq!(mirrored(-2, 5, 1), [0; 5]);
        assert_eq!(mirrored(-2, 5, 2), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn a_cut_has_its_surroundings_and_the_size_the_model_wants() {
        let rgb = (0..5 * 4).flat_map(|i| [i as u8; 3]).collect();
        let picture = Picture { width: 5, height: 4, rgb, alpha: None, gray: false, icc: None };
        let cut = cut(&picture, &Region { x: 1..3, y: 0..1 }, 1, 4);
        assert_eq!((cut.width, cut.height), (4, 4));
        let reds: Vec<_> = cut.rgb.iter().step_by(3).copied().collect();
        assert_eq!(reds, [5, 6, 7, 8, 0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]);
    }

    #[test]
    fn what_is_no_number_is_the_models_fault() {
        let mut output = Array4::zeros((1, 3, 4, 4));
        let (region, trim) =
            (Region { x: 0..1, y: 0..1 }, Trim { padding: 0, scale: 4, halve: false });
        assert!(planes(&output, &region, trim).is_ok());
        output[[0, 1, 3, 3]] = f32::NAN;
        assert!(matches!(planes(&output, &region, trim), Err(PixelError::InvalidOutput(_))));
    }
}
