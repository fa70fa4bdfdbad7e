//! Finds the edge at full size, in a narrow band around the edge of the reduced copy.
//!
//! Outside the band, a pixel is selected if the pixel of the reduced copy that covers it is. In the band, both sides
//! grow toward each other, as in the reduced copy but by color alone. Paths in a band are short, so squares of the
//! picture are worked on by themselves, with a margin, and in parallel.

use rayon::prelude::*;

use super::edge::contrast;
use super::grow::{Label, grow};
use super::scene::{Rgb, Scene};
use crate::mask::{SIDE, distance_transform};

/// Pixels of the reduced copy on each side of its edge that the band covers.
const BAND: u16 = 2;
/// The side of a square, in pixels.
const SQUARE: usize = 256;

/// Returns the selection of the picture's pixels, given the selection of the reduced copy.
pub(super) fn refine(scene: &Scene, inside: &[bool]) -> Vec<bool> {
    let reduced = scene.reduced();
    let labels = labels(inside, reduced.width);
    let scale = |side: usize, reduced: usize| -> Vec<usize> {
        (0..side).map(|at| (at * reduced / side).min(reduced - 1)).collect()
    };
    let full = &scene.full;
    // A very narrow picture is reduced less across than along.
    let widest = full.width.div_ceil(reduced.width).max(full.height.div_ceil(reduced.height));
    let grid = Grid {
        labels: &labels,
        width: reduced.width,
        columns: scale(full.width, reduced.width),
        rows: scale(full.height, reduced.height),
        margin: 2 * usize::from(BAND) * widest,
    };
    let mut mask = vec![false; full.width * full.height];
    mask.par_chunks_mut(SQUARE * full.width).enumerate().for_each(|(index, strip)| {
        for left in (0..full.width).step_by(SQUARE) {
            grid.refine_square(full, strip, (left, index * SQUARE));
        }
    });
    mask
}

/// Returns the label of each pixel of the reduced copy; those near the edge are unknown.
fn labels(inside: &[bool], width: usize) -> Vec<Label> {
    let outside: Vec<_> = inside.iter().map(|inside| !inside).collect();
    let (to_inside, to_outside) =
        (distance_transform(inside, width), distance_transform(&outside, width));
    let label = |(to_inside, to_outside): (u16, u16)| {
        if to_inside > BAND * SIDE {
            Label::Outside
        } else if to_outside > BAND * SIDE {
            Label::Inside
        } else {
            Label::Unknown
        }
    };
    to_inside.into_iter().zip(to_outside).map(label).collect()
}

struct Grid<'a> {
    labels: &'a [Label],
    /// The width of the reduced copy.
    width: usize,
    /// The column and the row of the reduced copy that cover each column and row of the picture.
    columns: Vec<usize>,
    rows: Vec<usize>,
    margin: usize,
}

impl Grid<'_> {
    /// Fills in one square of the mask. `strip` holds the rows of the mask from `top` on.
    fn refine_square(&self, full: &Rgb, strip: &mut [bool], (left, top): (usize, usize)) {
        let (right, bottom) = ((left + SQUARE).min(full.width), (top + SQUARE).min(full.height));
        let label = |x: usize, y: usize| self.labels[self.rows[y] * self.width + self.columns[x]];
        let first = label(left, top);
        let is_uniform = first != Label::Unknown
            && (self.rows[top]..=self.rows[bottom - 1]).all(|row| {
                let columns = self.columns[left]..=self.columns[right - 1];
                self.labels[row * self.width..][columns].iter().all(|label| *label == first)
            });
        if is_uniform {
            for row in strip.chunks_exact_mut(full.width) {
                row[left..right].fill(first == Label::Inside);
            }
            return;
        }
        let (outer_left, outer_top) =
            (left.saturating_sub(self.margin), top.saturating_sub(self.margin));
        let outer_right = (right + self.margin).min(full.width);
        let outer_bottom = (bottom + self.margin).min(full.height);
        let width = outer_right - outer_left;
        let mut labels = Vec::with_capacity(width * (outer_bottom - outer_top));
        for y in outer_top..outer_bottom {
            labels.extend((outer_left..outer_right).map(|x| label(x, y)));
        }
        let in_picture =
            |at: usize| (outer_top + at / width) * full.width + outer_left + at % width;
        grow(&mut labels, width, |_, from, to| {
            1 + contrast(full.difference(in_picture(from), in_picture(to)))
        });
        for (y, row) in strip.chunks_exact_mut(full.width).enumerate() {
            let start = (top + y - outer_top) * width + left - outer_left;
            for (selected, label) in row[left..right].iter_mut().zip(&labels[start..]) {
                *selected = *label == Label::Inside;
            }
        }
    }
}
