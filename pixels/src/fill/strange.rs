//! What fills a hole looks like what is around the hole: a face in the far corner must not appear in a wall. So
//! every patch that may be copied costs a share of what sets it apart from the patches around the hole.

use rayon::prelude::*;

use super::level::{Level, Pixel, difference};
use super::search::Field;

/// How much of a patch's difference from the surroundings it costs to copy it.
const SHARE: f32 = 1.0;
/// The patches around the hole begin within this many sides of a patch.
const REACH: usize = 2;
/// Patches around the hole that are looked at; more are thinned out.
const AROUND: usize = 200;

/// For each pixel of `level` what copying the patch that begins there costs; empty for nothing.
pub fn measure(level: &Level, field: &Field) -> Vec<u32> {
    let (width, side) = (level.width, field.side);
    let reach = REACH * side;
    let mut near = vec![false; level.pixels.len()];
    for (at, _) in level.pixels.iter().enumerate().filter(|(_, pixel)| **pixel == Pixel::Hole) {
        let (x, y) = (at % width, at / width);
        for y in y.saturating_sub(reach + side / 2)..(y + reach - side / 2).min(level.height) {
            let first = y * width + x.saturating_sub(reach + side / 2);
            near[first..y * width + (x + reach - side / 2).min(width)].fill(true);
        }
    }
    let around = field.sources().iter().filter(|at| near[**at as usize]);
    let around: Vec<usize> = around.map(|at| *at as usize).collect();
    let stride = around.len().div_ceil(AROUND).max(1);
    let around: Vec<usize> = around.into_iter().step_by(stride).collect();
    if around.is_empty() {
        return Vec::new();
    }
    let features = level.features();
    let least = |at: usize| {
        let differ = |limit: u32, other: usize| match side {
            3 => difference::<3>(&features, width, at, other, limit).min(limit),
            5 => difference::<5>(&features, width, at, other, limit).min(limit),
            _ => difference::<7>(&features, width, at, other, limit).min(limit),
        };
        around.iter().fold(u32::MAX, |least, other| differ(least, *other))
    };
    let costs: Vec<u32> = field
        .sources()
        .par_iter()
        .map(|at| if near[*at as usize] { 0 } else { (SHARE * least(*at as usize) as f32) as u32 })
        .collect();
    let mut strangeness = vec![0; level.pixels.len()];
    field.sources().iter().zip(costs).for_each(|(at, cost)| strangeness[*at as usize] = cost);
    strangeness
}

/// The same at twice the size, for a level `width` pixels wide.
pub fn twice(coarse: &[u32], coarse_width: usize, width: usize, height: usize) -> Vec<u32> {
    if coarse.is_empty() {
        return Vec::new();
    }
    (0..width * height)
        .into_par_iter()
        .map(|at| coarse[at / width / 2 * coarse_width + at % width / 2])
        .collect()
}
