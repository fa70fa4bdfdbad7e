//! Tiles: cuts a region with its padding out of a picture, as the input of a model, and takes the region out of the model's
//! output.
//!
//! **Padding** is what a tile shows the model of its surroundings and what is discarded afterwards. Beyond the border
//! the picture continues mirrored, so the model never sees a black frame and every tile has full padding.
//! **Tile overlap** is what neighboring tiles both compute and keep, where one fades into the other; [`crate::band`]
//! blends it.

use std::ops::Range;

use ndarray::Array4;

use crate::{Picture, lanczos};

mod alpha;
mod compose;
mod keep_colors;
mod soft;

pub use alpha::{Alpha, FILL_RADIUS};
pub use compose::{compose, region_of};
pub use keep_colors::{COLOR_REACH, Correction};

/// A rectangle of a picture, in pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Columns.
    pub x: Range<u32>,
    /// Rows.
    pub y: Range<u32>,
}

impl Region {
    pub const fn width(&self) -> u32 {
        self.x.end - self.x.start
    }

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
    pub alpha: Alpha,
}

/// The size of a tile with its padding, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileSize {
    /// As large as the region needs, up to the next multiple of this.
    MultipleOf(u32),
    /// Exactly this size; a region that needs more does not fit.
    Exactly { width: u32, height: u32 },
    /// A square with the smallest side of [`halves`] that the region fits into.
    Halving {
        /// The longest side.
        largest: u32,
        /// The least side, before it is rounded up.
        smallest: u32,
        /// Every side is a multiple of this.
        multiple_of: u32,
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
            Self::Halving { largest, smallest, multiple_of } => {
                let needed = needed.0.max(needed.1).max(smallest);
                let needed = needed.next_multiple_of(multiple_of.max(1));
                let fitting = halves(largest, multiple_of).take_while(|side| *side >= needed);
                let side = fitting.last().unwrap_or(needed);
                (side, side)
            }
        }
    }

    /// Returns the side of square regions whose tiles have half the side of those around regions of `side`.
    pub fn half_as_large(self, side: u32, padding: u32) -> u32 {
        let Self::Halving { multiple_of, .. } = self else { return side / 2 };
        let (tile, _) = self.around(&Region { x: 0..side, y: 0..side }, padding);
        let half = halves(tile, multiple_of).nth(1);
        half.map_or(0, |half| half.saturating_sub(2 * padding))
    }
}

/// Returns a side, its half, its quarter, and so on, each rounded up to a multiple of `multiple_of`.
pub fn halves(side: u32, multiple_of: u32) -> impl Iterator<Item = u32> {
    let of = multiple_of.max(1);
    let half = move |side: &u32| {
        let half = (side / 2).next_multiple_of(of);
        (0 < half && half < *side).then_some(half)
    };
    std::iter::successors(Some(side.next_multiple_of(of)), half)
}

/// Cuts out `region` with `padding` pixels on every side, and more on the right and at the bottom to fill `size`.
pub fn cut(picture: &Picture, region: &Region, padding: u32, size: TileSize) -> PaddedTile {
    cut_spreading(picture, region, padding, size, |_, _| true)
}

/// Like [`cut`]; `spreads(column, row)` returns whether the color of a visible pixel spreads into transparent ones.
pub fn cut_spreading(
    picture: &Picture,
    region: &Region,
    padding: u32,
    size: TileSize,
    spreads: impl Fn(usize, usize) -> bool,
) -> PaddedTile {
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
            alpha::fill(&mut rgb, &alpha, columns.len(), |at| {
                spreads(columns[at % columns.len()], rows[at / columns.len()])
            });
            let rgb = crop::<3>(&rgb, columns.len(), FILL_RADIUS as usize);
            let alpha = Alpha::of(crop::<1>(&alpha, columns.len(), FILL_RADIUS as usize));
            PaddedTile { width: width as usize, height: height as usize, rgb, alpha }
        }
    }
}

/// Returns the index in a line of `size` pixels for each position from `start`, with the line mirrored endlessly at
/// both ends (the last pixel is not repeated).
pub(crate) fn mirrored(start: i64, length: u32, size: u32) -> Vec<usize> {
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

impl PaddedTile {
    /// Returns R, G and B as bytes `[1, height, width, 3]`.
    pub fn colors(&self) -> Array4<u8> {
        let mut bytes = Array4::zeros((1, self.height, self.width, 3));
        bytes.iter_mut().zip(&self.rgb).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// Returns samples of alpha, one per pixel, as bytes `[1, height, width, 3]` with equal channels, so that the model
    /// enlarges alpha like a gray picture and its edges match those of the colors.
    pub fn gray(&self, alpha: &[u8]) -> Array4<u8> {
        let mut bytes = Array4::zeros((1, self.height, self.width, 3));
        let samples = alpha.iter().flat_map(|sample| [*sample; 3]);
        bytes.iter_mut().zip(samples).for_each(|(to, from)| *to = from);
        bytes
    }
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
    /// Returns how many input pixels around a region its result looks at, beside what the model needs: for resampling, and
    /// for its colors.
    pub const fn reach(scale: u32, factor: u32) -> u32 {
        let of_colors = if scale > 1 { COLOR_REACH } else { 0 };
        (lanczos::reach(scale as usize, factor as usize) as u32).div_ceil(scale) + of_colors
    }

    /// Returns the columns and rows of a tile that the result of its region looks at.
    fn window(&self, region: &Region) -> (Range<u32>, Range<u32>) {
        let reach = Self::reach(self.scale, self.factor).min(self.padding);
        let around = |length: u32| self.padding - reach..self.padding + length + reach;
        (around(region.width()), around(region.height()))
    }
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
    fn colors_and_alpha_become_inputs() {
        let rgb = vec![1, 2, 3, 4, 5, 6];
        let tile = PaddedTile { width: 2, height: 1, rgb, alpha: Alpha::Opaque };
        assert_eq!(tile.colors().shape(), [1, 1, 2, 3]);
        assert_eq!(tile.colors().iter().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(tile.gray(&[7, 9]).iter().copied().collect::<Vec<_>>(), [7, 7, 7, 9, 9, 9]);
    }
}
