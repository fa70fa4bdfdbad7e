//! Resampling 8-bit RGB with a triangle filter exactly as Pillow does it, bit for bit.
//!
//! Models were trained and are checked against Pillow's BILINEAR, and some are touchy: one level of
//! difference in the samples moves alpha by more than a level on average. The filter's support grows
//! with the reduction; weights are fixed-point with 22 fractional bits; samples are rounded to 8 bits
//! between the horizontal and the vertical pass, and a pass that changes nothing is left out.

use rayon::prelude::*;

/// Fractional bits of a weight: 8 bits of sample and 2 of headroom are left in 32.
const FRACTION_BITS: u32 = 32 - 8 - 2;

/// The weights of the input samples that make one output sample.
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// Resizes `width` × `height` RGB samples to `out_width` × `out_height`.
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

fn taps(size: usize, out_size: usize) -> Vec<Taps> {
    let scale = size as f64 / out_size as f64;
    let support = scale.max(1.0);
    let one = f64::from(1 << FRACTION_BITS);
    let of_output = |index: usize| {
        let centre = (index as f64 + 0.5) * scale;
        let first = (centre - support + 0.5).max(0.0) as usize;
        let end = ((centre + support + 0.5) as usize).min(size);
        let triangle = |at: usize| (1.0 - ((at as f64 - centre + 0.5) / support).abs()).max(0.0);
        let sum: f64 = (first..end).map(triangle).sum();
        let weights = (first..end).map(|at| (triangle(at) / sum * one + 0.5) as i32).collect();
        Taps { first, weights }
    };
    (0..out_size).map(of_output).collect()
}

fn resize_rows(rgb: &[u8], width: usize, taps: &[Taps]) -> Vec<u8> {
    let mut out = vec![0; rgb.len() / width * taps.len()];
    let rows = out.par_chunks_mut(taps.len() * 3).zip(rgb.par_chunks(width * 3));
    rows.with_min_len(8).for_each(|(out, row)| {
        for (out, taps) in out.chunks_exact_mut(3).zip(taps) {
            let samples = row[taps.first * 3..][..taps.weights.len() * 3].chunks_exact(3);
            let mut sums = [1 << (FRACTION_BITS - 1); 3];
            for (sample, weight) in samples.zip(&taps.weights) {
                for channel in 0..3 {
                    sums[channel] += i32::from(sample[channel]) * weight;
                }
            }
            out.copy_from_slice(&sums.map(rounded));
        }
    });
    out
}

fn resize_columns(rgb: &[u8], width: usize, taps: &[Taps]) -> Vec<u8> {
    let stride = width * 3;
    let mut out = vec![0; stride * taps.len()];
    out.par_chunks_mut(stride).zip(taps).for_each(|(out, taps)| {
        let mut sums = vec![1 << (FRACTION_BITS - 1); stride];
        let rows = rgb[taps.first * stride..].chunks_exact(stride);
        for (row, weight) in rows.zip(&taps.weights) {
            for (sum, sample) in sums.iter_mut().zip(row) {
                *sum += i32::from(*sample) * weight;
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = rounded(sum);
        }
    });
    out
}

/// A sum that started at one half, as a sample.
fn rounded(sum: i32) -> u8 {
    (sum >> FRACTION_BITS).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_picture_stays_flat_and_an_equal_size_stays_equal() {
        let flat = resize_rgb(&[77; 41 * 29 * 3], (41, 29), (7, 50));
        assert_eq!(flat, [77; 7 * 50 * 3]);
        let picture: Vec<u8> = (0..60).collect();
        assert_eq!(resize_rgb(&picture, (5, 4), (5, 4)), picture);
    }

    #[test]
    fn halving_weighs_neighbours_as_a_triangle() {
        // The first output covers inputs 0, 1 and 2 with weights 0.75, 0.75 and 0.25, normalised.
        let row: Vec<u8> = [0, 70, 140, 210].into_iter().flat_map(|v| [v; 3]).collect();
        assert_eq!(resize_rgb(&row, (4, 1), (2, 1)), [50, 50, 50, 160, 160, 160]);
    }
}
