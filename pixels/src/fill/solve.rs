//! Fills one region, from the coarsest size to the finest.

use rayon::prelude::*;

use super::compose::{Pieces, Scene};
use super::error::{FillError, Poll};
use super::level::{Level, Pixel, depth};
use super::search::{Field, Match, Round};
use super::settings::Settings;
use super::{blend, context_cost, peel, smooth, vote};

/// The patch sizes in pixels per side; the first that fits is used.
const SIDES: [usize; 3] = [7, 5, 3];
/// The coarsest size is the first at which no pixel of the hole is deeper than this many pixels.
const COARSEST_DEPTH: f32 = 12.0;
/// The number of source patches that a coarser size must still have.
const LEAST_SOURCES: usize = 400;
/// The factors of the distance cost for the first guesses at the coarsest size.
const FIRST_GUESSES: [f32; 2] = [1.0, 8.0];
/// With more source patches at the coarsest size, the exhaustive first guess takes too long. A smooth transition then
/// replaces it, which is good enough for a thin hole.
const MOST_SOURCES: usize = 20_000;
/// A hole is thin if no pixel is deeper than this many pixels.
const THIN_DEPTH: f32 = 4.0;
/// Iterations of search and vote at the coarsest size, at the coarsest size after a smooth first guess, and at finer
/// sizes.
const ITERATIONS_COARSEST: usize = 14;
const ITERATIONS_THIN: usize = 4;
const ITERATIONS: usize = 6;
/// Above this number of target patches, half the iterations are run, to save time.
const MANY_TARGETS: usize = 60_000;
/// The distances to the neighbors that the search rounds of one iteration try, in pixels.
const STEPS: [i32; 4] = [8, 3, 1, 1];
/// The spread of the votes in the first and the last iteration: many patches decide at first, the best at the end.
const SPREADS: [f32; 2] = [0.5, 0.1];
/// The cost of distance: a patch as far away as the region is long costs this much more per pixel, in squared half gray
/// levels.
const DISTANCE_COST: f32 = 100.0;

/// Fills the hole of a region and returns R, G, B of the hole's pixels in order.
///
/// # Errors
/// [`FillError::Canceled`].
pub fn solve(scene: &Scene, settings: &Settings, poll: Poll) -> Result<Vec<[u8; 3]>, FillError> {
    let deepest = depth(scene.pixels, scene.width, scene.height).into_iter().fold(0.0, f32::max);
    let shrunk = settings.halvings(scene.width, scene.height);
    let mut levels = vec![Level::new(scene.rgb, scene.width, scene.pixels, shrunk)];
    while let Some(next) = coarser(&levels[levels.len() - 1], deepest, shrunk + levels.len() - 1) {
        levels.push(next);
    }
    let side = SIDES.iter().find(|side| Field::new(&levels[0], **side).is_some());
    let Some(side) = side.copied() else { return Ok(smoothly(scene)) };

    let mut coarse: Option<Solved> = None;
    while let Some(level) = levels.pop() {
        let salt = settings.seed.wrapping_add(levels.len() as u64 * 0x5851_f42d_4c95_7f2d);
        let Some(field) = Field::new(&level, side) else { continue };
        let distance_cost =
            DISTANCE_COST * (side * side) as f32 / level.width.max(level.height) as f32;
        let run = Run { distance_cost, salt, is_coarsest: coarse.is_none() };
        let solved = match &coarse {
            None => run.coarsest(level, field, poll)?,
            Some(coarse) => run.finer(level, field, coarse, poll)?,
        };
        if levels.is_empty() {
            return finish(scene, &solved, settings, deepest, poll);
        }
        coarse = Some(solved);
    }
    Ok(smoothly(scene))
}

/// A level with its hole filled, and the matches that filled it.
struct Solved {
    level: Level,
    field: Field,
    hole: Vec<u32>,
    trust: Vec<f32>,
}

/// Returns the next smaller level, if one is needed and has enough source patches.
fn coarser(level: &Level, deepest: f32, halvings: usize) -> Option<Level> {
    let deepest = deepest / (1 << halvings) as f32;
    let is_small = level.samples.len() <= MOST_SOURCES || deepest <= THIN_DEPTH;
    if deepest <= COARSEST_DEPTH && is_small {
        return None;
    }
    let next = level.half();
    let field = Field::new(&next, SIDES[0])?;
    (field.sources().len() >= LEAST_SOURCES).then_some(next)
}

/// Returns the match for the patch at `x`, `y` of a level twice as large.
fn doubled_match(coarse: &Field, x: i32, y: i32) -> Option<Match> {
    let found = coarse.matches[coarse.target_near(x / 2, y / 2)?];
    let (dx, dy) = (x / 2, y / 2);
    Some(Match { x: x + 2 * (found.x - dx), y: y + 2 * (found.y - dy), cost: found.cost })
}

struct Run {
    distance_cost: f32,
    salt: u64,
    is_coarsest: bool,
}

impl Run {
    /// Solves the coarsest level. The first guess is greedy and decides the outcome, so several are tried and the one
    /// whose patches match the picture best wins.
    fn coarsest(&self, level: Level, mut field: Field, poll: Poll) -> Result<Solved, FillError> {
        if field.sources().len() > MOST_SOURCES {
            let mut level = level;
            smooth::fill(&mut level);
            field.initialize(self.salt, |_, _| None);
            return self.iterate(level, field, ITERATIONS_THIN, poll);
        }
        field.context_cost = context_cost::measure(&level, &field);
        let mut best: Option<(u64, Solved)> = None;
        for factor in FIRST_GUESSES {
            let (mut level, mut field) = (level.clone(), field.clone());
            peel::fill(&mut level, &mut field, factor * self.distance_cost, self.salt, poll)?;
            let solved = self.iterate(level, field, ITERATIONS_COARSEST, poll)?;
            let cost = solved.field.matches.iter().map(|found| u64::from(found.cost)).sum();
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, solved));
            }
        }
        best.map(|(_, solved)| solved).ok_or(FillError::NothingToCopy)
    }

    fn finer(
        &self,
        level: Level,
        mut field: Field,
        coarse: &Solved,
        poll: Poll,
    ) -> Result<Solved, FillError> {
        field.context_cost = context_cost::double(
            &coarse.field.context_cost,
            coarse.level.width,
            level.width,
            level.height,
        );
        field.initialize(self.salt, |x, y| doubled_match(&coarse.field, x, y));
        let iterations =
            if field.targets.len() > MANY_TARGETS { ITERATIONS / 2 } else { ITERATIONS };
        self.iterate(level, field, iterations, poll)
    }

    /// Alternates between improving the matches and voting on the colors.
    fn iterate(
        &self,
        mut level: Level,
        mut field: Field,
        iterations: usize,
        poll: Poll,
    ) -> Result<Solved, FillError> {
        let hole = level.hole();
        let depth = depth(&level.pixels, level.width, level.height);
        let trust = vote::trust(&field, &level, &depth);
        let touched = touched(&level, &hole);
        if !self.is_coarsest {
            smooth::fill(&mut level);
            vote::mean(&mut level, &field, &hole, &trust, SPREADS[1]);
        }
        let mut features = level.features();
        for iteration in 0..iterations {
            for (number, step) in STEPS.iter().enumerate() {
                let radius = level.width.max(level.height) as i32;
                let round = Round {
                    step: *step,
                    radius: if self.is_coarsest { radius } else { radius / 4 },
                    distance_cost: self.distance_cost,
                    salt: self.salt ^ ((iteration * STEPS.len() + number) as u64) << 40,
                };
                field.improve(&features, &round, poll)?;
            }
            let progress = (iteration + 1) as f32 / iterations as f32;
            let spread = SPREADS[0] + (SPREADS[1] - SPREADS[0]) * progress;
            vote::mean(&mut level, &field, &hole, &trust, spread);
            for at in &touched {
                features[*at as usize] = level.feature(*at as usize);
            }
        }
        Ok(Solved { level, field, hole, trust })
    }
}

/// Returns the pixels whose features depend on the hole's colors.
fn touched(level: &Level, hole: &[u32]) -> Vec<u32> {
    let (width, end) = (level.width, level.samples.len());
    let mut touched: Vec<u32> = hole
        .iter()
        .map(|at| *at as usize)
        .flat_map(|at| [at.saturating_sub(width), at.saturating_sub(1), at, at + 1, at + width])
        .filter(|at| *at < end)
        .map(|at| at as u32)
        .collect();
    touched.sort_unstable();
    touched.dedup();
    touched
}

/// Computes the colors at full size from the finest level that was searched. Places the seams of a large hole at a smaller
/// size, to save time and memory; its pixels are still copied at full size.
fn finish(
    scene: &Scene,
    solved: &Solved,
    settings: &Settings,
    deepest: f32,
    poll: Poll,
) -> Result<Vec<[u8; 3]>, FillError> {
    let shrunk = settings.halvings(scene.width, scene.height);
    let pixels = scene.pixels.iter().filter(|pixel| **pixel == Pixel::Hole).count();
    let halvings = (0..shrunk).find(|halvings| pixels >> (2 * halvings) <= settings.max_pixels);
    let halvings = halvings.unwrap_or(shrunk);
    let smaller = (halvings > 0).then(|| {
        let level = Level::new(scene.rgb, scene.width, scene.pixels, halvings);
        (level.rgb(), level.pixels, level.width, level.height)
    });
    let Scene { rgb, pixels, width, height } = *scene;
    let small = match &smaller {
        Some((rgb, pixels, width, height)) => Scene { rgb, pixels, width: *width, height: *height },
        None => Scene { rgb, pixels, width, height },
    };
    let (pieces, wanted) = pieces(&small, solved, shrunk - halvings, poll)?;
    let copied: Vec<[f32; 3]> = pieces
        .hole
        .iter()
        .zip(&pieces.offsets)
        .zip(&wanted)
        .map(|((at, offset), wanted)| {
            small.source(*at as usize, *offset).map_or(*wanted, |from| small.color(from))
        })
        .collect();
    let deepest = deepest / (1 << halvings) as f32;
    let correction = blend::correction(&small, &pieces, &copied, deepest, poll)?;
    let hole = hole(scene);
    let byte = |value: f32| (value + 0.5).clamp(0.0, 255.0) as u8;
    let color = |at: &u32| {
        let at = *at as usize;
        let (x, y) = (at % scene.width, at / scene.width);
        let below = (y >> halvings) * small.width + (x >> halvings);
        let number = pieces.index[below] as usize;
        let offset = enlarged(pieces.offsets[number], halvings, (x, y), scene);
        let color = scene.source(at, offset).map_or(wanted[number], |from| scene.color(from));
        let by =
            blend::between(&pieces, &correction, (x, y), halvings, (small.width, small.height));
        std::array::from_fn(|c| byte(color[c] + by[c]))
    };
    Ok(hole.par_iter().with_min_len(256).map(color).collect())
}

/// Returns the indices of the hole's pixels in order.
fn hole(scene: &Scene) -> Vec<u32> {
    let pixels = 0..scene.pixels.len() as u32;
    pixels.filter(|at| scene.pixels[*at as usize] == Pixel::Hole).collect()
}

/// Returns the pieces of a scene that is `shrunk` halvings larger than the level that was searched, and the colors that the
/// patches voted for, one per pixel of the hole.
fn pieces(
    scene: &Scene,
    Solved { level, field, hole: coarse_hole, trust }: &Solved,
    shrunk: usize,
    poll: Poll,
) -> Result<(Pieces, Vec<[f32; 3]>), FillError> {
    let coarse_offsets = vote::offsets(level, field, coarse_hole, trust, SPREADS[1]);
    let hole = hole(scene);
    let mut place = vec![0; level.samples.len()];
    coarse_hole.iter().enumerate().for_each(|(number, at)| place[*at as usize] = number);
    let mut offsets = Vec::with_capacity(hole.len());
    let mut wanted = Vec::with_capacity(hole.len());
    for at in &hole {
        let (x, y) = (*at as usize % scene.width, *at as usize / scene.width);
        let below = (y >> shrunk) * level.width + (x >> shrunk);
        offsets.push(enlarged(coarse_offsets[place[below]], shrunk, (x, y), scene));
        let [red, green, blue, ..] = level.samples[below];
        wanted.push([red, green, blue]);
    }
    let mut pieces = Pieces::new(scene, hole, offsets);
    pieces.optimize_seams(scene, &wanted, poll)?;
    Ok((pieces, wanted))
}

/// Returns the offset from pixel `x`, `y` of a scene for one of a size that is `halvings` smaller.
fn enlarged(
    (dx, dy): (i32, i32),
    halvings: usize,
    (x, y): (usize, usize),
    scene: &Scene,
) -> (i32, i32) {
    // A pixel at the right or lower border of a smaller size may cover fewer pixels.
    let to_x = (x as i32 + (dx << halvings)).min(scene.width as i32 - 1);
    let to_y = (y as i32 + (dy << halvings)).min(scene.height as i32 - 1);
    (to_x - x as i32, to_y - y as i32)
}

/// Returns a smooth transition for the hole, for regions without a patch to copy.
fn smoothly(scene: &Scene) -> Vec<[u8; 3]> {
    let mut level = Level::new(scene.rgb, scene.width, scene.pixels, 0);
    smooth::fill(&mut level);
    let byte = |value: f32| (value + 0.5).clamp(0.0, 255.0) as u8;
    let hole = level.hole();
    hole.iter()
        .map(|at| level.samples[*at as usize])
        .map(|s| [byte(s[0]), byte(s[1]), byte(s[2])])
        .collect()
}
