//! One level of the pyramid: colours, what of them may be used, and what patches are compared by.

use rayon::prelude::*;

/// R, G, B in 0..=255, then how strongly brightness changes across and down the surroundings.
pub type Sample = [f32; 5];

/// What two patches are compared by, of one pixel: R, G, B, the slope of brightness across and down, the two
/// measures of texture, and nothing, which makes it one vector register.
pub type Feature = [i16; 8];

/// Half-steps of a gray level are kept, so that means of many patches are not all rounded away.
const COLOUR_SCALE: f32 = 2.0;
/// Slopes weigh as much as colours: edges must meet, not only tones.
const SLOPE_SCALE: f32 = 2.0;
/// Texture keeps a coarse level, where grass and a lawn-green wall look alike, from mixing them up.
const TEXTURE_SCALE: f32 = 2.0;
/// Pixels on either side over which texture is measured, at full size.
const TEXTURE_REACH: usize = 2;

/// What may be done with a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pixel {
    /// A pixel of the picture: to compare with and to copy from.
    Known,
    /// A pixel that was made up before: to compare with only.
    Made,
    /// A pixel to be made up.
    Hole,
}

/// A picture at one size.
#[derive(Clone)]
pub struct Level {
    pub width: usize,
    pub height: usize,
    /// Samples of all pixels; in the hole the current guess.
    pub samples: Vec<Sample>,
    pub pixels: Vec<Pixel>,
}

/// Brightness as the eye weighs it.
pub fn luma(sample: &Sample) -> f32 {
    0.299 * sample[0] + 0.587 * sample[1] + 0.114 * sample[2]
}

impl Level {
    /// A picture of R, G and B, one entry of `pixels` each: at full size where `halvings` is 0, and else so many
    /// times at half the size, rounded up.
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

    /// Where the hole is, as indices of pixels in order.
    pub fn hole(&self) -> Vec<u32> {
        let holes = self.pixels.iter().enumerate().filter(|(_, pixel)| **pixel == Pixel::Hole);
        holes.map(|(at, _)| at as u32).collect()
    }

    /// The mean strength of brightness' slopes around every pixel, from pixels that are not in the hole.
    fn measure_texture(&mut self) {
        let (width, height) = (self.width, self.height);
        let slope = |from: usize, to: usize| {
            (self.pixels[from] != Pixel::Hole && self.pixels[to] != Pixel::Hole)
                .then(|| (luma(&self.samples[to]) - luma(&self.samples[from])).abs())
        };
        let slopes: Vec<[f32; 4]> = (0..width * height)
            .into_par_iter()
            .map(|at| {
                let across = (at % width + 1 < width).then(|| slope(at, at + 1)).flatten();
                let down = (at / width + 1 < height).then(|| slope(at, at + width)).flatten();
                let count = |value: Option<f32>| f32::from(u8::from(value.is_some()));
                [across.unwrap_or(0.0), count(across), down.unwrap_or(0.0), count(down)]
            })
            .collect();
        let around = |at: usize, end: usize| {
            at.saturating_sub(TEXTURE_REACH)..(at + TEXTURE_REACH + 1).min(end)
        };
        self.samples.par_chunks_mut(width).enumerate().for_each(|(y, row)| {
            for (x, sample) in row.iter_mut().enumerate() {
                let mut sum = [0.0_f32; 4];
                for y in around(y, height) {
                    for slopes in &slopes[y * width..][around(x, width)] {
                        (0..4).for_each(|at| sum[at] += slopes[at]);
                    }
                }
                sample[3] = sum[0] / sum[1].max(1.0);
                sample[4] = sum[2] / sum[3].max(1.0);
            }
        });
    }

    /// The same at half the size, rounded up. A pixel is what the least usable of its four is.
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

    /// What patches are compared by, at one pixel.
    pub fn feature(&self, at: usize) -> Feature {
        let (x, y) = (at % self.width, at / self.width);
        let left = at - usize::from(x > 0);
        let right = at + usize::from(x + 1 < self.width);
        let up = if y > 0 { at - self.width } else { at };
        let down = if y + 1 < self.height { at + self.width } else { at };
        let slope = |from: usize, to: usize| {
            SLOPE_SCALE * 0.5 * (luma(&self.samples[to]) - luma(&self.samples[from]))
        };
        let [red, green, blue, across, along] = self.samples[at];
        [
            (COLOUR_SCALE * red) as i16,
            (COLOUR_SCALE * green) as i16,
            (COLOUR_SCALE * blue) as i16,
            slope(left, right) as i16,
            slope(up, down) as i16,
            (TEXTURE_SCALE * across) as i16,
            (TEXTURE_SCALE * along) as i16,
            0,
        ]
    }

    /// What patches are compared by, at every pixel.
    pub fn features(&self) -> Vec<Feature> {
        (0..self.samples.len()).into_par_iter().map(|at| self.feature(at)).collect()
    }
}

/// The mean of what is not in the hole, and the least usable of all.
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

/// The sum of squared differences of the patches of `SIDE` × `SIDE` pixels whose top left pixels are `a` and
/// `b`; any number of at least `limit` where it is not below that.
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
        sum += apart(a.as_flattened(), b.as_flattened());
        if sum as u32 >= limit {
            break;
        }
    }
    sum as u32
}

/// The squared difference of as many values of both.
#[inline]
pub fn apart(a: &[i16], b: &[i16]) -> i32 {
    let both = a.iter().zip(b);
    both.map(|(a, b)| {
        // In 16 bits, which these values never leave: squares are then added in pairs by one instruction.
        let step = a.wrapping_sub(*b);
        i32::from(step) * i32::from(step)
    })
    .sum()
}

/// How far every pixel lies from the nearest one that is not in the hole, in pixels; 0 outside the hole.
/// Steps are 1 straight and √2 diagonally, which is at most 8 % more than the straight line.
pub fn depth(pixels: &[Pixel], width: usize, height: usize) -> Vec<f32> {
    let mut depth: Vec<f32> =
        pixels.iter().map(|pixel| if *pixel == Pixel::Hole { f32::MAX } else { 0.0 }).collect();
    let diagonal = std::f32::consts::SQRT_2;
    let end = width * height;
    let mut relax = |at: usize, forth: bool| {
        let x = at % width;
        let mut least = depth[at];
        let mut look = |step: usize, cost: f32, inside: bool| {
            let other = if forth { at.checked_sub(step) } else { Some(at + step) };
            if let Some(other) = other.filter(|other| inside && *other < end) {
                least = least.min(depth[other] + cost);
            }
        };
        let (before, after) = if forth { (x > 0, x + 1 < width) } else { (x + 1 < width, x > 0) };
        look(1, 1.0, before);
        look(width, 1.0, true);
        look(width + 1, diagonal, before);
        look(width - 1, diagonal, after);
        depth[at] = least;
    };
    (0..end).for_each(|at| relax(at, true));
    (0..end).rev().for_each(|at| relax(at, false));
    depth
}
