//! Shapes: what hangs together, what is enclosed and how far apart things are, among truths in rows from the top.

use std::collections::VecDeque;

/// The chamfer weights of a step to the side, to the diagonal and of a knight's move (Borgefors 1986):
/// distances are fifths of a pixel, off by less than 2 %.
pub(super) const SIDE: u16 = 5;
pub(super) const DIAGONAL: u16 = 7;
pub(super) const KNIGHT: u16 = 11;

/// The pixels that hang together with `start`, corners included, and are not seen yet; they are then.
pub(super) fn connected(start: usize, seen: &mut [bool], width: usize, piece: &mut Vec<usize>) {
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

/// Fills what is enclosed by painted pixels and no larger than `most` pixels.
pub(super) fn fill_holes(inside: &mut [bool], width: usize, most: usize) {
    let mut seen = inside.to_vec();
    let height = inside.len() / width;
    // What is too large is only walked through: of the rest of a picture nothing has to be remembered but
    // where the walk stands.
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
            if hole.len() <= most {
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
        if !is_open && hole.len() <= most {
            for at in &hole {
                inside[*at] = true;
            }
        }
    }
}

/// How far each pixel is from the next one inside, in fifths of a pixel: two passes of a 5 × 5 chamfer.
pub(super) fn distances(inside: &[bool], width: usize) -> Vec<u16> {
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
