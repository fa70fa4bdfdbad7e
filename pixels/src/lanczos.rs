//! Halves a plane with a Lanczos filter of three lobes: 12 × 12 samples for each output sample, with the weights of
//! Pillow's LANCZOS at exactly one half.

use std::f32::consts::PI;
use std::sync::LazyLock;

/// Input samples on each side of the center that an output sample depends on.
pub const REACH: usize = 6;

/// `sinc(x) sinc(x / 3)` at the twelve input samples, with `x` in output samples from the center; the sum is 1.
static WEIGHTS: LazyLock<[f32; 2 * REACH]> = LazyLock::new(|| {
    let sinc = |x: f32| (PI * x).sin() / (PI * x);
    let raw: [f32; 2 * REACH] = std::array::from_fn(|tap| {
        let distance = (tap as f32 + 0.5 - REACH as f32) / 2.0;
        sinc(distance) * sinc(distance / 3.0)
    });
    let sum: f32 = raw.iter().sum();
    raw.map(|weight| weight / sum)
});

/// Halves the part of `plane` that starts `offset` samples from its left and top and has twice `size` (columns, rows).
/// Samples are clamped to 0..=1 before and after. The plane must extend at least [`REACH`] samples beyond that part on
/// every side.
pub fn halve(plane: &[f32], width: usize, offset: usize, size: (usize, usize)) -> Vec<f32> {
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
