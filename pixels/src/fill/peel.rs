//! The first guess at the coarsest size: fills the hole from its border inwards, ring by ring, each pixel from the patch
//! that best matches the known pixels (onion peel, as in Newson et al., "Non-Local Patch-Based Image Inpainting", IPOL
//! 2017). The search is exhaustive, so it suits few pixels only.

use rayon::prelude::*;

use super::error::{FillError, Poll};
use super::level::{Feature, Level, Pixel, depth, squared_distance};
use super::search::{Field, Match, length};
use super::smooth;

/// The largest number of patch comparisons, about 0.1 s; with more sources, only every n-th is compared.
const COMPARISONS: usize = 3 << 20;

/// Pixels between two checks for cancellation.
const PIXELS_PER_POLL: usize = 256;

/// Fills the hole of `level` and gives `field` its first matches.
///
/// # Errors
/// [`FillError::Canceled`].
pub fn fill(
    level: &mut Level,
    field: &mut Field,
    distance_cost: f32,
    salt: u64,
    poll: Poll,
) -> Result<(), FillError> {
    smooth::fill(level);
    let hole = level.hole();
    let stride = (hole.len() * field.sources().len()).div_ceil(COMPARISONS).max(1);
    let sources: Vec<u32> = field.sources().iter().step_by(stride).copied().collect();
    let depth = depth(&level.pixels, level.width, level.height);
    let mut rings: Vec<(u32, u32)> =
        hole.iter().map(|at| (depth[*at as usize].ceil() as u32, *at)).collect();
    rings.sort_unstable();
    let mut known: Vec<bool> = level.pixels.iter().map(|pixel| *pixel != Pixel::Hole).collect();
    let mut found = vec![None; field.targets.len()];
    let mut features = level.features();
    for ring in rings.chunk_by(|a, b| a.0 == b.0) {
        let view = View { level, field, known: &known, features: &features, distance_cost };
        let mut best: Vec<(u32, u32, Match)> = Vec::with_capacity(ring.len());
        for some in ring.chunks(PIXELS_PER_POLL) {
            poll.check()?;
            best.par_extend(some.par_iter().map(|(_, at)| view.best(*at, &sources)));
        }
        for (at, corner, source) in best {
            let (at, corner) = (at as usize, corner as usize);
            let (x, y) = field.place(corner as u32);
            let from = source.y as usize * level.width + source.x as usize + (at - corner);
            level.samples[at] = level.samples[from];
            known[at] = true;
            if let Some(target) = field.target(x, y) {
                found[target] = Some(source);
            }
        }
        for (_, at) in ring {
            let at = *at as usize;
            for near in [
                at.checked_sub(level.width),
                at.checked_sub(1),
                Some(at),
                Some(at + 1),
                Some(at + level.width),
            ] {
                if let Some(near) = near.filter(|near| *near < features.len()) {
                    features[near] = level.feature(near);
                }
            }
        }
    }
    let place = |x, y| field.target(x, y).and_then(|target| found[target]);
    let guesses: Vec<Option<Match>> =
        field.targets.iter().map(|at| field.place(*at)).map(|(x, y)| place(x, y)).collect();
    let index = field.index.clone();
    let width = level.width;
    field.initialize(salt, |x, y| guesses[index[y as usize * width + x as usize] as usize]);
    Ok(())
}

struct View<'a> {
    level: &'a Level,
    field: &'a Field,
    known: &'a [bool],
    features: &'a [Feature],
    distance_cost: f32,
}

impl View<'_> {
    /// Returns the pixel, the patch around it, and the source that best matches the patch's known pixels.
    fn best(&self, at: u32, sources: &[u32]) -> (u32, u32, Match) {
        let (level, side) = (self.level, self.field.side);
        let (x, y) = (at as usize % level.width, at as usize / level.width);
        let left = x.saturating_sub(side / 2).min(level.width - side);
        let top = y.saturating_sub(side / 2).min(level.height - side);
        let corner = top * level.width + left;
        let steps: Vec<usize> = (0..side)
            .flat_map(|y| (0..side).map(move |x| y * level.width + x))
            .filter(|step| self.known[corner + step])
            .collect();
        // Scales to a whole patch, so that the distance cost keeps its weight.
        let scale = (side * side) as f32 / steps.len().max(1) as f32;
        let mut best = (f32::MAX, 0);
        for source in sources {
            let (to_x, to_y) = self.field.place(*source);
            let away = length(to_x - left as i32, to_y - top as i32);
            let patch = &self.features[*source as usize..];
            let sum: i32 = steps
                .iter()
                .map(|step| squared_distance(&self.features[corner + step], &patch[*step]))
                .sum();
            let context_cost = self.field.context_cost.get(*source as usize).copied().unwrap_or(0);
            let cost = sum as f32 * scale + self.distance_cost * away + context_cost as f32;
            if cost < best.0 {
                best = (cost, *source);
            }
        }
        let (x, y) = self.field.place(best.1);
        (at, corner as u32, Match { x, y, cost: best.0 as u32 })
    }
}
