//! A smooth guess for the hole from its surroundings: pull-push (Gortler et al., "The Lumigraph", SIGGRAPH 1996). Known
//! pixels are averaged down a pyramid; on the way back up, unknown pixels take the color of the next smaller level,
//! interpolated between four pixels.

use super::level::{Level, Pixel, Sample};

struct Plane {
    width: usize,
    height: usize,
    /// Each sample multiplied by its weight, and the weight in 0..=1.
    weighted: Vec<(Sample, f32)>,
}

/// Fills the hole of `level` with a smooth transition between the colors at its border.
pub fn fill(level: &mut Level) {
    let weighted = level.samples.iter().zip(&level.pixels);
    let weighted = weighted
        .map(|(sample, pixel)| if *pixel == Pixel::Hole { ([0.0; 5], 0.0) } else { (*sample, 1.0) })
        .collect();
    let filled = Plane { width: level.width, height: level.height, weighted }.filled();
    for (at, sample) in filled.into_iter().enumerate() {
        if level.pixels[at] == Pixel::Hole {
            level.samples[at] = sample;
        }
    }
}

impl Plane {
    fn filled(&self) -> Vec<Sample> {
        let complete = self.weighted.iter().all(|(_, weight)| *weight >= 1.0);
        if complete || self.width.max(self.height) == 1 {
            let samples = self.weighted.iter();
            return samples.map(|(sum, weight)| sum.map(|v| v / weight.max(1e-6))).collect();
        }
        let half = self.half();
        let below = half.filled();
        let mut out = Vec::with_capacity(self.weighted.len());
        for y in 0..self.height {
            for x in 0..self.width {
                let (sum, weight) = self.weighted[y * self.width + x];
                if weight >= 1.0 {
                    out.push(sum);
                    continue;
                }
                let guess = half.between(&below, x, y);
                out.push(std::array::from_fn(|c| sum[c] + (1.0 - weight) * guess[c]));
            }
        }
        out
    }

    fn half(&self) -> Self {
        let (width, height) = (self.width.div_ceil(2), self.height.div_ceil(2));
        let mut weighted = Vec::with_capacity(width * height);
        for y in 0..height {
            for x in 0..width {
                let (mut sum, mut weight) = ([0.0_f32; 5], 0.0);
                for y in 2 * y..(2 * y + 2).min(self.height) {
                    for x in 2 * x..(2 * x + 2).min(self.width) {
                        let (part, share) = &self.weighted[y * self.width + x];
                        (0..5).for_each(|c| sum[c] += part[c]);
                        weight += share;
                    }
                }
                // One known pixel of four makes the larger pixel known.
                let scale = 1.0 / f32::max(weight, 1.0);
                weighted.push((sum.map(|value| value * scale), weight * scale));
            }
        }
        Self { width, height, weighted }
    }

    /// Returns the color at pixel `x`, `y` of the next larger level, interpolated between the four nearest `samples`.
    fn between(&self, samples: &[Sample], x: usize, y: usize) -> Sample {
        let near = |at: usize, size: usize| {
            let other = if at.is_multiple_of(2) { (at / 2).saturating_sub(1) } else { at / 2 + 1 };
            (at / 2, other.min(size - 1))
        };
        let ((x0, x1), (y0, y1)) = (near(x, self.width), near(y, self.height));
        let around = [(x0, y0, 9.0), (x1, y0, 3.0), (x0, y1, 3.0), (x1, y1, 1.0)];
        let mut sum = [0.0_f32; 5];
        for (x, y, weight) in around {
            let sample = &samples[y * self.width + x];
            (0..5).for_each(|c| sum[c] += weight / 16.0 * sample[c]);
        }
        sum
    }
}
