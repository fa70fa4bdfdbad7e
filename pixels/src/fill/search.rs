//! Finds the most similar patch of the picture for every patch that overlaps the hole: PatchMatch (Barnes et al.,
//! SIGGRAPH 2009). Each patch tries the matches of patches a few pixels away and random ones, near its current match
//! and anywhere.
//!
//! Every round reads the matches of the previous round and writes new ones, and every patch draws its random numbers
//! from its position and the round, so the result does not depend on the number of threads.

use rayon::prelude::*;

use super::error::{FillError, Poll};
use super::level::{Feature, Level, Pixel, difference};

/// Patches that a thread processes at a time.
const CHUNK: usize = 512;
/// Patches between two checks for cancellation.
const PATCHES_PER_POLL: usize = 1 << 15;

/// The source of a patch. A patch is identified by its top left pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    pub x: i32,
    pub y: i32,
    /// The dissimilarity of the two patches; lower is better.
    pub cost: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// The distance to the neighbors whose matches are tried, in pixels.
    pub step: i32,
    /// The largest distance of the first random try from the current match, in pixels; it halves with each try.
    pub radius: i32,
    /// The cost of a match per pixel of distance.
    pub distance_cost: f32,
    /// Makes the random numbers of each round different.
    pub salt: u64,
}

/// The patches of a level and their matches.
#[derive(Clone)]
pub struct Field {
    width: usize,
    columns: i32,
    rows: i32,
    /// Pixels along a side of a patch: 3, 5 or 7.
    pub side: usize,
    /// The patches that overlap the hole.
    pub targets: Vec<u32>,
    pub matches: Vec<Match>,
    /// The index in `targets` of the patch at each pixel, or [`NONE`].
    pub index: Vec<u32>,
    is_source: Vec<bool>,
    /// The extra cost of copying the patch at each pixel; empty if there is none.
    pub context_cost: Vec<u32>,
    /// The patches that can be copied: those made of known pixels only.
    sources: Vec<u32>,
}

/// Marks a pixel where no target starts.
pub const NONE: u32 = u32::MAX;

impl Field {
    /// Creates the patches of `level`, `side` pixels per side, without matches; `None` if there is no patch to copy.
    pub fn new(level: &Level, side: usize) -> Option<Self> {
        let (width, height) = (level.width, level.height);
        if width < side || height < side {
            return None;
        }
        let (columns, rows) = (width - side + 1, height - side + 1);
        let worst = worst_of_patches(level, side);
        let at_places = |wanted: Pixel| -> Vec<u32> {
            let places = (0..rows).flat_map(|y| (0..columns).map(move |x| y * width + x));
            places.filter(|at| worst[*at] == wanted).map(|at| at as u32).collect()
        };
        let (targets, sources) = (at_places(Pixel::Hole), at_places(Pixel::Known));
        let mut index = vec![NONE; width * height];
        for (number, at) in targets.iter().enumerate() {
            index[*at as usize] = number as u32;
        }
        let mut is_source = vec![false; width * height];
        for at in &sources {
            is_source[*at as usize] = true;
        }
        let (columns, rows) = (columns as i32, rows as i32);
        (!sources.is_empty()).then_some(Self {
            width,
            columns,
            rows,
            side,
            targets,
            matches: Vec::new(),
            index,
            is_source,
            context_cost: Vec::new(),
            sources,
        })
    }

    pub fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// Returns true if the patch at `x`, `y` can be copied.
    pub fn is_source(&self, x: i32, y: i32) -> bool {
        (0..self.columns).contains(&x)
            && (0..self.rows).contains(&y)
            && self.is_source[y as usize * self.width + x as usize]
    }

    pub fn target(&self, x: i32, y: i32) -> Option<usize> {
        if !(0..self.columns).contains(&x) || !(0..self.rows).contains(&y) {
            return None;
        }
        let number = self.index[y as usize * self.width + x as usize];
        (number != NONE).then_some(number as usize)
    }

    /// Returns the index of a target at or next to `x`, `y`.
    pub fn target_near(&self, x: i32, y: i32) -> Option<usize> {
        let near = [(0, 0), (-1, 0), (0, -1), (-1, -1), (1, 0), (0, 1), (1, 1), (-1, 1), (1, -1)];
        near.into_iter().find_map(|(dx, dy)| self.target(x + dx, y + dy))
    }

    /// Returns the column and row of a patch.
    pub const fn place(&self, at: u32) -> (i32, i32) {
        let at = at as usize;
        ((at % self.width) as i32, (at / self.width) as i32)
    }

    /// Initializes the matches: takes `guess(x, y)` for the target at `x`, `y` if that patch can be copied, otherwise a
    /// random source with a high cost.
    pub fn initialize(&mut self, salt: u64, guess: impl Fn(i32, i32) -> Option<Match> + Sync) {
        let this = &*self;
        self.matches = this
            .targets
            .par_iter()
            .with_min_len(CHUNK)
            .map(|at| {
                let (x, y) = this.place(*at);
                if let Some(found) = guess(x, y).filter(|found| this.is_source(found.x, found.y)) {
                    return found;
                }
                let (x, y) = this.place(this.any_source(&mut Random::new(salt, *at)));
                Match { x, y, cost: u32::MAX >> 4 }
            })
            .collect();
    }

    fn any_source(&self, random: &mut Random) -> u32 {
        self.sources[random.below(self.sources.len() as u32) as usize]
    }

    /// Runs a round of the search.
    ///
    /// # Errors
    /// [`FillError::Canceled`].
    pub fn improve(
        &mut self,
        features: &[Feature],
        round: &Round,
        poll: Poll,
    ) -> Result<(), FillError> {
        let mut improved = self.matches.clone();
        let bands =
            improved.chunks_mut(PATCHES_PER_POLL).zip(self.targets.chunks(PATCHES_PER_POLL));
        for (band, targets) in bands {
            poll.check()?;
            let search = match self.side {
                3 => Self::best::<3>,
                5 => Self::best::<5>,
                _ => Self::best::<7>,
            };
            let pairs = band.par_iter_mut().zip(targets).with_min_len(CHUNK);
            pairs.for_each(|(best, at)| *best = search(self, features, round, *at, *best));
        }
        self.matches = improved;
        Ok(())
    }

    fn best<const SIDE: usize>(
        &self,
        features: &[Feature],
        round: &Round,
        target: u32,
        present: Match,
    ) -> Match {
        let (x, y) = self.place(target);
        let mut best = Match { cost: u32::MAX, ..present };
        let mut consider = |to_x: i32, to_y: i32| {
            let known = best.cost != u32::MAX && (to_x, to_y) == (best.x, best.y);
            if known || !self.is_source(to_x, to_y) {
                return best;
            }
            let away = length(to_x - x, to_y - y);
            let source = to_y as usize * self.width + to_x as usize;
            let extra = (round.distance_cost * away) as u32
                + self.context_cost.get(source).copied().unwrap_or(0);
            let limit = best.cost.saturating_sub(extra);
            let cost =
                extra + difference::<SIDE>(features, self.width, target as usize, source, limit);
            if cost < best.cost {
                best = Match { x: to_x, y: to_y, cost };
            }
            best
        };
        let mut found = consider(present.x, present.y);
        let step = round.step;
        for (dx, dy) in [(-step, 0), (step, 0), (0, -step), (0, step)] {
            if let Some(other) = self.target(x + dx, y + dy) {
                let other = self.matches[other];
                found = consider(other.x - dx, other.y - dy);
            }
        }
        let mut random = Random::new(round.salt, target);
        let (any_x, any_y) = self.place(self.any_source(&mut random));
        found = consider(any_x, any_y).min_by_cost(found);
        let mut radius = round.radius;
        while radius > 0 {
            let span = 2 * radius as u32 + 1;
            let dx = random.below(span) as i32 - radius;
            let dy = random.below(span) as i32 - radius;
            found = consider(found.x + dx, found.y + dy);
            radius /= 2;
        }
        found
    }
}

impl Match {
    fn min_by_cost(self, other: Self) -> Self {
        if other.cost < self.cost { other } else { self }
    }
}

/// Returns the Euclidean length of an offset. Faster than `hypot`, whose protection against overflow is not needed.
pub fn length(dx: i32, dy: i32) -> f32 {
    ((dx * dx + dy * dy) as f32).sqrt()
}

/// Returns, for each pixel, the least usable pixel of the patch that starts there. Separable: rows first, then columns.
fn worst_of_patches(level: &Level, side: usize) -> Vec<Pixel> {
    let (width, end) = (level.width, level.pixels.len());
    let across: Vec<Pixel> = (0..end)
        .into_par_iter()
        .map(|at| {
            let last = (at + side).min(at - at % width + width);
            level.pixels[at..last].iter().copied().fold(Pixel::Known, Pixel::max)
        })
        .collect();
    (0..end)
        .into_par_iter()
        .map(|at| {
            let column = (at..end).step_by(width).take(side);
            column.map(|at| across[at]).fold(Pixel::Known, Pixel::max)
        })
        .collect()
}

/// The random numbers of one patch in one round: `SplitMix64` (Steele et al., OOPSLA 2014).
struct Random(u64);

impl Random {
    fn new(salt: u64, at: u32) -> Self {
        let mut random = Self(salt ^ ((u64::from(at) << 32) | u64::from(at)));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..end`; `end` is at least 1.
    fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }
}
