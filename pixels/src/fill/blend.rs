//! Removes differences in tone at seams: adjusts the colors inside the hole so that their differences across seams and
//! across the hole's border equal the differences where they were copied from (Pérez et al., "Poisson Image Editing",
//! SIGGRAPH 2003).
//!
//! The unknown is the correction. A damping term pulls it to zero far from any seam, so that the color of a structure
//! that wrongly ends at the border does not bleed through the whole hole.

use rayon::prelude::*;

use super::compose::{NONE, Pieces, Scene};
use super::error::{FillError, Poll};

/// Large steps are mismatched edges rather than differences in tone: a step of this many gray levels gets half the
/// weight.
const TONE_STEP: f32 = 300.0;
/// The weight of the hole's border relative to a seam, higher because its outer side is fixed.
const BORDER_WEIGHT: f32 = 3.0;
/// The shortest distance over which a correction decays, in pixels.
const LEAST_DECAY: f32 = 24.0;
/// The largest number of solver steps; [`LEAST_ERROR`] usually ends it earlier.
const STEPS: usize = 400;
/// The solver stops when its mean error is below this many gray levels.
const LEAST_ERROR: f32 = 0.01;
/// Pixels per partial sum; fixed, so that rounding does not depend on the number of threads.
const CHUNK: usize = 4096;

/// Marks a neighbor beyond the picture's border.
const NO_NEIGHBOR: u32 = NONE - 1;

/// Returns what to add to R, G, B of every pixel of `pieces.hole`, in order. `deepest` is the hole's greatest depth in pixels.
///
/// # Errors
/// [`FillError::Canceled`].
pub fn correction(
    scene: &Scene,
    pieces: &Pieces,
    copied: &[[f32; 3]],
    deepest: f32,
    poll: Poll,
) -> Result<Vec<[f32; 3]>, FillError> {
    let decay = LEAST_DECAY.max(deepest);
    System::new(scene, pieces, copied, 1.0 / (decay * decay)).solve(poll)
}

/// Returns the correction at pixel `x`, `y` of the hole of a picture whose `pieces` are of `size`, `halvings` smaller:
/// interpolated within the piece, because corrections of two pieces differ.
pub fn between(
    pieces: &Pieces,
    correction: &[[f32; 3]],
    (x, y): (usize, usize),
    halvings: usize,
    (width, height): (usize, usize),
) -> [f32; 3] {
    let own = (y >> halvings) * width + (x >> halvings);
    if halvings == 0 {
        return correction[pieces.index[own] as usize];
    }
    // The nearer pixel on each axis, and the share of the other one.
    let place = |at: usize, end: usize| {
        let side = 1 << halvings;
        let from_center = (at % side) as f32 + 0.5 - side as f32 / 2.0;
        let near = at >> halvings;
        let other =
            if from_center < 0.0 { near.saturating_sub(1) } else { (near + 1).min(end - 1) };
        (near, other, from_center.abs() / side as f32)
    };
    let ((x0, x1, right), (y0, y1, below)) = (place(x, width), place(y, height));
    let corners = [
        (y0 * width + x0, (1.0 - right) * (1.0 - below)),
        (y0 * width + x1, right * (1.0 - below)),
        (y1 * width + x0, (1.0 - right) * below),
        (y1 * width + x1, right * below),
    ];
    let (mut sum, mut shares) = ([0.0_f32; 3], 0.0);
    for (at, share) in corners {
        if pieces.offset(at) == pieces.offset(own) {
            let by = correction[pieces.index[at] as usize];
            (0..3).for_each(|c| sum[c] += share * by[c]);
            shares += share;
        }
    }
    sum.map(|sum| sum / shares)
}

/// The linear system: for each pixel of the hole, `(neighbors + damping) v - sum of the neighbors' v = steps`.
struct System {
    /// The index of each neighbor in the hole; [`NONE`] outside the hole, where the correction is 0, and
    /// [`NO_NEIGHBOR`] beyond the picture.
    neighbors: Vec<[u32; 4]>,
    steps: Vec<[f32; 3]>,
    damping: f32,
}

impl System {
    fn new(scene: &Scene, pieces: &Pieces, copied: &[[f32; 3]], damping: f32) -> Self {
        let rows = pieces.hole.par_iter().with_min_len(256).enumerate().map(|(number, at)| {
            let at = *at as usize;
            let (mut neighbors, mut sum) = ([NO_NEIGHBOR; 4], [0.0_f32; 3]);
            for (slot, near) in neighbors.iter_mut().zip(scene.neighbors(at)) {
                *slot = pieces.index[near];
                let step = missing_step(scene, pieces, copied, (at, number), near);
                let weight = if *slot == NONE { BORDER_WEIGHT } else { 1.0 };
                (0..3).for_each(|c| sum[c] += weight * step[c]);
            }
            (neighbors, sum)
        });
        let (neighbors, steps) = rows.unzip();
        Self { neighbors, steps, damping }
    }

    /// Solves the system by conjugate gradients.
    fn solve(&self, poll: Poll) -> Result<Vec<[f32; 3]>, FillError> {
        let count = self.steps.len();
        let mut solution = vec![[0.0_f32; 3]; count];
        let mut rest = self.steps.clone();
        let mut direction: Vec<[f32; 3]> = rest.clone();
        let mut size = dot(&rest, &rest);
        let enough = LEAST_ERROR * LEAST_ERROR * self.damping.sqrt() * count as f32;
        for _ in 0..STEPS {
            poll.check()?;
            if size.iter().all(|size| *size <= enough) {
                break;
            }
            let image = self.times(&direction);
            let along = dot(&direction, &image);
            let by: [f32; 3] = std::array::from_fn(|c| share(size[c], along[c]));
            let updates =
                solution.par_iter_mut().zip(&mut rest).zip(direction.par_iter().zip(&image));
            updates.with_min_len(CHUNK).for_each(|((solution, rest), (direction, image))| {
                for c in 0..3 {
                    solution[c] += by[c] * direction[c];
                    rest[c] -= by[c] * image[c];
                }
            });
            let next = dot(&rest, &rest);
            let keep: [f32; 3] = std::array::from_fn(|c| share(next[c], size[c]));
            direction.par_iter_mut().zip(&rest).with_min_len(CHUNK).for_each(
                |(direction, rest)| {
                    (0..3).for_each(|c| direction[c] = rest[c] + keep[c] * direction[c]);
                },
            );
            size = next;
        }
        Ok(solution)
    }

    fn times(&self, values: &[[f32; 3]]) -> Vec<[f32; 3]> {
        let rows = values.par_iter().zip(&self.neighbors).with_min_len(CHUNK);
        rows.map(|(own, neighbors)| {
            let mut out = own.map(|value| value * self.damping);
            for near in neighbors.iter().filter(|near| **near != NO_NEIGHBOR) {
                match values.get(*near as usize) {
                    Some(other) => (0..3).for_each(|c| out[c] += own[c] - other[c]),
                    None => (0..3).for_each(|c| out[c] += BORDER_WEIGHT * own[c]),
                }
            }
            out
        })
        .collect()
    }
}

/// Returns the difference that `at` and its neighbor `near` should have, minus the difference they have.
fn missing_step(
    scene: &Scene,
    pieces: &Pieces,
    copied: &[[f32; 3]],
    (at, number): (usize, usize),
    near: usize,
) -> [f32; 3] {
    let own = pieces.offsets[number];
    let (beside, theirs) = match pieces.offset(near) {
        Some(theirs) if theirs == own => return [0.0; 3],
        Some(theirs) => (copied[pieces.index[near] as usize], Some(theirs)),
        None => (scene.color(near), None),
    };
    let mine = copied[number];
    let from_own = scene.source(near, own).map(|from| {
        let there = scene.color(from);
        std::array::from_fn(|c| mine[c] - there[c])
    });
    let from_theirs = theirs.and_then(|theirs| scene.source(at, theirs)).map(|from| {
        let here = scene.color(from);
        std::array::from_fn(|c| here[c] - beside[c])
    });
    let wanted: [f32; 3] = match (from_own, from_theirs) {
        (Some(a), Some(b)) => std::array::from_fn(|c: usize| 0.5 * (a[c] + b[c])),
        (Some(a), None) | (None, Some(a)) => a,
        (None, None) => return [0.0; 3],
    };
    let missing: [f32; 3] = std::array::from_fn(|c| wanted[c] - (mine[c] - beside[c]));
    let largest = missing.iter().fold(0.0, |largest: f32, step| largest.max(step.abs()));
    let weight = 1.0 / (1.0 + (largest / TONE_STEP).powi(2));
    missing.map(|step| step * weight)
}

fn share(part: f32, whole: f32) -> f32 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn dot(a: &[[f32; 3]], b: &[[f32; 3]]) -> [f32; 3] {
    let sums = a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK)).map(|(a, b)| {
        let mut sum = [0.0_f32; 3];
        for (a, b) in a.iter().zip(b) {
            (0..3).for_each(|c| sum[c] += a[c] * b[c]);
        }
        sum
    });
    let sums: Vec<[f32; 3]> = sums.collect();
    std::array::from_fn(|c| sums.iter().map(|sum| sum[c]).sum())
}
