//! The context cost: a hole should be filled with what surrounds it, so that a face in a far corner does not appear in
//! a wall. Every source patch costs a share of its difference from the patches around the hole.

use rayon::prelude::*;

use super::level::{Level, Pixel, difference};
use super::search::Field;

/// The cost of copying a patch, as a share of its difference from the surroundings.
const SHARE: f32 = 1.0;
/// Patches that start within this many patch sides of the hole count as its surroundings.
const RADIUS: usize = 2;
/// The most surrounding patches to compare with; from more, only every n-th is used.
const AROUND: usize = 200;

/// Returns the extra cost of copying the patch that starts at each pixel of `level`; empty if no source patch is near the
/// hole.
pub fn measure(level: &Level, field: &Field) -> Vec<u32> {
    let (width, side) = (level.width, field.side);
    let radius = RADIUS * side;
    let mut near = vec![false; level.pixels.len()];
    for (at, _) in level.pixels.iter().enumerate().filter(|(_, pixel)| **pixel == Pixel::Hole) {
        let (x, y) = (at % width, at / width);
        for y in y.saturating_sub(radius + side / 2)..(y + radius - side / 2).min(level.height) {
            let first = y * width + x.saturating_sub(radius + side / 2);
            near[first..y * width + (x + radius - side / 2).min(width)].fill(true);
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
    let mut context_cost = vec![0; level.pixels.len()];
    field.sources().iter().zip(costs).for_each(|(at, cost)| context_cost[*at as usize] = cost);
    context_cost
}

/// Returns the costs of a coarse level for a level twice as large, `width` × `height` pixels.
pub fn double(coarse: &[u32], coarse_width: usize, width: usize, height: usize) -> Vec<u32> {
    if coarse.is_empty() {
        return Vec::new();
    }
    (0..width * height)
        .into_par_iter()
        .map(|at| coarse[at / width / 2 * coarse_width + at % width / 2])
        .collect()
}
