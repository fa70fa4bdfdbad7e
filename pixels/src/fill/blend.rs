//! Takes the steps of tone out of the seams: the colours inside the hole are changed so that their differences
//! across seams and across the hole's border become those of the places they were copied from (Pérez et
//! al., "Poisson Image Editing", SIGGRAPH 2003).
//!
//! What is solved for is the correction, with a term that pulls it to zero far from any seam: where a
//! structure ends at the border by mistake, its colour does not run through the whole hole.

use rayon::prelude::*;

use super::compose::{NONE, Pieces, Scene};
use super::error::{FillError, Poll};

/// The largest steps are edges that do not match rather than differences of tone: those near this many gray
/// levels count for half.
const TONE_STEP: f32 = 300.0;
/// The border of the hole counts as so many seams: there one side cannot give way.
const BORDER_WEIGHT: f32 = 3.0;
/// How far a correction reaches at least, in pixels.
const LEAST_REACH: f32 = 24.0;
/// Steps of the solver at most; that the error is gone by then is what [`LEAST_ERROR`] is for.
const STEPS: usize = 400;
/// The solver is done when its mean error is below this many gray levels.
const LEAST_ERROR: f32 = 0.01;
/// Pixels whose sums one thread adds up; fixed, so that rounding does not depend on the threads.
const SHARE: usize = 4096;

/// What is missing beside a pixel.
const NO_NEIGHBOUR: u32 = NONE - 1;

/// R, G, B of every pixel of `pieces.hole`, in order. `deepest` is the hole's greatest depth in pixels.
///
/// # Errors
/// [`FillError::Cancelled`].
pub fn blend(
    scene: &Scene,
    pieces: &Pieces,
    copied: &[[f32; 3]],
    deepest: f32,
    poll: Poll,
) -> Result<Vec<[u8; 3]>, FillError> {
    let reach = LEAST_REACH.max(deepest);
    let system = System::new(scene, pieces, copied, 1.0 / (reach * reach));
    let correction = system.solve(poll)?;
    let byte = |value: f32| (value + 0.5).clamp(0.0, 255.0) as u8;
    let both = copied.iter().zip(&correction);
    Ok(both.map(|(colour, by)| std::array::from_fn(|c| byte(colour[c] + by[c]))).collect())
}

/// For each pixel of the hole: `(neighbours + pull) v - sum of the neighbours' v = steps`.
struct System {
    /// Places in the hole of the neighbours; [`NONE`] for one outside the hole, whose correction is 0, and
    /// [`NO_NEIGHBOUR`] beyond the picture.
    neighbours: Vec<[u32; 4]>,
    steps: Vec<[f32; 3]>,
    pull: f32,
}

impl System {
    fn new(scene: &Scene, pieces: &Pieces, copied: &[[f32; 3]], pull: f32) -> Self {
        let rows = pieces.hole.par_iter().with_min_len(256).enumerate().map(|(number, at)| {
            let at = *at as usize;
            let (mut neighbours, mut sum) = ([NO_NEIGHBOUR; 4], [0.0_f32; 3]);
            for (slot, near) in neighbours.iter_mut().zip(scene.neighbours(at)) {
                *slot = pieces.index[near];
                let step = missing_step(scene, pieces, copied, (at, number), near);
                let weight = if *slot == NONE { BORDER_WEIGHT } else { 1.0 };
                (0..3).for_each(|c| sum[c] += weight * step[c]);
            }
            (neighbours, sum)
        });
        let (neighbours, steps) = rows.unzip();
        Self { neighbours, steps, pull }
    }

    /// Conjugate gradients with the diagonal as preconditioner.
    fn solve(&self, poll: Poll) -> Result<Vec<[f32; 3]>, FillError> {
        let count = self.steps.len();
        let mut solution = vec![[0.0_f32; 3]; count];
        let mut rest = self.steps.clone();
        let mut direction: Vec<[f32; 3]> = rest.clone();
        let mut size = dot(&rest, &rest);
        let enough = LEAST_ERROR * LEAST_ERROR * self.pull.sqrt() * count as f32;
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
            updates.with_min_len(SHARE).for_each(|((solution, rest), (direction, image))| {
                for c in 0..3 {
                    solution[c] += by[c] * direction[c];
                    rest[c] -= by[c] * image[c];
                }
            });
            let next = dot(&rest, &rest);
            let keep: [f32; 3] = std::array::from_fn(|c| share(next[c], size[c]));
            direction.par_iter_mut().zip(&rest).with_min_len(SHARE).for_each(
                |(direction, rest)| {
                    (0..3).for_each(|c| direction[c] = rest[c] + keep[c] * direction[c]);
                },
            );
            size = next;
        }
        Ok(solution)
    }

    fn times(&self, values: &[[f32; 3]]) -> Vec<[f32; 3]> {
        let rows = values.par_iter().zip(&self.neighbours).with_min_len(SHARE);
        rows.map(|(own, neighbours)| {
            let mut out = own.map(|value| value * self.pull);
            for near in neighbours.iter().filter(|near| **near != NO_NEIGHBOUR) {
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

/// What the difference between `at` and its neighbour `near` should be, less what it is.
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
        None => (scene.colour(near), None),
    };
    let mine = copied[number];
    let from_own = scene.source(near, own).map(|from| {
        let there = scene.colour(from);
        std::array::from_fn(|c| mine[c] - there[c])
    });
    let from_theirs = theirs.and_then(|theirs| scene.source(at, theirs)).map(|from| {
        let here = scene.colour(from);
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
    let shares = a.par_chunks(SHARE).zip(b.par_chunks(SHARE)).map(|(a, b)| {
        let mut sum = [0.0_f32; 3];
        for (a, b) in a.iter().zip(b) {
            (0..3).for_each(|c| sum[c] += a[c] * b[c]);
        }
        sum
    });
    let shares: Vec<[f32; 3]> = shares.collect();
    std::array::from_fn(|c| shares.iter().map(|share| share[c]).sum())
}
