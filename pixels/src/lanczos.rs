//! Resamples a plane with a Lanczos filter of three lobes, with the weights of Pillow's LANCZOS. Halving is a case of its
//! own, because most upscales need it: 12 × 12 samples for each output sample.

use std::f32::consts::PI;
use std::sync::LazyLock;

/// Input samples on each side of the center that an output sample depends on when halving.
const REACH: usize = 6;

const LOBES: f32 = 3.0;

/// `sinc(x) sinc(x / 3)` at the twelve input samples, with `x` in output samples from the center; the sum is 1.
static WEIGHTS: LazyLock<[f32; 2 * REACH]> = LazyLock::new(|| {
    let raw: [f32; 2 * REACH] =
        std::array::from_fn(|tap| lanczos((tap as f32 + 0.5 - REACH as f32) / 2.0));
    let sum: f32 = raw.iter().sum();
    raw.map(|weight| weight / sum)
});

/// `sinc(x) sinc(x / 3)` within three lobes of the center, 0 beyond.
fn lanczos(x: f32) -> f32 {
    let sinc = |x: f32| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
    if x.abs() < LOBES { sinc(x) * sinc(x / LOBES) } else { 0.0 }
}

/// Returns how many samples around a part of a plane its resampling reads, for `factor` output samples from every
/// `scale` input samples.
pub const fn reach(scale: usize, factor: usize) -> usize {
    if scale == factor {
        0
    } else if scale > factor {
        (3 * scale).div_ceil(factor)
    } else {
        3
    }
}

/// Resamples the part of `plane` that starts `offset` samples from its left and top, to `size` (columns, rows): `factor`
/// output samples from every `scale` input samples. `size` is a multiple of `factor`. Samples are clamped to 0..=1
/// before and after. The plane must extend at least [`reach`] samples beyond that part on every side.
///
/// A sample depends only on its place within its group of `factor`, so the parts of a picture can be resampled apart.
pub fn resample(
    plane: &[f32],
    width: usize,
    offset: usize,
    size: (usize, usize),
    (scale, factor): (usize, usize),
) -> Vec<f32> {
    if scale == 2 * factor {
        return halve(plane, width, offset, size);
    }
    let (columns, rows) = size;
    let taps = taps(scale, factor);
    let reach = reach(scale, factor);
    let start = offset - reach;
    let window = |index: usize| {
        let Taps { first, weights } = &taps[index % factor];
        (index / factor * scale + first, weights)
    };
    // From `reach` lines before the part to `reach` lines after it.
    let lines = rows / factor * scale + 2 * reach;
    let mut narrow = vec![0.0; lines * columns];
    let mut line = vec![0.0; columns / factor * scale + 2 * reach];
    for (row, out) in narrow.chunks_exact_mut(columns).enumerate() {
        let from = (start + row) * width + start;
        for (value, sample) in line.iter_mut().zip(&plane[from..]) {
            *value = sample.clamp(0.0, 1.0);
        }
        for (column, value) in out.iter_mut().enumerate() {
            let (at, weights) = window(column);
            *value = line[at..].iter().zip(weights).map(|(sample, weight)| sample * weight).sum();
        }
    }
    let mut out = vec![0.0; columns * rows];
    for (row, out) in out.chunks_exact_mut(columns).enumerate() {
        let (at, weights) = window(row);
        for (line, weight) in narrow[at * columns..].chunks_exact(columns).zip(weights) {
            for (value, sample) in out.iter_mut().zip(line) {
                *value += sample * weight;
            }
        }
        for value in out {
            *value = value.clamp(0.0, 1.0);
        }
    }
    out
}

/// The weights of an output sample, which sum to 1.
struct Taps {
    /// The first input sample, counted from [`reach`] samples before the group.
    first: usize,
    weights: Vec<f32>,
}

/// Returns the weights of each of the `factor` output samples of a group.
fn taps(scale: usize, factor: usize) -> Vec<Taps> {
    let ratio = scale as f32 / factor as f32;
    // When shrinking, the filter widens to cover what falls together.
    let stretch = ratio.max(1.0);
    let reach = reach(scale, factor);
    let of_output = |index: usize| {
        let center = (index as f32 + 0.5) * ratio + reach as f32;
        let first = (center - LOBES * stretch).max(0.0) as usize;
        let last = ((center + LOBES * stretch).ceil() as usize).min(scale + 2 * reach);
        let raw = (first..last).map(|at| lanczos((at as f32 + 0.5 - center) / stretch));
        let raw: Vec<f32> = raw.collect();
        let sum: f32 = raw.iter().sum();
        Taps { first, weights: raw.into_iter().map(|weight| weight / sum).collect() }
    };
    (0..factor).map(of_output).collect()
}

/// Halves the part of `plane` that starts `offset` samples from its left and top and has twice `size` (columns, rows).
/// Samples are clamped to 0..=1 before and after. The plane must extend at least [`REACH`] samples beyond that part on
/// every side.
fn halve(plane: &[f32], width: usize, offset: usize, size: (usize, usize)) -> Vec<f32> {
    let (columns, rows) = size;
    let first = offset + 1 - REACH;
    // The horizontal pass covers only the lines that the vertical pass reads.
    let lines = 2 * rows + 2 * REACH - 2;
    let mut narrow = vec![0.0; lines * columns];
    let mut line = vec![0.0; 2 * columns + 2 * REACH - 2];
    for (row, out) in narrow.chunks_exact_mut(columns).enumerate() {
        let start = (first + row) * width + first;
        for (value, sample) in line.iter_mut().zip(&plane[start..]) {
            *value = sample.clamp(0.0, 1.0);
        }
        for (column, value) in out.iter_mut().enumerate() {
            let window = &line[2 * column..2 * column + 2 * REACH];
            *value =
                window.iter().zip(WEIGHTS.iter()).map(|(sample, weight)| sample * weight).sum();
        }
    }
    let mut out = vec![0.0; columns * rows];
    for (row, out) in out.chunks_exact_mut(columns).enumerate() {
        let window = narrow[2 * row * columns..].chunks_exact(columns);
        for (line, weight) in window.zip(WEIGHTS.iter()) {
            for (value, sample) in out.iter_mut().zip(line) {
                *value += sample * weight;
            }
        }
        for value in out {
            *value = value.clamp(0.0, 1.0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resampling_keeps_flat_planes_and_slopes() {
        for (scale, factor) in [(3, 2), (3, 4), (8, 2), (8, 4), (4, 2), (5, 4)] {
            let offset = reach(scale, factor);
            let side = 4 * scale + 2 * offset;
            let made = (4 * factor, 4 * factor);
            let of = |plane: &[f32]| resample(plane, side, offset, made, (scale, factor));
            let flat = of(&vec![0.25; side * side]);
            assert!(flat.iter().all(|value| (value - 0.25).abs() < 1e-6), "{scale} to {factor}");
            let slope = |at: f32| at / (2 * side) as f32;
            let ramp: Vec<f32> = (0..side * side).map(|at| slope((at % side) as f32)).collect();
            for (column, value) in of(&ramp)[..made.0].iter().enumerate() {
                let ratio = scale as f32 / factor as f32;
                let expected = slope((column as f32 + 0.5) * ratio - 0.5 + offset as f32);
                assert!(
                    (value - expected).abs() < 2e-3,
                    "{scale} to {factor}: {value}, {expected}"
                );
            }
        }
    }

    #[test]
    fn the_general_filter_halves_like_the_special_one() {
        let general = taps(4, 2);
        for phase in general {
            let weights: Vec<_> = phase.weights.iter().filter(|weight| **weight != 0.0).collect();
            assert_eq!(weights.len(), WEIGHTS.len());
            assert!(weights.iter().zip(WEIGHTS.iter()).all(|(a, b)| (*a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn a_flat_plane_stays_flat_and_a_ramp_keeps_its_slope() {
        let side = 32;
        let flat = vec![0.25; side * side];
        assert!(halve(&flat, side, 8, (8, 8)).iter().all(|value| (value - 0.25).abs() < 1e-6));
        let ramp: Vec<f32> = (0..side * side).map(|at| (at % side) as f32 / 40.0).collect();
        let half = halve(&ramp, side, 8, (8, 8));
        for (column, value) in half[..8].iter().enumerate() {
            let expected = (8.5 + 2.0 * column as f32) / 40.0;
            assert!((value - expected).abs() < 1e-5, "{value} is not {expected}");
        }
    }
}
