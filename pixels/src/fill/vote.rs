//! From matches to colours: every pixel of the hole is covered by many patches, and each of their matches
//! says which colour it should have (Wexler, Shechtman and Irani, "Space-Time Completion of Video", PAMI
//! 2007).

use rayon::prelude::*;

use super::level::{Level, Sample};
use super::search::{Field, Match};

/// How fast trust falls with a patch's depth in the hole, for each pixel.
const TRUST_PER_PIXEL: f32 = 1.0 / 1.3;
/// Trust never falls lower, so that numbers stay numbers in the middle of a large hole.
const LEAST_TRUST: f32 = 1e-12;

/// What one patch says about a pixel: which pixel to take and with what weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Voice {
    /// Columns and rows from the pixel to the one to take.
    pub offset: (i32, i32),
    pub weight: f32,
}

/// How far a patch at each of `field.targets` is to be trusted, by the depth of its centre in the hole.
pub fn trust(field: &Field, level: &Level, depth: &[f32]) -> Vec<f32> {
    let centre = field.side / 2 * (level.width + 1);
    let patches = field.targets.par_iter();
    patches.map(|at| TRUST_PER_PIXEL.powf(depth[*at as usize + centre]).max(LEAST_TRUST)).collect()
}

/// What the patches that cover the pixel `at` say. `spread` is how much more than the third quartile of
/// their costs a patch may cost before it counts little: the smaller, the fewer patches decide.
pub fn voices(
    field: &Field,
    trust: &[f32],
    width: usize,
    at: u32,
    spread: f32,
    voices: &mut Vec<Voice>,
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
    voices.clear();
    if found.is_empty() {
        return;
    }
    let mut costs = [0.0_f32; 49];
    costs.iter_mut().zip(&*found).for_each(|(cost, (of, ..))| *cost = *of);
    let costs = &mut costs[..count];
    let (_, quartile, _) = costs.select_nth_unstable_by(count * 3 / 4, f32::total_cmp);
    let quartile = *quartile;
    let least = found.iter().map(|(cost, ..)| *cost).fold(f32::MAX, f32::min);
    // The level's rounding is worth this much, so equal patches stay equal.
    let scale = 1.0 / (spread * (quartile + 64.0));
    voices.extend(found.iter().map(|(cost, trust, offset)| Voice {
        offset: *offset,
        weight: trust * ((least - cost) * scale).exp().max(1e-6),
    }));
}

/// Gives every pixel of `hole` the mean of what its patches say.
pub fn mean(level: &mut Level, field: &Field, hole: &[u32], trust: &[f32], spread: f32) {
    let width = level.width;
    let samples: Vec<Option<Sample>> = hole
        .par_iter()
        .with_min_len(256)
        .map_init(Vec::new, |said, at| {
            voices(field, trust, width, *at, spread, said);
            let (mut sum, mut weights) = ([0.0_f32; 5], 0.0);
            for voice in &*said {
                let from = taken(*at, voice.offset, width);
                (0..5).for_each(|c| sum[c] += voice.weight * level.samples[from][c]);
                weights += voice.weight;
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

/// The offset on which the patches of every pixel of `hole` agree most; (0, 0) where none covers it.
pub fn offsets(
    level: &Level,
    field: &Field,
    hole: &[u32],
    trust: &[f32],
    spread: f32,
) -> Vec<(i32, i32)> {
    hole.par_iter()
        .with_min_len(256)
        .map_init(Vec::new, |said: &mut Vec<Voice>, at| {
            voices(field, trust, level.width, *at, spread, said);
            // Equal offsets side by side; ties go to the smaller, whatever the order was.
            said.sort_by_key(|voice| voice.offset);
            let groups = said.chunk_by(|a, b| a.offset == b.offset);
            let sums = groups.map(|group| Voice {
                weight: group.iter().map(|voice| voice.weight).sum(),
                ..group[0]
            });
            let best = sums.fold(Voice { weight: -1.0, ..Voice::default() }, |best, next| {
                if next.weight > best.weight { next } else { best }
            });
            best.offset
        })
        .collect()
}

/// The pixel that `at` takes its colour from.
const fn taken(at: u32, offset: (i32, i32), width: usize) -> usize {
    (at as i64 + offset.1 as i64 * width as i64 + offset.0 as i64) as usize
}
