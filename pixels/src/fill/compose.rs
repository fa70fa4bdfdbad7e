//! The last vote, at full size: every pixel of the hole is one pixel of the picture and no mean of several,
//! so the texture inside is as sharp as outside. What remains is to choose where pieces from different
//! places meet, as in shift maps (Pritch et al., ICCV 2009): where they agree with each other.

use rayon::prelude::*;

use super::error::{FillError, Poll};
use super::level::Pixel;

/// Rounds in which every pixel may change over to its neighbour's piece.
const ROUNDS: usize = 8;
/// A visible seam counts as much as this many times the same difference from what the patches wanted.
const SEAM_WEIGHT: f32 = 2.0;
/// What a pixel costs that cannot be copied.
const IMPOSSIBLE: f32 = 1e12;

/// The picture around the hole, in bytes.
pub struct Scene<'a> {
    pub rgb: &'a [u8],
    pub pixels: &'a [Pixel],
    pub width: usize,
    pub height: usize,
}

impl Scene<'_> {
    /// The pixel `offset` away from `at`, when it is one of the picture's own.
    pub fn source(&self, at: usize, offset: (i32, i32)) -> Option<usize> {
        let x = (at % self.width) as i64 + i64::from(offset.0);
        let y = (at / self.width) as i64 + i64::from(offset.1);
        let inside = (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
        let to = inside.then(|| y as usize * self.width + x as usize)?;
        (self.pixels[to] == Pixel::Known).then_some(to)
    }

    /// R, G and B of a pixel.
    pub fn colour(&self, at: usize) -> [f32; 3] {
        let rgb = &self.rgb[at * 3..at * 3 + 3];
        [f32::from(rgb[0]), f32::from(rgb[1]), f32::from(rgb[2])]
    }

    /// The neighbours left, right, above and below.
    pub fn neighbours(&self, at: usize) -> impl Iterator<Item = usize> {
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

/// The hole's pixels with where each is copied from.
pub struct Pieces {
    /// The hole's pixels in order.
    pub hole: Vec<u32>,
    /// For each pixel of the scene its place in `hole`, or [`NONE`].
    pub index: Vec<u32>,
    /// For each of `hole` the columns and rows to the pixel it is a copy of.
    pub offsets: Vec<(i32, i32)>,
}

/// This pixel is not in the hole.
pub const NONE: u32 = u32::MAX;

impl Pieces {
    /// Pieces as the patches want them.
    pub fn new(scene: &Scene, hole: Vec<u32>, offsets: Vec<(i32, i32)>) -> Self {
        let mut index = vec![NONE; scene.pixels.len()];
        for (number, at) in hole.iter().enumerate() {
            index[*at as usize] = number as u32;
        }
        Self { hole, index, offsets }
    }

    /// Where pixel `at` of the scene is copied from; `None` outside the hole.
    pub fn offset(&self, at: usize) -> Option<(i32, i32)> {
        let number = self.index[at];
        (number != NONE).then(|| self.offsets[number as usize])
    }

    /// Moves the borders between pieces to where they show least. `wanted` are the colours that the patches
    /// agreed on, for each of `hole`.
    ///
    /// # Errors
    /// [`FillError::Cancelled`].
    pub fn settle(
        &mut self,
        scene: &Scene,
        wanted: &[[f32; 3]],
        poll: Poll,
    ) -> Result<(), FillError> {
        for round in 0..2 * ROUNDS {
            poll.check()?;
            // Like a chessboard: the pixels that change have neighbours that do not.
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
        let near = scene.neighbours(at).filter_map(|near| self.offset(near));
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
        let own = scene.colour(from);
        let seams: f32 = scene
            .neighbours(at)
            .map(|near| {
                let beside = scene.source(near, offset).map(|from| scene.colour(from));
                let (there, other) = match self.offset(near) {
                    None => (Some(scene.colour(near)), None),
                    Some(theirs) if theirs == offset => return 0.0,
                    Some(theirs) => (
                        scene.source(near, theirs).map(|from| scene.colour(from)),
                        scene.source(at, theirs).map(|from| scene.colour(from)),
                    ),
                };
                let across = |a: Option<[f32; 3]>, b: Option<[f32; 3]>| match (a, b) {
                    (Some(a), Some(b)) => apart(&a, &b),
                    _ => 0.0,
                };
                across(beside, there) + across(other, Some(own))
            })
            .sum();
        apart(&own, wanted) + SEAM_WEIGHT * seams
    }
}

fn apart(a: &[f32; 3], b: &[f32; 3]) -> f32 {
    (0..3).map(|c| (a[c] - b[c]) * (a[c] - b[c])).sum()
}
