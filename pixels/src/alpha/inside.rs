//! Makes the inside of a subject opaque.
//!
//! A segmentation map states how certain the net is, not how transparent the subject is: inside a dark coat or between
//! stripes it falls to 0.8, and a new background would shine through. A cell becomes opaque as far as all cells around it
//! belong to the subject. Edges, hair and strings are near cells of the background, so they stay as they are.

use std::ops::Range;

use rayon::prelude::*;

/// The neighborhood reaches `1 / REACH` of the map's longer side in each direction, but at least one cell.
const REACH: usize = 128;
/// Below the start, the least alpha of a neighborhood leaves its cell unchanged; from the end on, the cell is opaque. On 56
/// composites of seven subjects, a lower range gained a little more on average and lost more at worst.
const RANGE: Range<f32> = 0.6..0.8;

/// Raises the cells inside of a subject to 1. `map` holds alpha, 0..=1, row by row of `columns`.
pub(super) fn make_opaque(map: &mut [f32], columns: usize) {
    let rows = map.len() / columns;
    let least = least_around(map, columns, (columns.max(rows) / REACH).max(1));
    for (alpha, least) in map.iter_mut().zip(least) {
        let share = ((least - RANGE.start) / (RANGE.end - RANGE.start)).clamp(0.0, 1.0);
        // Without `mul_add`, which calls a function where the processor is not known to have it.
        let share = share * share * (3.0 - share - share);
        *alpha += (1.0 - *alpha) * share;
    }
}

/// Returns the least value up to `reach` cells away from each cell, in a square.
fn least_around(map: &[f32], columns: usize, reach: usize) -> Vec<f32> {
    let mut across = vec![0.0; map.len()];
    across.par_chunks_mut(columns).zip(map.par_chunks(columns)).for_each(|(out, row)| {
        let last = columns - 1;
        out.copy_from_slice(row);
        for shift in 1..=reach.min(last) {
            let (left, right) = (&row[..columns - shift], &row[shift..]);
            lower(&mut out[shift..], left);
            lower(&mut out[..columns - shift], right);
        }
    });
    let rows = map.len() / columns;
    let mut least = vec![0.0; map.len()];
    least.par_chunks_mut(columns).enumerate().for_each(|(row, out)| {
        let near = row.saturating_sub(reach)..(row + reach + 1).min(rows);
        out.fill(f32::INFINITY);
        for other in across[near.start * columns..near.end * columns].chunks_exact(columns) {
            lower(out, other);
        }
    });
    least
}

/// Lowers each value to the value of `other`, if that is less.
fn lower(values: &mut [f32], other: &[f32]) {
    for (value, other) in values.iter_mut().zip(other) {
        *value = value.min(*other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: usize = 256;

    /// Returns a map of one value inside a disc of 60 cells, 0 outside, with an edge of so many cells between.
    fn disc(inside: f32, edge: f32) -> Vec<f32> {
        let at = |index: usize| ((index % SIDE) as f32 - 128.0, (index / SIDE) as f32 - 128.0);
        let alpha =
            |(x, y): (f32, f32)| inside * ((60.0 - x.hypot(y)) / edge + 0.5).clamp(0.0, 1.0);
        (0..SIDE * SIDE).map(|index| alpha(at(index))).collect()
    }

    fn made_opaque(mut map: Vec<f32>) -> Vec<f32> {
        make_opaque(&mut map, SIDE);
        map
    }

    #[test]
    fn the_inside_of_a_subject_becomes_opaque_and_its_edge_stays() {
        for edge in [1.0, 10.0] {
            let before = disc(0.85, edge);
            let after = made_opaque(before.clone());
            let changed = |(index, (before, after)): (usize, (&f32, &f32))| {
                let (x, y) = ((index % SIDE) as f32 - 128.0, (index / SIDE) as f32 - 128.0);
                let depth = 60.0 - edge / 2.0 - x.hypot(y);
                match depth {
                    // Diagonally, the square reaches further.
                    3.0.. => assert!((after - 1.0).abs() < 1e-6, "{after} at a depth of {depth}"),
                    ..0.0 => assert!(after - before < 0.12, "{before} to {after}"),
                    _ => {}
                }
            };
            before.iter().zip(&after).enumerate().for_each(changed);
        }
    }

    #[test]
    fn glass_hair_and_empty_maps_stay_as_they_are() {
        let glass = disc(0.55, 4.0);
        assert!(made_opaque(glass.clone()) == glass, "glass");
        // Lines narrower than a neighborhood.
        let hair: Vec<f32> =
            (0..SIDE * SIDE).map(|index| if index % 4 / 2 == 1 { 0.9 } else { 0.2 }).collect();
        assert!(made_opaque(hair.clone()) == hair, "hair");
        let empty = vec![0.0; SIDE * SIDE];
        assert!(made_opaque(empty.clone()) == empty, "nothing");
    }

    #[test]
    fn a_subject_that_the_border_cuts_is_opaque_up_to_it() {
        assert!(made_opaque(vec![0.9; SIDE * SIDE]) == vec![1.0; SIDE * SIDE]);
        let mut slim = vec![0.9; 3];
        make_opaque(&mut slim, 1);
        assert_eq!(slim, [1.0; 3]);
    }
}
