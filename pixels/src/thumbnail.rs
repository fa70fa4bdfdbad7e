//! Thumbnails: small copies for lists, computed row by row while the picture is written.

use std::num::NonZero;

use bytes::Bytes;
use retouch_resample::{FilterType, ResizeAlg, ResizeOptions};

use crate::encode::{Channels, Rgba, encode_png, interleave};
use crate::icc::MAX_THUMBNAIL_PROFILE_BYTES;
use crate::resize::convolve_samples;
use crate::{Picture, PixelError};

/// Maximum, in pixels.
pub const THUMBNAIL_SIDE: u32 = 512;

/// A thumbnail in the making. Averages blocks of pixels, colors weighted by alpha, down to about twice the size of a
/// thumbnail; a resize at the end does the rest.
pub struct Thumbnail {
    size: (u32, u32),
    channels: Channels,
    /// The side of a block, in pixels.
    block: usize,
    columns: usize,
    /// The sums of each block in the current block row: premultiplied R, G, B; alpha; number of pixels.
    sums: Vec<[u32; 5]>,
    rows_in_block: usize,
    /// R, G, B, A of the finished blocks.
    reduced: Vec<u8>,
}

impl Thumbnail {
    /// Creates an empty thumbnail for a picture of `size` (width, height).
    pub fn new(size: (u32, u32), channels: Channels) -> Self {
        let block = (size.0.max(size.1) / (2 * THUMBNAIL_SIDE)).max(1);
        let columns = size.0.div_ceil(block) as usize;
        let reduced = Vec::with_capacity(columns * size.1.div_ceil(block) as usize * 4);
        let (sums, block) = (vec![[0; 5]; columns], block as usize);
        Self { size, channels, block, columns, sums, rows_in_block: 0, reduced }
    }

    /// Continues from R, G, B, A of a picture of `size` that was reduced to `columns` pixels a row.
    pub fn of_reduced(size: (u32, u32), columns: u32, pixels: Vec<u8>) -> Self {
        let columns = columns as usize;
        let (channels, block) = (Channels::Rgba, 1);
        Self { size, channels, block, columns, sums: Vec::new(), rows_in_block: 0, reduced: pixels }
    }

    /// Adds whole rows of interleaved samples.
    pub fn push(&mut self, rows: &[u8]) {
        if self.block == 1 {
            return self.push_pixels(rows);
        }
        let count = self.channels.count();
        for row in rows.chunks_exact(self.size.0 as usize * count) {
            for (sum, run) in self.sums.iter_mut().zip(row.chunks(self.block * count)) {
                match self.channels {
                    Channels::Gray => add::<1>(sum, run, |[v]| [v, v, v, u8::MAX]),
                    Channels::GrayAlpha => add::<2>(sum, run, |[v, a]| [v, v, v, a]),
                    Channels::Rgb => add::<3>(sum, run, |[r, g, b]| [r, g, b, u8::MAX]),
                    Channels::Rgba => add::<4>(sum, run, |pixel| pixel),
                }
            }
            self.rows_in_block += 1;
            if self.rows_in_block == self.block {
                self.close_block_row();
            }
        }
    }

    /// Adds pixels that are blocks themselves.
    fn push_pixels(&mut self, samples: &[u8]) {
        match self.channels {
            Channels::Gray => self.extend::<1>(samples, |[v]| [v, v, v, u8::MAX]),
            Channels::GrayAlpha => self.extend::<2>(samples, |[v, a]| [v, v, v, a]),
            Channels::Rgb => self.extend::<3>(samples, |[r, g, b]| [r, g, b, u8::MAX]),
            Channels::Rgba => self.extend::<4>(samples, |pixel| pixel),
        }
    }

    fn extend<const N: usize>(&mut self, samples: &[u8], rgba: impl Fn([u8; N]) -> [u8; 4]) {
        let pixels = samples.as_chunks::<N>().0.iter().map(|pixel| rgba(*pixel));
        let visible = pixels.map(|pixel| if pixel[3] == 0 { [0; 4] } else { pixel });
        self.reduced.extend(visible.flatten());
    }

    fn close_block_row(&mut self) {
        for sum in &mut self.sums {
            let [r, g, b, alpha, count] = std::mem::take(sum);
            self.reduced.extend(match (NonZero::new(alpha), NonZero::new(count)) {
                (Some(weight), Some(count)) => {
                    let [r, g, b] = [r, g, b].map(|sum| ((sum + alpha / 2) / weight) as u8);
                    [r, g, b, ((alpha + count.get() / 2) / count) as u8]
                }
                _ => [0; 4],
            });
        }
        self.rows_in_block = 0;
    }

    pub fn of(picture: &Picture) -> Self {
        let channels = Channels::of(picture.gray, picture.alpha.is_some());
        let mut thumbnail = Self::new((picture.width, picture.height), channels);
        let mut line = Vec::new();
        for y in 0..picture.height as usize {
            interleave(picture, y, &mut line);
            thumbnail.push(&line);
        }
        thumbnail
    }

    /// Encodes the thumbnail as an RGBA PNG; `icc` is the profile to embed unless it is large.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if rows are missing or the encoder fails.
    pub fn encode(self, icc: Option<&[u8]>) -> Result<Bytes, PixelError> {
        let (width, height, pixels) = self.into_rgba()?;
        let icc = small_profile(icc);
        encode_png(Rgba { width, height, pixels: &pixels, icc })
    }

    /// Returns the thumbnail's width and height in pixels, and R, G, B, A of every pixel.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if rows are missing.
    pub fn into_rgba(mut self) -> Result<(u32, u32, Vec<u8>), PixelError> {
        if self.rows_in_block > 0 {
            self.close_block_row();
        }
        let longest = self.size.0.max(self.size.1);
        let (width, height) =
            (self.columns as u32, (self.reduced.len() / self.columns.max(1) / 4) as u32);
        if longest <= THUMBNAIL_SIDE {
            return Ok((width, height, self.reduced));
        }
        let side = |side: u32| {
            let scaled = u64::from(side) * u64::from(THUMBNAIL_SIDE) + u64::from(longest) / 2;
            ((scaled / u64::from(longest)) as u32).max(1)
        };
        let small = (side(self.size.0), side(self.size.1));
        // Weighting colors by alpha keeps transparent black from darkening the edge.
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom))
            .use_alpha(true);
        let pixels = convolve_samples(&self.reduced, 4, (width, height), small, &options)?;
        Ok((small.0, small.1, pixels))
    }
}

/// Drops a profile that would take more than the thumbnail itself.
pub(crate) fn small_profile(icc: Option<&[u8]>) -> Option<&[u8]> {
    icc.filter(|profile| profile.len() <= MAX_THUMBNAIL_PROFILE_BYTES)
}

fn add<const N: usize>(sum: &mut [u32; 5], run: &[u8], rgba: impl Fn([u8; N]) -> [u8; 4]) {
    for pixel in run.as_chunks::<N>().0 {
        let [r, g, b, alpha] = rgba(*pixel).map(u32::from);
        for (sum, value) in sum.iter_mut().zip([r * alpha, g * alpha, b * alpha, alpha, 1]) {
            *sum += value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Thumbnail {
        /// Encodes the thumbnail of interleaved samples.
        pub fn encoded(picture: Rgba<'_>) -> Result<Bytes, PixelError> {
            let mut thumbnail = Self::new((picture.width, picture.height), Channels::Rgba);
            thumbnail.push(picture.pixels);
            thumbnail.encode(picture.icc)
        }
    }

    fn decoded(png: &Bytes) -> image::RgbaImage {
        image::load_from_memory(png).expect("our own PNG decodes").into_rgba8()
    }

    #[test]
    fn a_transparent_edge_keeps_its_color() {
        let (width, height) = (2600, 1300);
        let pixels: Vec<u8> = (0..width * height)
            .flat_map(|i| if i % width < width / 2 { [250, 10, 10, 255] } else { [0; 4] })
            .collect();
        let picture = Rgba { width, height, pixels: &pixels, icc: None };
        let small = decoded(&Thumbnail::encoded(picture).expect("it encodes"));
        assert_eq!(small.dimensions(), (512, 256));
        assert!(small.pixels().filter(|pixel| pixel[3] > 8).all(|pixel| pixel[0] > 240));
    }

    #[test]
    fn pixels_without_blocks_are_taken_as_they_are() {
        let push = |channels, samples: &[u8]| {
            let mut thumbnail = Thumbnail::new((2, 1), channels);
            thumbnail.push(samples);
            thumbnail.into_rgba().expect("a row is there")
        };
        assert_eq!(push(Channels::Gray, &[7, 9]), (2, 1, vec![7, 7, 7, 255, 9, 9, 9, 255]));
        assert_eq!(push(Channels::GrayAlpha, &[7, 3, 9, 0]), (2, 1, vec![7, 7, 7, 3, 0, 0, 0, 0]));
        let rgb = vec![1, 2, 3, 255, 4, 5, 6, 255];
        assert_eq!(push(Channels::Rgb, &[1, 2, 3, 4, 5, 6]), (2, 1, rgb));
        let rgba = [1, 2, 3, 0, 4, 5, 6, 1];
        assert_eq!(push(Channels::Rgba, &rgba), (2, 1, vec![0, 0, 0, 0, 4, 5, 6, 1]));
    }

    #[test]
    fn a_long_strip_keeps_at_least_one_pixel_per_side() {
        let pixels = vec![9; 5000 * 4];
        let strip = Rgba { width: 1, height: 5000, pixels: &pixels, icc: None };
        let small = decoded(&Thumbnail::encoded(strip).expect("it encodes"));
        assert_eq!(small.dimensions(), (1, 512));
    }
}
