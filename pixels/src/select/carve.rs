//! Removes from a selection what negative points mark.

use super::Marks;
use super::edge::{CLICK, contrast, disc};
use super::grow::{Label, grow};
use super::region::Point;
use super::scene::Rgb;
use crate::mask::connected_component;

/// A negative point reaches at most this share of the selection's longer side.
const REACH: f32 = 0.25;

/// Removes the parts of a selection that negative points mark: a separate part as a whole, and within a part the pixels
/// that are nearer to a negative point than to the rest, measured across edges. A negative point reaches half way to
/// the next positive one, and at most a quarter of the selection's size.
pub(super) fn take_away(picture: &Rgb, inside: &mut [bool], marks: &Marks) {
    let width = picture.width;
    let index = |point: &Point| point.y as usize * width + point.x as usize;
    let on: Vec<_> =
        marks.negative.iter().filter(|point| is_near(inside, width, **point)).collect();
    if on.is_empty() {
        return;
    }
    let Some((longest, parts)) = parts(inside, width) else { return };
    let is_wanted =
        |part: &Vec<usize>| marks.positive.iter().any(|point| part.contains(&index(point)));
    let largest = parts.iter().map(Vec::len).max().unwrap_or(0);
    for point in on {
        let middle = index(point);
        let own = parts.iter().find(|part| part.contains(&middle));
        if let Some(part) = own
            && !is_wanted(part)
            && (part.len() < largest || parts.iter().any(is_wanted))
        {
            for at in part {
                inside[*at] = false;
            }
            continue;
        }
        let nearest =
            marks.positive.iter().map(|other| distance(*point, *other)).min_by(f32::total_cmp);
        let reach = nearest.map_or(f32::MAX, |nearest| nearest / 2.0).min(longest * REACH);
        take_away_around(picture, inside, *point, (reach as u32).max(CLICK + 1));
    }
}

/// Removes the pixels that a path from `point` reaches at a lower cost than a path from the rest of the selection,
/// within `reach`.
fn take_away_around(picture: &Rgb, inside: &mut [bool], point: Point, reach: u32) {
    let width = picture.width;
    let mut labels: Vec<_> =
        inside.iter().map(|inside| if *inside { Label::Inside } else { Label::Outside }).collect();
    // Pixels that are already outside must not grow into the selection.
    let domain: Vec<_> = disc(point, reach, width, inside.len()).filter(|at| inside[*at]).collect();
    for at in &domain {
        labels[*at] = Label::Unknown;
    }
    for at in disc(point, CLICK, width, inside.len()) {
        labels[at] = Label::Outside;
    }
    let from_point = |at: usize| {
        distance(point, Point { x: (at % width) as u32, y: (at / width) as u32 }) <= CLICK as f32
    };
    let before = inside.to_vec();
    let is_border = |at: usize| !before[at] && !from_point(at);
    grow(&mut labels, width, |_, from, to| {
        // Steps from the border of the selection cost the most, because the border is not a seed.
        if is_border(from) {
            super::grow::MAX_COST
        } else {
            1 + contrast(picture.difference(from, to))
        }
    });
    for at in domain {
        inside[at] = labels[at] == Label::Inside;
    }
}

/// Returns the longer side of the selection's bounding box, and its connected parts.
fn parts(inside: &[bool], width: usize) -> Option<(f32, Vec<Vec<usize>>)> {
    let mut seen: Vec<_> = inside.iter().map(|inside| !inside).collect();
    let mut parts = Vec::new();
    let (mut x, mut y) = ((usize::MAX, 0), (usize::MAX, 0));
    for start in 0..seen.len() {
        if !seen[start] {
            let mut part = Vec::new();
            connected_component(start, &mut seen, width, &mut part);
            for at in &part {
                x = (x.0.min(at % width), x.1.max(at % width));
                y = (y.0.min(at / width), y.1.max(at / width));
            }
            parts.push(part);
        }
    }
    (!parts.is_empty()).then(|| ((x.1 - x.0).max(y.1 - y.0) as f32 + 1.0, parts))
}

fn is_near(inside: &[bool], width: usize, point: Point) -> bool {
    disc(point, CLICK, width, inside.len()).any(|at| inside[at])
}

fn distance(a: Point, b: Point) -> f32 {
    (a.x.abs_diff(b.x) as f32).hypot(a.y.abs_diff(b.y) as f32)
}
