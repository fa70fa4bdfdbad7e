//! Morphology of binary images: connected components, holes and distances. An image is one flag per pixel, rows from
//! the top.

use std::collections::VecDeque;

/// The weights of the 5-7-11 chamfer distance for a straight step, a diagonal step and a knight's move (Borgefors,
/// "Distance Transformations in Digital Images", 1986). Distances are in fifths of a pixel, with an error below 2 %.
pub(crate) const SIDE: u16 = 5;
pub(super) const DIAGONAL: u16 = 7;
pub(super) const KNIGHT: u16 = 11;

/// Collects in `piece` the pixels not yet `seen` that are connected with `start` (8-connectivity), and marks them as
/// seen.
pub(crate) fn connected_component(
    start: usize,
    seen: &mut [bool],
    width: usize,
    piece: &mut Vec<usize>,
) {
    let height = seen.len() / width;
    piece.clear();
    piece.push(start);
    seen[start] = true;
    let mut next = 0;
    while let Some(&at) = piece.get(next) {
        next += 1;
        let (x, y) = (at % width, at / width);
        for y in y.saturating_sub(1)..(y + 2).min(height) {
            for x in x.saturating_sub(1)..(x + 2).min(width) {
                let beside = y * width + x;
                if !seen[beside] {
                    seen[beside] = true;
                    piece.push(beside);
                }
            }
        }
    }
}

/// Fills holes (4-connectivity, not touching the border) of at most `max_pixels` pixels.
pub(crate) fn fill_holes(inside: &mut [bool], width: usize, max_pixels: usize) {
    let mut seen = inside.to_vec();
    let height = inside.len() / width;
    // A hole that is too large is only traversed. Not collecting its pixels saves memory: most of a picture is
    // outside the mask.
    let (mut hole, mut ahead) = (Vec::new(), VecDeque::new());
    for start in 0..seen.len() {
        if seen[start] {
            continue;
        }
        hole.clear();
        ahead.push_back(start);
        seen[start] = true;
        let mut is_open = false;
        while let Some(at) = ahead.pop_front() {
            if hole.len() <= max_pixels {
                hole.push(at);
            }
            let (x, y) = (at % width, at / width);
            is_open |= x == 0 || y == 0 || x + 1 == width || y + 1 == height;
            let beside = [
                (x > 0).then(|| at - 1),
                (x + 1 < width).then(|| at + 1),
                (y > 0).then(|| at - width),
                (y + 1 < height).then(|| at + width),
            ];
            for at in beside.into_iter().flatten() {
                if !seen[at] {
                    seen[at] = true;
                    ahead.push_back(at);
                }
            }
        }
        if !is_open && hole.len() <= max_pixels {
            for at in &hole {
                inside[*at] = true;
            }
        }
    }
}

/// Returns the distance from each pixel to the nearest one inside, in fifths of a pixel: two passes of a 5 × 5
/// chamfer.
pub(crate) fn distance_transform(inside: &[bool], width: usize) -> Vec<u16> {
    let far = u16::MAX / 2;
    let mut distance: Vec<u16> = inside.iter().map(|on| if *on { 0 } else { far }).collect();
    let height = inside.len() / width;
    let forward: [(isize, isize, u16); 8] = [
        (-1, 0, SIDE),
        (-1, -1, DIAGONAL),
        (0, -1, SIDE),
        (1, -1, DIAGONAL),
        (-2, -1, KNIGHT),
        (-1, -2, KNIGHT),
        (1, -2, KNIGHT),
        (2, -1, KNIGHT),
    ];
    let mut relax = |x: usize, y: usize, sign: isize| {
        let at = y * width + x;
        let mut best = distance[at];
        if best == 0 {
            return;
        }
        for (dx, dy, step) in forward {
            let (x, y) = (x.checked_add_signed(dx * sign), y.checked_add_signed(dy * sign));
            if let (Some(x), Some(y)) = (x, y)
                && x < width
                && y < height
            {
                best = best.min(distance[y * width + x].saturating_add(step));
            }
        }
        distance[at] = best;
    };
    for y in 0..height {
        for x in 0..width {
            relax(x, y, 1);
        }
    }
    for y in (0..height).rev() {
        for x in (0..width).rev() {
            relax(x, y, -1);
        }
    }
    distance
}
