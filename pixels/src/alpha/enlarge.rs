//! Resizes a map to a picture's size with a triangle filter, which is bilinear when enlarging.

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

use crate::rounding::to_byte;

/// Rows of the result that one task makes. It resizes the rows of the map around them; the next task needs some of
/// these rows, too.
const BAND_ROWS: usize = 64;

/// Which cells every pixel of a side of the picture depends on.
pub(super) struct Side {
    cells: usize,
    /// Cells that a pixel depends on, at most.
    reach: usize,
    /// The first cell of each pixel.
    firsts: Vec<usize>,
    /// The weights of each pixel's cells, `reach` per pixel; the sum is 1.
    weights: Vec<f32>,
}

impl Side {
    /// Places a side of `pixels` on `cells`; it covers `length` of them from `start`.
    pub(super) fn new(start: f64, length: f64, cells: usize, pixels: usize) -> Self {
        let scale = length / pixels as f64;
        let support = scale.max(1.0);
        let reach = ((2.0 * support).ceil() as usize + 1).min(cells);
        // Bilinear interpolation never takes a third cell.
        let reach = if scale <= 1.0 { reach.min(2) } else { reach };
        let mut axis = Self { cells, reach, firsts: Vec::new(), weights: Vec::new() };
        for pixel in 0..pixels {
            let center = start + (pixel as f64 + 0.5) * scale;
            let first = ((center - support + 0.5).max(0.0) as usize).min(cells - reach);
            let triangle =
                |cell: usize| (1.0 - ((cell as f64 + 0.5 - center) / support).abs()).max(0.0);
            let sum: f64 = (first..first + reach).map(triangle).sum();
            axis.firsts.push(first);
            axis.weights.extend((first..first + reach).map(|cell| (triangle(cell) / sum) as f32));
        }
        axis
    }

    const fn pixels(&self) -> usize {
        self.firsts.len()
    }

    fn resize(&self, cells: &[f32], out: &mut [f32]) {
        if self.reach == 2 {
            let pixels = out.iter_mut().zip(&self.firsts).zip(self.weights.as_chunks::<2>().0);
            for ((out, first), [left, right]) in pixels {
                *out = cells[*first] * left + cells[first + 1] * right;
            }
            return;
        }
        let pixels = out.iter_mut().zip(&self.firsts).zip(self.weights.chunks_exact(self.reach));
        for ((out, first), weights) in pixels {
            let cells = &cells[*first..first + self.reach];
            *out = cells.iter().zip(weights).map(|(cell, weight)| cell * weight).sum();
        }
    }
}

/// Resizes a map of values in 0..=1 to one byte per pixel.
pub(super) fn enlarge(map: &[f32], columns: &Side, rows: &Side) -> Vec<u8> {
    let width = columns.pixels();
    let mut out = vec![0; width * rows.pixels()];
    let bands = out.par_chunks_mut(width * BAND_ROWS);
    let firsts = rows.firsts.par_chunks(BAND_ROWS);
    let weights = rows.weights.par_chunks(BAND_ROWS * rows.reach);
    bands.zip(firsts).zip(weights).for_each(|((band, firsts), weights)| {
        let start = firsts.iter().copied().min().unwrap_or(0);
        let end = firsts.iter().copied().max().unwrap_or(0) + rows.reach;
        let mut lines = vec![0.0; (end - start) * width];
        let cells = map[start * columns.cells..].chunks_exact(columns.cells);
        for (line, cells) in lines.chunks_exact_mut(width).zip(cells) {
            columns.resize(cells, line);
        }
        let mut sums = vec![0.0; width];
        let weights = weights.chunks_exact(rows.reach);
        for ((out, first), weights) in band.chunks_exact_mut(width).zip(firsts).zip(weights) {
            let lines = &lines[(first - start) * width..];
            Arch::new().dispatch(WeightedLines { lines, weights, sums: &mut sums, out });
        }
    });
    out
}

/// Sums up as many lines as there are weights, and rounds the sums to bytes.
struct WeightedLines<'a> {
    lines: &'a [f32],
    weights: &'a [f32],
    sums: &'a mut [f32],
    out: &'a mut [u8],
}

impl NullaryFnOnce for WeightedLines<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { lines, weights, sums, out } = self;
        sums.fill(0.0);
        for (line, weight) in lines.chunks_exact(out.len()).zip(weights) {
            for (sum, value) in sums.iter_mut().zip(line) {
                *sum += value * weight;
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = to_byte(*sum * 255.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_the_mean_of_cells_weighted_by_a_triangle() {
        // Enlarged, of one cell, reduced, with a part of a cell at each end.
        for (start, length, cells, pixels) in [
            (0.0, 7.0, 7, 100),
            (0.0, 1.0, 1, 5),
            (0.0, 9.0, 9, 9),
            (0.0, 50.0, 50, 7),
            (0.25, 5.5, 6, 200),
            (0.5, 9.0, 10, 4),
        ] {
            let map: Vec<f32> = (0..cells).map(|cell| (cell * 37 % 11) as f32 / 10.0).collect();
            let made =
                enlarge(&map, &Side::new(start, length, cells, pixels), &Side::new(0.0, 1.0, 1, 3));
            let scale = length / pixels as f64;
            let support = scale.max(1.0);
            for (pixel, made) in made.iter().enumerate() {
                let center = start + ((pixel % pixels) as f64 + 0.5) * scale;
                let (mut sum, mut weights) = (0.0, 0.0);
                for (cell, value) in map.iter().enumerate() {
                    let weight = (1.0 - ((cell as f64 + 0.5 - center) / support).abs()).max(0.0);
                    sum += weight * f64::from(*value);
                    weights += weight;
                }
                let difference = (f64::from(*made) - 255.0 * sum / weights).abs();
                assert!(difference < 0.501, "{cells} to {pixels}: {made}, {sum}");
            }
        }
    }
}
