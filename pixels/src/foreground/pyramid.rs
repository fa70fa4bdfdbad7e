//! Fills a grid of weighted colors by pull-push (Gortler et al., "The Lumigraph", SIGGRAPH 1996): averages colors up a
//! pyramid, then passes them down to samples with little weight of their own.

use std::ops::Range;

use rayon::prelude::*;

/// The weight of the coarser level against a block's own weight of 0..=1: a block with a tenth of its pixels certain
/// takes half of its color from itself.
const COARSER_WEIGHT: f32 = 0.1;

/// A color multiplied by its weight, and the weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    rgb: [f32; 3],
    weight: f32,
}

impl Sample {
    pub fn add(&mut self, rgb: [f32; 3], weight: f32) {
        for (sum, value) in self.rgb.iter_mut().zip(rgb) {
            *sum += value * weight;
        }
        self.weight += weight;
    }

    /// Returns the sample with color and weight multiplied by `factor`.
    pub fn scaled(self, factor: f32) -> Self {
        Self { rgb: self.rgb.map(|value| value * factor), weight: self.weight * factor }
    }
}

pub struct Level {
    columns: usize,
    rows: usize,
    samples: Vec<Sample>,
}

impl Level {
    /// Creates a level of `columns * rows` samples, row by row.
    pub fn new(columns: usize, rows: usize, samples: Vec<Sample>) -> Self {
        debug_assert_eq!(samples.len(), columns * rows);
        Self { columns, rows, samples }
    }

    /// Returns the level with weight 1 in every sample: the sample's own color if it has enough weight, otherwise a
    /// blend with its surroundings. Samples that `is_needed` (column, row) rejects keep their weight.
    pub fn filled(mut self, is_needed: impl Fn(usize, usize) -> bool + Sync) -> Self {
        if self.samples.len() == 1 {
            for sample in &mut self.samples {
                *sample = sample.scaled(1.0 / sample.weight.max(f32::MIN_POSITIVE));
            }
            return self;
        }
        let every: fn(usize, usize) -> bool = |_, _| true;
        let coarser = self.halved().filled(every);
        let columns = self.columns;
        self.samples.par_chunks_mut(columns).enumerate().with_min_len(16).for_each(|(y, row)| {
            for (x, sample) in row.iter_mut().enumerate().filter(|(x, _)| is_needed(*x, y)) {
                let rgb = coarser.at(x as f32 * 0.5 - 0.25, y as f32 * 0.5 - 0.25);
                sample.add(rgb, COARSER_WEIGHT);
                *sample = sample.scaled(1.0 / sample.weight);
            }
        });
        self
    }

    /// Returns a level of half as many columns and rows; each sample is the mean of up to four.
    fn halved(&self) -> Self {
        let (columns, rows) = (self.columns.div_ceil(2), self.rows.div_ceil(2));
        let mut samples = vec![Sample::default(); columns * rows];
        samples.par_chunks_mut(columns).enumerate().with_min_len(16).for_each(|(y, out)| {
            let pair = &self.samples[2 * y * self.columns..];
            let count = if 2 * y + 1 < self.rows { 2 } else { 1 };
            for (x, out) in out.iter_mut().enumerate() {
                let children = 2 * x..(2 * x + 2).min(self.columns);
                let share = 1.0 / (children.len() * count) as f32;
                for row in pair.chunks(self.columns).take(count) {
                    for child in &row[children.clone()] {
                        for (sum, value) in out.rgb.iter_mut().zip(child.rgb) {
                            *sum += value * share;
                        }
                        out.weight += child.weight * share;
                    }
                }
            }
        });
        Self { columns, rows, samples }
    }

    /// Writes the linear colors between two rows of samples to `line`, for the columns in a range, at a height in
    /// samples.
    pub fn line_at(&self, y: f32, columns: Range<usize>, line: &mut [[f32; 3]]) {
        let y = y.clamp(0.0, (self.rows - 1) as f32);
        let (top, bottom) = (y as usize, (y as usize + 1).min(self.rows - 1));
        let row = |row: usize| &self.samples[row * self.columns..][columns.clone()];
        let (share, pairs) = (y - top as f32, row(top).iter().zip(row(bottom)));
        for (color, (upper, lower)) in line[columns.clone()].iter_mut().zip(pairs) {
            *color = std::array::from_fn(|i| upper.rgb[i] + (lower.rgb[i] - upper.rgb[i]) * share);
        }
    }

    /// Returns the bilinear color at a position in samples; positions outside take the border's color.
    fn at(&self, x: f32, y: f32) -> [f32; 3] {
        let x = x.clamp(0.0, (self.columns - 1) as f32);
        let y = y.clamp(0.0, (self.rows - 1) as f32);
        let (left, top) = (x as usize, y as usize);
        let (right, bottom) = ((left + 1).min(self.columns - 1), (top + 1).min(self.rows - 1));
        let (fx, fy) = (x - left as f32, y - top as f32);
        let sample = |column: usize, row: usize| self.samples[row * self.columns + column].rgb;
        let upper = [sample(left, top), sample(right, top)];
        let lower = [sample(left, bottom), sample(right, bottom)];
        std::array::from_fn(|i| {
            let between = |[a, b]: [[f32; 3]; 2]| a[i] + (b[i] - a[i]) * fx;
            let (upper, lower) = (between(upper), between(lower));
            upper + (lower - upper) * fy
        })
    }
}
