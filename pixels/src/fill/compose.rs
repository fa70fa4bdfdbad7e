//! Composes the result at full size: every pixel of the hole is a copy of one pixel of the picture, not a mean of
//! several, so the texture inside is as sharp as outside. Pieces from different places meet where they differ least,
//! as in shift maps (Pritch et al., ICCV 2009).

use rayon::prelude::*;

use super::error::{FillError, Poll};
use super::level::Pixel;

/// Rounds in which every pixel may join a neighbor's piece.
const ROUNDS: usize = 8;
/// The weight of a difference across a seam relative to the same difference from the color the patches voted for.
const SEAM_WEIGHT: f32 = 2.0;
/// The cost of a pixel that cannot be copied.
const IMPOSSIBLE: f32 = 1e12;

/// A region of the picture with its hole.
pub struct Scene<'a> {
    /// R, G, B of every pixel, rows from the top.
    pub rgb: &'a [u8],
    pub pixels: &'a [Pixel],
    pub width: usize,
    pub height: usize,
}

impl Scene<'_> {
    /// Returns the pixel at `offset` (columns, rows) from `at` if it can be copied.
    pub fn source(&self, at: usize, offset: (i32, i32)) -> Option<usize> {
        let x = (at % self.width) as i64 + i64::from(offset.0);
        let y = (at / self.width) as i64 + i64::from(offset.1);
        let inside = (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
        let to = inside.then(|| y as usize * self.width + x as usize)?;
        (self.pixels[to] == Pixel::Known).then_some(to)
    }

    pub fn color(&self, at: usize) -> [f32; 3] {
        let rgb = &self.rgb[at * 3..at * 3 + 3];
        [f32::from(rgb[0]), f32::from(rgb[1]), f32::from(rgb[2])]
    }

    /// Returns the neighbors on the left and right, above and below.
    pub fn neighbors(&self, at: usize) -> impl Iterator<Item = usize> {
        let x = at % self.width;
        let end = self.pixels.len();
        let around = [
            (x > 0).then(|| at.wrapping_sub(1)),
            (x + 1 < self.width).then_some(at + 1),
            at.checked_sub(self.width),
            Some(at + self.width).filter(|below| *below < end),
        ];
        around.into_iter().flatten()
    }
}

/// The hole's pixels and the source of each. Adjacent pixels with equal offsets form a piece.
pub struct Pieces {
    /// The hole's pixels in order.
    pub hole: Vec<u32>,
    /// The index in `hole` of each pixel of the scene, or [`NONE`].
    pub index: Vec<u32>,
    /// The offset (columns, rows) from each pixel of `hole` to its source.
    pub offsets: Vec<(i32, i32)>,
}

/// Marks a pixel outside the hole.
pub const NONE: u32 = u32::MAX;

impl Pieces {
    /// Creates the pieces from the offsets that the patches voted for.
    pub fn new(scene: &Scene, hole: Vec<u32>, offsets: Vec<(i32, i32)>) -> Self {
        let mut index = vec![NONE; scene.pixels.len()];
        for (number, at) in hole.iter().enumerate() {
            index[*at as usize] = number as u32;
        }
        Self { hole, index, offsets }
    }

    /// Returns the offset of pixel `at` of the scene; `None` outside the hole.
    pub fn offset(&self, at: usize) -> Option<(i32, i32)> {
        let number = self.index[at];
        (number != NONE).then(|| self.offsets[number as usize])
    }

    /// Moves the seams between pieces to where they are least visible. `wanted` are the colors that the patches voted
    /// for, one per pixel of `hole`.
    ///
    /// # Errors
    /// [`FillError::Canceled`].
    pub fn optimize_seams(
        &mut self,
        scene: &Scene,
        wanted: &[[f32; 3]],
        poll: Poll,
    ) -> Result<(), FillError> {
        for round in 0..2 * ROUNDS {
            poll.check()?;
            // Alternates like a chessboard: the neighbors of a pixel that changes do not.
            let this = &*self;
            let offsets: Vec<(i32, i32)> = this
                .hole
                .par_iter()
                .zip(&this.offsets)
                .with_min_len(256)
                .enumerate()
                .map(|(number, (at, present))| {
                    let at = *at as usize;
                    if (at / scene.width + at % scene.width) % 2 != round % 2 {
                        return *present;
                    }
                    this.cheapest(scene, at, *present, &wanted[number])
                })
                .collect();
            let still = offsets == self.offsets;
            self.offsets = offsets;
            if still && round > 0 {
                break;
            }
        }
        Ok(())
    }

    fn cheapest(
        &self,
        scene: &Scene,
        at: usize,
        present: (i32, i32),
        wanted: &[f32; 3],
    ) -> (i32, i32) {
        let mut best = (self.cost(scene, at, present, wanted), present);
        let near = scene.neighbors(at).filter_map(|near| self.offset(near));
        for offset in near.filter(|offset| *offset != present) {
            let cost = self.cost(scene, at, offset, wanted);
            if cost < best.0 {
                best = (cost, offset);
            }
        }
        best.1
    }

    fn cost(&self, scene: &Scene, at: usize, offset: (i32, i32), wanted: &[f32; 3]) -> f32 {
        let Some(from) = scene.source(at, offset) else { return IMPOSSIBLE };
        let own = scene.color(from);
        let seams: f32 = scene
            .neighbors(at)
            .map(|near| {
                let beside = scene.source(near, offset).map(|from| scene.color(from));
                let (there, other) = match self.offset(near) {
                    None => (Some(scene.color(near)), None),
                    Some(theirs) if theirs == offset => return 0.0,
                    Some(theirs) => (
                        scene.source(near, theirs).map(|from| scene.color(from)),
                        scene.source(at, theirs).map(|from| scene.color(from)),
                    ),
                };
                let across = |a: Option<[f32; 3]>, b: Option<[f32; 3]>| match (a, b) {
                    (Some(a), Some(b)) => squared_distance(&a, &b),
                    _ => 0.0,
                };
                across(beside, there) + across(other, Some(own))
            })
            .sum();
        squared_distance(&own, wanted) + SEAM_WEIGHT * seams
    }
}

fn squared_distance(a: &[f32; 3], b: &[f32; 3]) -> f32 {
    (0..3).map(|c| (a[c] - b[c]) * (a[c] - b[c])).sum()
}
