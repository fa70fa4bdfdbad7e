//! Tiles: cuts a region with its padding out of a picture, converts it to a tensor, and converts the model's output back
//! to pixels.
//!
//! **Padding** is what a tile shows the model of its surroundings and what is discarded afterwards. Beyond the border
//! the picture continues mirrored, so the model never sees a black frame and every tile has full padding.
//! **Tile overlap** is what neighboring tiles both compute and keep, where one fades into the other; [`crate::band`]
//! blends it.

use std::ops::Range;

use ndarray::Array4;

use crate::tensor::Normalization;
use crate::{Picture, PixelError, lanczos};

mod alpha;
mod compose;

pub use alpha::{Alpha, FILL_RADIUS};
pub use compose::compose;

/// A rectangle of a picture, in pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Columns.
    pub x: Range<u32>,
    /// Rows.
    pub y: Range<u32>,
}

impl Region {
    /// Returns the number of columns.
    pub const fn width(&self) -> u32 {
        self.x.end - self.x.start
    }

    /// Returns the number of rows.
    pub const fn height(&self) -> u32 {
        self.y.end - self.y.start
    }
}

/// A region with its padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedTile {
    /// Width in pixels, padding included.
    pub width: usize,
    /// Height in pixels, padding included.
    pub height: usize,
    /// R, G, B of every pixel; transparent pixels have the color of the nearest visible ones.
    pub rgb: Vec<u8>,
    /// The tile's alpha.
    pub alpha: Alpha,
}

/// The size of a tile with its padding, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileSize {
    /// As large as the region needs, up to the next multiple of this.
    MultipleOf(u32),
    /// Exactly this size; a region that needs more does not fit.
    Exactly {
        /// The width.
        width: u32,
        /// The height.
        height: u32,
    },
}

impl TileSize {
    /// As large as the region needs.
    pub const ANY: Self = Self::MultipleOf(1);

    /// Returns the width and height of a tile around a region, at least what the region needs.
    pub fn around(self, region: &Region, padding: u32) -> (u32, u32) {
        let needed = (region.width() + 2 * padding, region.height() + 2 * padding);
        match self {
            Self::MultipleOf(of) => {
                (needed.0.next_multiple_of(of.max(1)), needed.1.next_multiple_of(of.max(1)))
            }
            Self::Exactly { width, height } => (width.max(needed.0), height.max(needed.1)),
        }
    }
}

/// Cuts out `region` with `padding` pixels on every side, and more on the right and at the bottom to fill `size`.
pub fn cut(picture: &Picture, region: &Region, padding: u32, size: TileSize) -> PaddedTile {
    let (width, height) = size.around(region, padding);
    let left = i64::from(region.x.start) - i64::from(padding);
    let top = i64::from(region.y.start) - i64::from(padding);
    match &picture.alpha {
        None => {
            let columns = mirrored(left, width, picture.width);
            let rows = mirrored(top, height, picture.height);
            let rgb = gather::<3>(&picture.rgb, picture.width, &columns, &rows);
            PaddedTile { width: width as usize, height: height as usize, rgb, alpha: Alpha::Opaque }
        }
        Some(own) => {
            // Visible colors spread up to FILL_RADIUS pixels from outside the tile.
            let columns =
                mirrored(left - i64::from(FILL_RADIUS), width + 2 * FILL_RADIUS, picture.width);
            let rows =
                mirrored(top - i64::from(FILL_RADIUS), height + 2 * FILL_RADIUS, picture.height);
            let mut rgb = gather::<3>(&picture.rgb, picture.width, &columns, &rows);
            let alpha = gather::<1>(own, picture.width, &columns, &rows);
            alpha::fill(&mut rgb, &alpha, columns.len());
            let rgb = crop::<3>(&rgb, columns.len(), FILL_RADIUS as usize);
            let alpha = Alpha::of(crop::<1>(&alpha, columns.len(), FILL_RADIUS as usize));
            PaddedTile { width: width as usize, height: height as usize, rgb, alpha }
        }
    }
}

/// Returns the index in a line of `size` pixels for each position from `start`, with the line mirrored endlessly at
/// both ends (the last pixel is not repeated).
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

/// Converts R, G and B of a tile to f32 `[1, 3, height, width]`.
pub fn to_tensor(tile: &PaddedTile, normalization: &Normalization) -> Array4<f32> {
    let mut tensor = Array4::zeros((1, 3, tile.height, tile.width));
    for channel in 0..3 {
        let table = normalization.table(channel);
        let plane = tensor.slice_mut(ndarray::s![0, channel, .., ..]);
        for (value, pixel) in plane.into_iter().zip(tile.rgb.chunks_exact(3)) {
            *value = table[usize::from(pixel[channel])];
        }
    }
    tensor
}

/// Converts a tile's alpha to f32 `[1, 3, height, width]` with equal channels, so that the model enlarges alpha like a
/// gray picture and its edges match those of the colors.
pub fn alpha_to_tensor(
    tile: &PaddedTile,
    alpha: &[u8],
    normalization: &Normalization,
) -> Array4<f32> {
    let mut tensor = Array4::zeros((1, 3, tile.height, tile.width));
    for channel in 0..3 {
        let table = normalization.table(channel);
        let plane = tensor.slice_mut(ndarray::s![0, channel, .., ..]);
        for (value, sample) in plane.into_iter().zip(alpha) {
            *value = table[usize::from(*sample)];
        }
    }
    tensor
}

/// How a model's output relates to the region it was computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLayout {
    /// The padding around the region, in input pixels.
    pub padding: u32,
    /// The model's scale: output pixels per input pixel along a side.
    pub scale: u32,
    /// The final scale: pixels of the result per input pixel along a side. The output is resampled if it differs.
    pub factor: u32,
}

impl OutputLayout {
    /// Returns how many input pixels around a region the resampling of its output reads.
    pub const fn resampling_padding(scale: u32, factor: u32) -> u32 {
        (lanczos::reach(scale as usize, factor as usize) as u32).div_ceil(scale)
    }
}

/// Returns the red, green and blue plane of a region from a model's output, f32 `[1, 3, h, w]`: drops the padding,
/// clamps to 0..=1 and resamples from `layout.scale` to `layout.factor`. Each plane has `region.width() *
/// layout.factor` columns.
///
/// # Errors
/// [`PixelError::InvalidOutput`] if the output is too small, is not contiguous, or contains NaN or infinities.
pub fn planes(
    output: &Array4<f32>,
    region: &Region,
    layout: OutputLayout,
) -> Result<[Vec<f32>; 3], PixelError> {
    let wrong = |problem: String| PixelError::InvalidOutput(problem);
    let (_, channels, height, width) = output.dim();
    let needed = |length: u32| ((length + 2 * layout.padding) * layout.scale) as usize;
    if channels != 3 || height < needed(region.height()) || width < needed(region.width()) {
        return Err(wrong(format!("it has the shape {:?}", output.shape())));
    }
    let samples = output.as_slice().ok_or_else(|| wrong("it is not contiguous".to_owned()))?;
    let offset = (layout.padding * layout.scale) as usize;
    let size =
        ((region.width() * layout.factor) as usize, (region.height() * layout.factor) as usize);
    // Half precision overflows to infinities, which a clamp would turn into white. As integers, the bits of an infinity
    // are larger than those of every number, and those of NaN larger still.
    let largest = samples.iter().fold(0, |largest, value| value.abs().to_bits().max(largest));
    if largest >= f32::INFINITY.to_bits() {
        return Err(wrong("it contains NaN or infinite values".to_owned()));
    }
    let plane = |channel: usize| {
        let plane = &samples[channel * height * width..(channel + 1) * height * width];
        if layout.factor == layout.scale {
            let rows = plane.chunks_exact(width).skip(offset).take(size.1);
            rows.flat_map(|row| {
                row[offset..offset + size.0].iter().map(|value| value.clamp(0.0, 1.0))
            })
            .collect()
        } else {
            let ratio = (layout.scale as usize, layout.factor as usize);
            lanczos::resample(plane, width, offset, size, ratio)
        }
    };
    Ok([plane(0), plane(1), plane(2)])
}

/// Converts a value of 0..=1 to a sample, rounded; clamps other values.
pub fn to_byte(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0 + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_mirrored_beyond_its_border() {
        assert_eq!(mirrored(-3, 10, 4), [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
        assert_eq!(mirrored(-2, 5, 1), [0; 5]);
        assert_eq!(mirrored(-2, 5, 2), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn a_tile_has_its_padding_and_a_multiple_of_the_side() {
        let rgb = (0..5 * 4).flat_map(|i| [i as u8; 3]).collect();
        let picture = Picture { width: 5, height: 4, rgb, alpha: None, gray: false, icc: None };
        let tile = cut(&picture, &Region { x: 1..3, y: 0..1 }, 1, TileSize::MultipleOf(4));
        assert_eq!((tile.width, tile.height), (4, 4));
        let reds: Vec<_> = tile.rgb.iter().step_by(3).copied().collect();
        assert_eq!(reds, [5, 6, 7, 8, 0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]);
    }

    #[test]
    fn a_tile_of_fixed_size_mirrors_what_the_picture_lacks() {
        let rgb = (0..3 * 2).flat_map(|i| [i as u8; 3]).collect();
        let picture = Picture { width: 3, height: 2, rgb, alpha: None, gray: false, icc: None };
        let size = TileSize::Exactly { width: 6, height: 5 };
        let tile = cut(&picture, &Region { x: 0..3, y: 0..2 }, 1, size);
        assert_eq!((tile.width, tile.height), (6, 5));
        let reds: Vec<_> = tile.rgb.iter().step_by(3).copied().collect();
        assert_eq!(reds[..12], [4, 3, 4, 5, 4, 3, 1, 0, 1, 2, 1, 0]);
        assert_eq!(reds[24..], [4, 3, 4, 5, 4, 3]);
    }

    #[test]
    fn values_that_are_not_finite_are_an_invalid_output() {
        let mut output = Array4::zeros((1, 3, 4, 4));
        let (region, layout) =
            (Region { x: 0..1, y: 0..1 }, OutputLayout { padding: 0, scale: 4, factor: 4 });
        assert!(planes(&output, &region, layout).is_ok());
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            output[[0, 1, 3, 3]] = value;
            assert!(matches!(planes(&output, &region, layout), Err(PixelError::InvalidOutput(_))));
        }
    }
}
