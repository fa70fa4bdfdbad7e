//! Keeps soft alpha soft. Nets sharpen it or draw rings into it, although they draw hair and hard edges well.
//!
//! An enlarged alpha should shrink back to the original. Where the net's does not, a plain enlargement takes its place.

use ndarray::ArrayRef4;

use super::{OutputLayout, Region};
use crate::lanczos;

/// The mean difference around a pixel, of 255, up to which the net's alpha counts alone, and the one from which it does not
/// count. Measured on circles with edges of 0.25 to 8 pixels, and on hair.
const TRUSTED: f32 = 8.0;
const REJECTED: f32 = 24.0;

/// How far the net's alpha counts, from 0 to 1, for the pixels of a region and one more on each side.
pub(super) struct Trust {
    columns: usize,
    of_pixels: Vec<f32>,
}

impl Trust {
    /// Compares the net's output with `own`, the alpha of the tile. The output is not corrected: at the border, the correction
    /// depends on the tile.
    pub(super) fn new(
        output: &ArrayRef4<u8>,
        own: &[u8],
        width: usize,
        region: &Region,
        layout: OutputLayout,
    ) -> Self {
        let (scale, start) = (layout.scale as usize, layout.padding as usize - 1);
        let (columns, rows) = (region.width() as usize + 2, region.height() as usize + 2);
        let difference = |x: usize, y: usize| {
            let (x_samples, y_samples) = (x * scale..(x + 1) * scale, y * scale..(y + 1) * scale);
            let block = output.slice(ndarray::s![0, y_samples, x_samples, ..]);
            let sum: u32 = block.iter().map(|sample| u32::from(*sample)).sum();
            (sum as f32 / block.len() as f32 - f32::from(own[y * width + x])).abs()
        };
        let wide = columns + 2;
        let differences: Vec<f32> = (0..wide * (rows + 2))
            .map(|at| difference(start - 1 + at % wide, start - 1 + at / wide))
            .collect();
        let of_pixel = |at: usize| {
            let first = at / columns * wide + at % columns;
            let around = [first, first + wide, first + 2 * wide];
            let sum: f32 = around.iter().flat_map(|at| &differences[*at..at + 3]).sum();
            ((REJECTED - sum / 9.0) / (REJECTED - TRUSTED)).clamp(0.0, 1.0)
        };
        Self { columns, of_pixels: (0..columns * rows).map(of_pixel).collect() }
    }

    /// Replaces what the net made of soft alpha. `made` is alpha in 0..=255, of the region at its final size.
    pub(super) fn keep_soft(
        &self,
        made: &mut [f32],
        own: &[u8],
        width: usize,
        region: &Region,
        layout: OutputLayout,
    ) {
        let factor = layout.factor as usize;
        let (columns, rows) = (region.width() as usize, region.height() as usize);
        let plane: Vec<f32> = own.iter().map(|alpha| f32::from(*alpha) / 255.0).collect();
        let size = (columns * factor, rows * factor);
        let plain = lanczos::resample(&plane, width, layout.padding as usize, size, (1, factor));
        let places = |length: usize| -> Vec<(usize, f32)> {
            let center = |at: usize| (at as f32 + 0.5) / factor as f32 + 0.5;
            (0..length * factor).map(|at| (center(at) as usize, center(at).fract())).collect()
        };
        let (across, down) = (places(columns), places(rows));
        for (at, (made, plain)) in made.iter_mut().zip(plain).enumerate() {
            let ((x, right), (y, below)) = (across[at % size.0], down[at / size.0]);
            let row = |y: usize| {
                let pair = &self.of_pixels[y * self.columns + x..][..2];
                pair[0] + (pair[1] - pair[0]) * right
            };
            let trust = row(y) + (row(y + 1) - row(y)) * below;
            *made = *made * trust + 255.0 * plain * (1.0 - trust);
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array4;

    use super::*;

    const LAYOUT: OutputLayout = OutputLayout { padding: 5, scale: 2, factor: 2 };

    /// Returns the alpha of the middle row for alpha by column, and a net that returns black and white.
    fn kept(alpha: impl Fn(usize) -> u8) -> Vec<u8> {
        let (width, height) = (26, 13);
        let own: Vec<u8> = (0..width * height).map(|at| alpha(at % width)).collect();
        let region = Region { x: 0..16, y: 0..3 };
        let hard = |x: usize| if own[x / 2] < 128 { 0 } else { 255 };
        let output = Array4::from_shape_fn((1, 2 * height, 2 * width, 3), |(_, _, x, _)| hard(x));
        let mut made: Vec<f32> = (0..32 * 6).map(|at| f32::from(hard(10 + at % 32))).collect();
        let trust = Trust::new(&output, &own, width, &region, LAYOUT);
        trust.keep_soft(&mut made, &own, width, &region, LAYOUT);
        made[3 * 32..4 * 32].iter().map(|alpha| alpha.round() as u8).collect()
    }

    #[test]
    fn a_slope_that_the_net_made_an_edge_stays_a_slope() {
        let slope = |x: f32| ((x - 9.0) * 32.0).clamp(0.0, 255.0);
        let made = kept(|x| slope(x as f32) as u8);
        for (at, made) in made.iter().enumerate() {
            let expected = slope((at as f32 - 0.5) / 2.0 + 5.0);
            assert!((f32::from(*made) - expected).abs() < 12.0, "{at}: {made}, {expected}");
        }
    }

    #[test]
    fn an_edge_is_as_sharp_as_the_net_draws_it() {
        let made = kept(|x| if x < 13 { 0 } else { 255 });
        let expected: Vec<u8> = (0..32).map(|at| if at < 16 { 0 } else { 255 }).collect();
        assert_eq!(made, expected);
    }
}
