//! A level of the pyramid: its colors, which of them may be copied, and the features that patches are compared by.

use rayon::prelude::*;

/// R, G, B in 0..=255, then texture: the mean strength of brightness gradients around the pixel, horizontal and
/// vertical.
pub type Sample = [f32; 5];

/// The features of a pixel by which patches are compared: R, G, B, the horizontal and vertical brightness gradient, the
/// two measures of texture, and a 0 that pads it to a vector register.
pub type Feature = [i16; 8];

/// Keeps half gray levels, so that means of many patches are not rounded away.
const COLOR_SCALE: f32 = 2.0;
/// Gives gradients the same weight as colors, so that edges line up, not just tones.
const GRADIENT_SCALE: f32 = 2.0;
/// The weight of texture, which tells grass from a green wall at a coarse level.
const TEXTURE_SCALE: f32 = 2.0;
/// Texture is measured over this many pixels on each side, at the finest level searched.
const TEXTURE_RADIUS: usize = 2;

/// How a pixel may be used, from the most to the least usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pixel {
    /// A pixel of the picture: can be compared and copied.
    Known,
    /// A pixel filled earlier: can be compared but not copied.
    Synthesized,
    /// A transparent pixel, whose color continues the visible ones: can be compared but not copied.
    Invented,
    Hole,
}

/// A picture at one size.
#[derive(Clone)]
pub struct Level {
    pub width: usize,
    pub height: usize,
    /// The samples of all pixels; in the hole, the current guess.
    pub samples: Vec<Sample>,
    pub pixels: Vec<Pixel>,
}

/// Returns the luma (Rec. 601).
pub fn luma(sample: &Sample) -> f32 {
    0.299 * sample[0] + 0.587 * sample[1] + 0.114 * sample[2]
}

impl Level {
    /// Creates a level from R, G, B of `pixels.len()` pixels, halved `halvings` times with sizes rounded up.
    pub fn new(rgb: &[u8], width: usize, pixels: &[Pixel], halvings: usize) -> Self {
        let height = pixels.len() / width;
        let block = 1 << halvings;
        let columns = width.div_ceil(block);
        let mean_of = |at: usize| {
            let (left, top) = (at % columns * block, at / columns * block);
            let places = (top..(top + block).min(height))
                .flat_map(|y| (left..(left + block).min(width)).map(move |x| y * width + x));
            mean(places.map(|at| {
                let rgb = &rgb[at * 3..at * 3 + 3];
                ([f32::from(rgb[0]), f32::from(rgb[1]), f32::from(rgb[2]), 0.0, 0.0], pixels[at])
            }))
        };
        let rows = height.div_ceil(block);
        let (samples, pixels) = (0..columns * rows).into_par_iter().map(mean_of).unzip();
        let mut level = Self { width: columns, height: rows, samples, pixels };
        level.measure_texture();
        level
    }

    /// Returns R, G, B of every pixel.
    pub fn rgb(&self) -> Vec<u8> {
        let byte = |value: &f32| (value + 0.5) as u8;
        self.samples.iter().flat_map(|sample| sample[..3].iter().map(byte)).collect()
    }

    /// Returns the indices of the hole's pixels in order.
    pub fn hole(&self) -> Vec<u32> {
        let holes = self.pixels.iter().enumerate().filter(|(_, pixel)| **pixel == Pixel::Hole);
        holes.map(|(at, _)| at as u32).collect()
    }

    /// Computes the texture of every pixel from pixels outside the hole.
    fn measure_texture(&mut self) {
        let (width, height) = (self.width, self.height);
        let gradient = |from: usize, to: usize| {
            (self.pixels[from] != Pixel::Hole && self.pixels[to] != Pixel::Hole)
                .then(|| (luma(&self.samples[to]) - luma(&self.samples[from])).abs())
        };
        let gradients: Vec<[f32; 4]> = (0..width * height)
            .into_par_iter()
            .map(|at| {
                let across = (at % width + 1 < width).then(|| gradient(at, at + 1)).flatten();
                let down = (at / width + 1 < height).then(|| gradient(at, at + width)).flatten();
                let count = |value: Option<f32>| f32::from(u8::from(value.is_some()));
                [across.unwrap_or(0.0), count(across), down.unwrap_or(0.0), count(down)]
            })
            .collect();
        let around = |at: usize, end: usize| {
            at.saturating_sub(TEXTURE_RADIUS)..(at + TEXTURE_RADIUS + 1).min(end)
        };
        self.samples.par_chunks_mut(width).enumerate().for_each(|(y, row)| {
            for (x, sample) in row.iter_mut().enumerate() {
                let mut sum = [0.0_f32; 4];
                for y in around(y, height) {
                    for gradients in &gradients[y * width..][around(x, width)] {
                        (0..4).for_each(|at| sum[at] += gradients[at]);
                    }
                }
                sample[3] = sum[0] / sum[1].max(1.0);
                sample[4] = sum[2] / sum[3].max(1.0);
            }
        });
    }

    /// Returns the level at half the size, rounded up. A pixel takes the state of the least usable of its four.
    pub fn half(&self) -> Self {
        let (width, height) = (self.width.div_ceil(2), self.height.div_ceil(2));
        let mean_of = |at: usize| {
            let (left, top) = (at % width * 2, at / width * 2);
            let places = (top..(top + 2).min(self.height))
                .flat_map(|y| (left..(left + 2).min(self.width)).map(move |x| y * self.width + x));
            mean(places.map(|at| (self.samples[at], self.pixels[at])))
        };
        let (samples, pixels) = (0..width * height).into_par_iter().map(mean_of).unzip();
        Self { width, height, samples, pixels }
    }

    pub fn feature(&self, at: usize) -> Feature {
        let (x, y) = (at % self.width, at / self.width);
        let left = at - usize::from(x > 0);
        let right = at + usize::from(x + 1 < self.width);
        let up = if y > 0 { at - self.width } else { at };
        let down = if y + 1 < self.height { at + self.width } else { at };
        let gradient = |from: usize, to: usize| {
            GRADIENT_SCALE * 0.5 * (luma(&self.samples[to]) - luma(&self.samples[from]))
        };
        let [red, green, blue, horizontal, vertical] = self.samples[at];
        [
            (COLOR_SCALE * red) as i16,
            (COLOR_SCALE * green) as i16,
            (COLOR_SCALE * blue) as i16,
            gradient(left, right) as i16,
            gradient(up, down) as i16,
            (TEXTURE_SCALE * horizontal) as i16,
            (TEXTURE_SCALE * vertical) as i16,
            0,
        ]
    }

    pub fn features(&self) -> Vec<Feature> {
        (0..self.samples.len()).into_par_iter().map(|at| self.feature(at)).collect()
    }
}

/// Returns the mean of the samples outside the hole, and the least usable state of all.
fn mean(of: impl Iterator<Item = (Sample, Pixel)>) -> (Sample, Pixel) {
    let (mut sum, mut count, mut worst) = ([0.0_f32; 5], 0.0_f32, Pixel::Known);
    for (sample, pixel) in of {
        worst = worst.max(pixel);
        if pixel != Pixel::Hole {
            (0..5).for_each(|c| sum[c] += sample[c]);
            count += 1.0;
        }
    }
    (sum.map(|value| value / count.max(1.0)), worst)
}

/// Returns the sum of squared differences of two patches of `SIDE` × `SIDE` pixels with top left pixels `a` and `b`.
/// Stops early once the sum reaches `limit`; the result is then a lower bound.
#[inline]
pub fn difference<const SIDE: usize>(
    features: &[Feature],
    width: usize,
    a: usize,
    b: usize,
    limit: u32,
) -> u32 {
    let mut sum = 0;
    for row in 0..SIDE {
        let a = &features[a + row * width..][..SIDE];
        let b = &features[b + row * width..][..SIDE];
        sum += squared_distance(a.as_flattened(), b.as_flattened());
        if sum as u32 >= limit {
            break;
        }
    }
    sum as u32
}

/// Returns the sum of squared differences of two slices.
#[inline]
pub fn squared_distance(a: &[i16], b: &[i16]) -> i32 {
    let both = a.iter().zip(b);
    both.map(|(a, b)| {
        // The differences fit in 16 bits, so one instruction multiplies and adds pairs.
        let step = a.wrapping_sub(*b);
        i32::from(step) * i32::from(step)
    })
    .sum()
}

/// Returns the distance of every pixel to the nearest one outside the hole, in pixels; 0 outside the hole. Straight
/// steps count 1 and diagonal steps √2, which is at most 8 % above the Euclidean distance.
pub fn depth(pixels: &[Pixel], width: usize, height: usize) -> Vec<f32> {
    let mut depth: Vec<f32> =
        pixels.iter().map(|pixel| if *pixel == Pixel::Hole { f32::MAX } else { 0.0 }).collect();
    let diagonal = std::f32::consts::SQRT_2;
    let end = width * height;
    let mut relax = |at: usize, forward: bool| {
        let x = at % width;
        let mut least = depth[at];
        let mut consider = |step: usize, cost: f32, inside: bool| {
            let other = if forward { at.checked_sub(step) } else { Some(at + step) };
            if let Some(other) = other.filter(|other| inside && *other < end) {
                least = least.min(depth[other] + cost);
            }
        };
        let (before, after) = if forward { (x > 0, x + 1 < width) } else { (x + 1 < width, x > 0) };
        consider(1, 1.0, before);
        consider(width, 1.0, true);
        consider(width + 1, diagonal, before);
        consider(width - 1, diagonal, after);
        depth[at] = least;
    };
    (0..end).for_each(|at| relax(at, true));
    (0..end).rev().for_each(|at| relax(at, false));
    depth
}
