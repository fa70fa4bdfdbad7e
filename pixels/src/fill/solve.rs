//! Fills one region, from the coarsest size to the finest.

use super::compose::{Pieces, Scene};
use super::error::{FillError, Poll};
use super::level::{Level, Pixel, depth};
use super::search::{Field, Match, Round};
use super::settings::Settings;
use super::{blend, peel, smooth, strange, vote};

/// Pixels along a side of a patch, the largest that fits first.
const SIDES: [usize; 3] = [7, 5, 3];
/// The coarsest size is the first at which nothing of the hole lies deeper than this many pixels.
const COARSEST_DEPTH: f32 = 12.0;
/// Patches to copy from that a coarser size must still have.
const LEAST_SOURCES: usize = 400;
/// How many times as much distance costs in the first guesses at the coarsest size.
const FIRST_GUESSES: [f32; 2] = [1.0, 8.0];
/// With more patches to copy from at the coarsest size a careful first guess would take long. Where the hole is
/// thin, no deeper than this many pixels, a smooth transition is a good one.
const MOST_SOURCES: usize = 20_000;
const THIN_DEPTH: f32 = 4.0;
/// How often matches and colours take turns: at the coarsest size, there for thin holes, and at finer sizes.
const TURNS_COARSEST: usize = 14;
const TURNS_THIN: usize = 4;
const TURNS: usize = 6;
/// A hole of more patches takes long, and half as many turns do.
const MANY_TARGETS: usize = 60_000;
/// Neighbours tried in the rounds of one turn.
const STEPS: [i32; 4] = [8, 3, 1, 1];
/// How much worse than the others a patch may be and still have a say: at first many, at last the best.
const SPREADS: [f32; 2] = [0.5, 0.1];
/// What lying far away costs: as much as this difference, in half gray levels squared, in every pixel of a
/// patch that lies as far away as the region is long.
const DISTANCE_COST: f32 = 100.0;

/// Fills the hole of a region: `rgb` and `pixels` in, R, G, B of the hole's pixels in order out.
///
/// # Errors
/// [`FillError::Cancelled`].
pub fn solve(scene: &Scene, settings: &Settings, poll: Poll) -> Result<Vec<[u8; 3]>, FillError> {
    let deepest = depth(scene.pixels, scene.width, scene.height).into_iter().fold(0.0, f32::max);
    let pixels_at = |halvings: usize| {
        scene.width.div_ceil(1 << halvings) * scene.height.div_ceil(1 << halvings)
    };
    let mut shrunk = 0;
    while pixels_at(shrunk) > settings.max_pixels.max(1) {
        shrunk += 1;
    }
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
            return finish(scene, &solved, shrunk, deepest, poll);
        }
        coarse = Some(solved);
    }
    Ok(smoothly(scene))
}

/// A level whose hole is filled, with the matches that filled it.
struct Solved {
    level: Level,
    field: Field,
    hole: Vec<u32>,
    trust: Vec<f32>,
}

/// The next smaller level where that is of use.
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

/// The match at twice the size of the patch at `x`, `y`.
fn twice(coarse: &Field, x: i32, y: i32) -> Option<Match> {
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
    /// The first guess decides what the hole becomes, and it is greedy: several are tried, and the one whose
    /// patches agree best with the picture is taken.
    fn coarsest(&self, level: Level, mut field: Field, poll: Poll) -> Result<Solved, FillError> {
        if field.sources().len() > MOST_SOURCES {
            let mut level = level;
            smooth::fill(&mut level);
            field.begin(self.salt, |_, _| None);
            return self.take_turns(level, field, TURNS_THIN, poll);
        }
        field.strangeness = strange::measure(&level, &field);
        let mut best: Option<(u64, Solved)> = None;
        for nearer in FIRST_GUESSES {
            let (mut level, mut field) = (level.clone(), field.clone());
            peel::fill(&mut level, &mut field, nearer * self.distance_cost, self.salt, poll)?;
            let solved = self.take_turns(level, field, TURNS_COARSEST, poll)?;
            let cost = solved.field.matches.iter().map(|found| u64::from(found.cost)).sum();
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, solved));
            }
        }
        best.map(|(_, solved)| solved).ok_or(FillError::Everything)
    }

    fn finer(
        &self,
        level: Level,
        mut field: Field,
        coarse: &Solved,
        poll: Poll,
    ) -> Result<Solved, FillError> {
        field.strangeness = strange::twice(
            &coarse.field.strangeness,
            coarse.level.width,
            level.width,
            level.height,
        );
        field.begin(self.salt, |x, y| twice(&coarse.field, x, y));
        let turns = if field.targets.len() > MANY_TARGETS { TURNS / 2 } else { TURNS };
        self.take_turns(level, field, turns, poll)
    }

    fn take_turns(
        &self,
        mut level: Level,
        mut field: Field,
        turns: usize,
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
        for turn in 0..turns {
            for (number, step) in STEPS.iter().enumerate() {
                let reach = level.width.max(level.height) as i32;
                let round = Round {
                    step: *step,
                    reach: if self.is_coarsest { reach } else { reach / 4 },
                    distance_cost: self.distance_cost,
                    salt: self.salt ^ ((turn * STEPS.len() + number) as u64) << 40,
                };
                field.improve(&features, &round, poll)?;
            }
            let late = (turn + 1) as f32 / turns as f32;
            let spread = SPREADS[0] + (SPREADS[1] - SPREADS[0]) * late;
            vote::mean(&mut level, &field, &hole, &trust, spread);
            for at in &touched {
                features[*at as usize] = level.feature(*at as usize);
            }
        }
        Ok(Solved { level, field, hole, trust })
    }
}

/// The pixels whose features change with the hole's colours.
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

/// From the finest level that was searched to the colours of the full size.
fn finish(
    scene: &Scene,
    Solved { level, field, hole: coarse_hole, trust }: &Solved,
    shrunk: usize,
    deepest: f32,
    poll: Poll,
) -> Result<Vec<[u8; 3]>, FillError> {
    let coarse_offsets = vote::offsets(level, field, coarse_hole, trust, SPREADS[1]);
    let hole: Vec<u32> = (0..scene.pixels.len() as u32)
        .filter(|at| scene.pixels[*at as usize] == Pixel::Hole)
        .collect();
    let mut place = vec![0; level.samples.len()];
    coarse_hole.iter().enumerate().for_each(|(number, at)| place[*at as usize] = number);
    let mut offsets = Vec::with_capacity(hole.len());
    let mut wanted = Vec::with_capacity(hole.len());
    for at in &hole {
        let (x, y) = (*at as usize % scene.width, *at as usize / scene.width);
        let below = (y >> shrunk) * level.width + (x >> shrunk);
        let (dx, dy) = coarse_offsets[place[below]];
        // A pixel at the right or lower border of a smaller size may stand for fewer.
        let to_x = (x as i32 + (dx << shrunk)).min(scene.width as i32 - 1);
        let to_y = (y as i32 + (dy << shrunk)).min(scene.height as i32 - 1);
        offsets.push((to_x - x as i32, to_y - y as i32));
        let [red, green, blue, ..] = level.samples[below];
        wanted.push([red, green, blue]);
    }
    let mut pieces = Pieces::new(scene, hole, offsets);
    pieces.settle(scene, &wanted, poll)?;
    let copied: Vec<[f32; 3]> = pieces
        .hole
        .iter()
        .zip(&pieces.offsets)
        .zip(&wanted)
        .map(|((at, offset), wanted)| {
            scene.source(*at as usize, *offset).map_or(*wanted, |from| scene.colour(from))
        })
        .collect();
    blend::blend(scene, &pieces, &copied, deepest, poll)
}

/// The hole's colours where there is no patch to copy: a smooth transition.
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
