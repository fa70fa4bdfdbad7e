//! Resizes 8-bit RGB: bilinear exactly as Pillow for a model's input, and sharper filters for everything else.
//!
//! Models were trained and are checked with Pillow's BILINEAR, and some are sensitive: a difference of one level in
//! the samples moves alpha by more than one level on average. Pillow's filter is a triangle whose support grows with
//! the reduction. Weights are fixed-point with 22 fractional bits. Samples are rounded to 8 bits between the
//! horizontal and the vertical pass, and a pass that changes nothing is skipped.

use image::{DynamicImage, ImageBuffer};
use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;
use retouch_resample::{FilterType, ResizeAlg, ResizeOptions};

use crate::PixelError;
#[cfg(target_arch = "x86_64")]
use avx2::Windows;
use taps::{FRACTION_BITS, HALF, Taps, taps};

#[cfg(target_arch = "x86_64")]
mod avx2;
mod taps;

/// Resizes R, G, B from one size (width, height) to another with a Lanczos filter (3 lobes) if it shrinks a side, otherwise
/// with Catmull-Rom.
///
/// # Errors
/// [`PixelError::Internal`] if the length of `rgb` does not match `from`.
pub fn resample(rgb: Vec<u8>, from: (u32, u32), to: (u32, u32)) -> Result<Vec<u8>, PixelError> {
    if from == to {
        return Ok(rgb);
    }
    let shrinks = to.0 < from.0 || to.1 < from.1;
    let filter = if shrinks { FilterType::Lanczos3 } else { FilterType::CatmullRom };
    convolve(&rgb, from, to, filter)
}

/// Resizes R, G, B from one size (width, height) to another with a triangle filter. Several times faster than
/// [`resize_rgb`], from which it differs by at most a level or two.
///
/// # Errors
/// [`PixelError::Internal`] if the length of `rgb` does not match `from`.
pub fn resize_roughly(rgb: &[u8], from: (u32, u32), to: (u32, u32)) -> Result<Vec<u8>, PixelError> {
    convolve(rgb, from, to, FilterType::Bilinear)
}

fn convolve(
    rgb: &[u8],
    from: (u32, u32),
    to: (u32, u32),
    filter: FilterType,
) -> Result<Vec<u8>, PixelError> {
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    convolve_samples(rgb, 3, from, to, &options)
}

/// Resizes interleaved 8-bit samples of 1, 3 or 4 channels.
///
/// # Errors
/// [`PixelError::Internal`] for other channels, or if the number of samples does not match `from`.
pub(crate) fn convolve_samples(
    samples: &[u8],
    channels: usize,
    from: (u32, u32),
    to: (u32, u32),
    options: &ResizeOptions,
) -> Result<Vec<u8>, PixelError> {
    retouch_resample::resample(samples, channels, from, to, options)
        .map_err(|problem| PixelError::Internal(format!("resizing: {problem}")))
}

/// Resizes a gray, RGB or RGBA picture of 8-bit samples; colors are weighted by alpha.
///
/// # Errors
/// [`PixelError::Internal`] for other pictures.
pub(crate) fn convolve_image(
    picture: &DynamicImage,
    (width, height): (u32, u32),
    options: &ResizeOptions,
) -> Result<DynamicImage, PixelError> {
    let channels = usize::from(picture.color().channel_count());
    let from = (picture.width(), picture.height());
    let made = convolve_samples(picture.as_bytes(), channels, from, (width, height), options)?;
    let made = match picture {
        DynamicImage::ImageLuma8(_) => {
            ImageBuffer::from_raw(width, height, made).map(DynamicImage::ImageLuma8)
        }
        DynamicImage::ImageRgb8(_) => {
            ImageBuffer::from_raw(width, height, made).map(DynamicImage::ImageRgb8)
        }
        DynamicImage::ImageRgba8(_) => {
            ImageBuffer::from_raw(width, height, made).map(DynamicImage::ImageRgba8)
        }
        _ => None,
    };
    made.ok_or_else(|| PixelError::Internal(format!("resizing: {:?}", picture.color())))
}

/// Resizes R, G, B from one size (width, height) to another, bit for bit as Pillow's BILINEAR.
pub fn resize_rgb(
    rgb: &[u8],
    (width, height): (usize, usize),
    (out_width, out_height): (usize, usize),
) -> Vec<u8> {
    let narrow;
    let rgb = if width == out_width {
        rgb
    } else {
        narrow = resize_rows(rgb, width, &taps(width, out_width));
        &narrow
    };
    if height == out_height {
        rgb.to_vec()
    } else {
        resize_columns(rgb, out_width, &taps(height, out_height))
    }
}

fn resize_rows(rgb: &[u8], width: usize, taps: &[Taps]) -> Vec<u8> {
    let mut out = vec![0; rgb.len() / width * taps.len()];
    let rows = out.par_chunks_mut(taps.len() * 3).zip(rgb.par_chunks(width * 3)).with_min_len(8);
    #[cfg(target_arch = "x86_64")]
    if let Some(windows) = Windows::new(width, taps) {
        rows.for_each(|(out, row)| windows.resize(row, out));
        return out;
    }
    rows.for_each(|(out, row)| resize_row(row, out, taps));
    out
}

fn resize_row(row: &[u8], out: &mut [u8], taps: &[Taps]) {
    for (out, taps) in out.chunks_exact_mut(3).zip(taps) {
        let samples = row[taps.first * 3..][..taps.weights.len() * 3].chunks_exact(3);
        let mut sums = [HALF; 3];
        for (sample, weight) in samples.zip(&taps.weights) {
            for channel in 0..3 {
                sums[channel] += i32::from(sample[channel]) * weight;
            }
        }
        out.copy_from_slice(&sums.map(rounded));
    }
}

fn resize_columns(rgb: &[u8], width: usize, taps: &[Taps]) -> Vec<u8> {
    let stride = width * 3;
    let mut out = vec![0; stride * taps.len()];
    out.par_chunks_mut(stride).zip(taps).for_each_init(
        || vec![0; stride],
        |sums, (out, taps)| {
            let rows = &rgb[taps.first * stride..];
            Arch::new().dispatch(WeightedRows { rows, weights: &taps.weights, sums, out });
        },
    );
    out
}

/// Sums up as many rows as there are weights.
struct WeightedRows<'a> {
    rows: &'a [u8],
    weights: &'a [i32],
    sums: &'a mut [i32],
    out: &'a mut [u8],
}

impl NullaryFnOnce for WeightedRows<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { rows, weights, sums, out } = self;
        sums.fill(HALF);
        for (row, weight) in rows.chunks_exact(out.len()).zip(weights) {
            for (sum, sample) in sums.iter_mut().zip(row) {
                *sum += i32::from(*sample) * weight;
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = rounded(*sum);
        }
    }
}

/// Converts a fixed-point sum that started at one half to a sample.
fn rounded(sum: i32) -> u8 {
    (sum >> FRACTION_BITS).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_picture_stays_flat_and_an_equal_size_changes_nothing() {
        let flat = resize_rgb(&[77; 41 * 29 * 3], (41, 29), (7, 50));
        assert_eq!(flat, [77; 7 * 50 * 3]);
        let picture: Vec<u8> = (0..60).collect();
        assert_eq!(resize_rgb(&picture, (5, 4), (5, 4)), picture);
    }

    #[test]
    fn vectors_sum_exactly_as_single_samples_do() {
        // Windows at both ends, of one block and of several; enlarging; a picture narrower than a block.
        for (from, to) in [(4000, 320), (401, 103), (97, 96), (61, 7), (30, 100), (9, 4), (3, 2)] {
            let row: Vec<u8> =
                (0..from as u32 * 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            for row in [row, vec![255; from * 3]] {
                let mut expected = vec![0; to * 3];
                resize_row(&row, &mut expected, &taps(from, to));
                assert_eq!(resize_rows(&row, from, &taps(from, to)), expected, "{from} to {to}");
            }
        }
    }

    #[test]
    fn halving_weights_neighbors_by_a_triangle() {
        // The first output covers inputs 0, 1 and 2 with weights 0.75, 0.75 and 0.25, normalized.
        let row: Vec<u8> = [0, 70, 140, 210].into_iter().flat_map(|v| [v; 3]).collect();
        assert_eq!(resize_rgb(&row, (4, 1), (2, 1)), [50, 50, 50, 160, 160, 160]);
    }
}
