//! Splits a hole into regions: distant parts are filled one after the other, each with only as much context as it
//! needs.

use std::ops::Range;

/// The side of a grid cell in pixels. Parts of the hole closer than about two cells are filled together.
const CELL: usize = 16;
/// The context of a part on each side, in pixels: `CONTEXT_SHARE` of its longer side plus `CONTEXT_EXTRA`, at most
/// `CONTEXT_MAX`.
const CONTEXT_SHARE: f32 = 1.2;
const CONTEXT_EXTRA: usize = 40;
const CONTEXT_MAX: usize = 512;
/// The largest context of a piece of a thin part that was cut up.
const PIECE_CONTEXT_MAX: usize = 96;
/// A thin part longer than this is cut into pieces of this length: a scratch across a photo is repaired from what is
/// beside it.
const LONGEST: usize = 384;
/// A part is wide if it contains a square of this many cells per side; otherwise it is thin.
const WIDE_CELLS: usize = 3;

/// A part of the hole with its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The columns and rows to search, context included.
    pub x: Range<usize>,
    pub y: Range<usize>,
    /// The columns and rows in which to fill the hole.
    pub core_x: Range<usize>,
    pub core_y: Range<usize>,
}

/// Returns the regions that together cover a hole.
pub fn regions(hole: &[bool], width: usize, height: usize) -> Vec<Region> {
    let (columns, rows) = (width.div_ceil(CELL), height.div_ceil(CELL));
    let mut taken = vec![false; columns * rows];
    for (y, row) in hole.chunks_exact(width).enumerate() {
        for (x, _) in row.iter().enumerate().filter(|(_, hole)| **hole) {
            taken[y / CELL * columns + x / CELL] = true;
        }
    }
    let mut regions = Vec::new();
    let mut open = taken.clone();
    for start in 0..open.len() {
        if open[start] {
            let part = take_component(&mut open, start, columns, rows);
            add(&mut regions, &part, &taken, (columns, rows), (width, height));
        }
    }
    regions
}

/// Removes the cells connected with `start` (8-connectivity) from `open` and returns them.
fn take_component(open: &mut [bool], start: usize, columns: usize, rows: usize) -> Vec<usize> {
    let (mut part, mut pending) = (Vec::new(), vec![start]);
    open[start] = false;
    while let Some(cell) = pending.pop() {
        part.push(cell);
        let (x, y) = (cell % columns, cell / columns);
        for y in y.saturating_sub(1)..(y + 2).min(rows) {
            for x in x.saturating_sub(1)..(x + 2).min(columns) {
                if std::mem::take(&mut open[y * columns + x]) {
                    pending.push(y * columns + x);
                }
            }
        }
    }
    part
}

fn add(
    regions: &mut Vec<Region>,
    part: &[usize],
    taken: &[bool],
    (columns, rows): (usize, usize),
    (width, height): (usize, usize),
) {
    let span = |of: &dyn Fn(usize) -> usize| {
        let least = part.iter().map(|cell| of(*cell)).min().unwrap_or(0);
        let most = part.iter().map(|cell| of(*cell)).max().unwrap_or(0);
        least * CELL..(most + 1) * CELL
    };
    let (x, y) = (span(&|cell| cell % columns), span(&|cell| cell / columns));
    let is_wide = part.iter().any(|cell| {
        let (x, y) = (cell % columns, cell / columns);
        x + WIDE_CELLS <= columns
            && y + WIDE_CELLS <= rows
            && (0..WIDE_CELLS * WIDE_CELLS)
                .all(|at| taken[(y + at / WIDE_CELLS) * columns + x + at % WIDE_CELLS])
    });
    let piece = if is_wide { x.len().max(y.len()) } else { LONGEST };
    for top in y.clone().step_by(piece) {
        for left in x.clone().step_by(piece) {
            let core_x = left..(left + piece).min(x.end).min(width);
            let core_y = top..(top + piece).min(y.end).min(height);
            let side = core_x.len().max(core_y.len()) as f32;
            let max = if is_wide { CONTEXT_MAX } else { PIECE_CONTEXT_MAX };
            let context = ((side * CONTEXT_SHARE) as usize + CONTEXT_EXTRA).min(max);
            let around = |core: &Range<usize>, end: usize| {
                core.start.saturating_sub(context)..(core.end + context).min(end)
            };
            regions.push(Region {
                x: around(&core_x, width),
                y: around(&core_y, height),
                core_x,
                core_y,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(width: usize, height: usize, is_hole: impl Fn(usize, usize) -> bool) -> Vec<bool> {
        (0..width * height).map(|at| is_hole(at % width, at / width)).collect()
    }

    /// Returns the number of cores that contain each pixel of the hole.
    fn covered(hole: &[bool], width: usize, height: usize) -> Vec<usize> {
        let regions = regions(hole, width, height);
        let holes = hole.iter().enumerate().filter(|(_, hole)| **hole);
        let times = holes.map(|(at, _)| {
            let inside = |region: &&Region| {
                region.core_x.contains(&(at % width)) && region.core_y.contains(&(at / width))
            };
            regions.iter().filter(inside).count()
        });
        times.collect()
    }

    #[test]
    fn distant_parts_are_filled_one_by_one() {
        let hole = marked(900, 40, |x, y| y < 10 && !(10..=880).contains(&x));
        let parts = regions(&hole, 900, 40);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].x, 0..75);
        assert_eq!(parts[1].core_x, 880..900);
    }

    #[test]
    fn a_scratch_is_cut_up_and_an_object_is_not() {
        let scratch = marked(2000, 1000, |x, y| x / 2 == y);
        let parts = regions(&scratch, 2000, 1000);
        assert!(parts.len() > 5, "{}", parts.len());
        assert!(parts.iter().all(|part| part.x.len() * part.y.len() <= 576 * 576));
        let object = marked(2000, 1000, |x, y| (200..1200).contains(&x) && (100..900).contains(&y));
        assert_eq!(regions(&object, 2000, 1000).len(), 1);
    }

    #[test]
    fn every_pixel_of_the_hole_is_filled_at_least_once() {
        let far = marked(500, 300, |x, y| (x * 7919 + y * 104_729) % 997 == 0);
        let cross = marked(1000, 1000, |x, y| x == y || x + y == 999 || y == 500);
        for (hole, width, height) in [(far, 500, 300), (cross, 1000, 1000)] {
            assert!(covered(&hole, width, height).iter().all(|times| *times >= 1));
        }
    }
}
