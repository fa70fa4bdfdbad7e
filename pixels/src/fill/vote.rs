//! Voting: many patches cover each pixel of the hole, and the match of each votes for a color (Wexler, Shechtman and
//! Irani, "Space-Time Completion of Video", PAMI 2007).

use rayon::prelude::*;

use super::level::{Level, Sample};
use super::search::{Field, Match};

/// The factor by which trust falls per pixel of depth in the hole.
const TRUST_PER_PIXEL: f32 = 1.0 / 1.3;
/// The lowest trust, which avoids an underflow in the middle of a large hole.
const LEAST_TRUST: f32 = 1e-12;

#[derive(Clone, Copy, Debug, Default)]
struct Vote {
    /// The offset (columns, rows) from the pixel to its source.
    offset: (i32, i32),
    weight: f32,
}

/// Returns the trust in each of `field.targets`, above 0 and up to 1; it falls with the depth of the patch's center in
/// the hole.
pub fn trust(field: &Field, level: &Level, depth: &[f32]) -> Vec<f32> {
    let center = field.side / 2 * (level.width + 1);
    let patches = field.targets.par_iter();
    patches.map(|at| TRUST_PER_PIXEL.powf(depth[*at as usize + center]).max(LEAST_TRUST)).collect()
}

/// Collects the votes on the pixel `at` from all patches that cover it. A vote's weight falls to 1/e when its cost
/// exceeds the lowest cost by `spread` times the third quartile of the costs: the smaller the spread, the fewer patches
/// decide.
fn collect_votes(
    field: &Field,
    trust: &[f32],
    width: usize,
    at: u32,
    spread: f32,
    votes: &mut Vec<Vote>,
) {
    let (x, y) = ((at as usize % width) as i32, (at as usize / width) as i32);
    let side = field.side as i32;
    let mut found: [(f32, f32, (i32, i32)); 49] = [(0.0, 0.0, (0, 0)); 49];
    let mut count = 0;
    for dy in 0..side {
        for dx in 0..side {
            let (left, top) = (x - dx, y - dy);
            if let Some(target) = field.target(left, top) {
                let Match { x, y, cost } = field.matches[target];
                found[count] = (cost as f32, trust[target], (x - left, y - top));
                count += 1;
            }
        }
    }
    let found = &mut found[..count];
    votes.clear();
    if found.is_empty() {
        return;
    }
    let mut costs = [0.0_f32; 49];
    costs.iter_mut().zip(&*found).for_each(|(cost, (of, ..))| *cost = *of);
    let costs = &mut costs[..count];
    let (_, quartile, _) = costs.select_nth_unstable_by(count * 3 / 4, f32::total_cmp);
    let quartile = *quartile;
    let least = found.iter().map(|(cost, ..)| *cost).fold(f32::MAX, f32::min);
    // The constant covers rounding in the features, so that equal patches get equal weights.
    let scale = 1.0 / (spread * (quartile + 64.0));
    votes.extend(found.iter().map(|(cost, trust, offset)| Vote {
        offset: *offset,
        weight: trust * ((least - cost) * scale).exp().max(1e-6),
    }));
}

/// Sets every pixel of `hole` to the weighted mean of its votes.
pub fn mean(level: &mut Level, field: &Field, hole: &[u32], trust: &[f32], spread: f32) {
    let width = level.width;
    let samples: Vec<Option<Sample>> = hole
        .par_iter()
        .with_min_len(256)
        .map_init(Vec::new, |votes, at| {
            collect_votes(field, trust, width, *at, spread, votes);
            let (mut sum, mut weights) = ([0.0_f32; 5], 0.0);
            for vote in &*votes {
                let from = source(*at, vote.offset, width);
                (0..5).for_each(|c| sum[c] += vote.weight * level.samples[from][c]);
                weights += vote.weight;
            }
            (weights > 0.0).then(|| sum.map(|value| value / weights))
        })
        .collect();
    write(level, hole, &samples);
}

fn write(level: &mut Level, hole: &[u32], samples: &[Option<Sample>]) {
    for (at, sample) in hole.iter().zip(samples) {
        if let Some(sample) = sample {
            level.samples[*at as usize] = *sample;
        }
    }
}

/// Returns the offset with the most votes for every pixel of `hole`; (0, 0) for a pixel that no patch covers.
pub fn offsets(
    level: &Level,
    field: &Field,
    hole: &[u32],
    trust: &[f32],
    spread: f32,
) -> Vec<(i32, i32)> {
    hole.par_iter()
        .with_min_len(256)
        .map_init(Vec::new, |votes: &mut Vec<Vote>, at| {
            collect_votes(field, trust, level.width, *at, spread, votes);
            // Groups equal offsets; ties go to the smaller offset, independent of the order.
            votes.sort_by_key(|vote| vote.offset);
            let groups = votes.chunk_by(|a, b| a.offset == b.offset);
            let sums = groups.map(|group| Vote {
                weight: group.iter().map(|vote| vote.weight).sum(),
                ..group[0]
            });
            let best = sums.fold(Vote { weight: -1.0, ..Vote::default() }, |best, next| {
                if next.weight > best.weight { next } else { best }
            });
            best.offset
        })
        .collect()
}

const fn source(at: u32, offset: (i32, i32), width: usize) -> usize {
    (at as i64 + offset.1 as i64 * width as i64 + offset.0 as i64) as usize
}
