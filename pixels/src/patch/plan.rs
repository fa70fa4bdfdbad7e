//! Plans the crops for a mask: one for strokes near each other, each with enough context for the model, and several for
//! a long thin stroke that one crop would show too small.

use super::canvas::{Canvas, Fit};
use crate::mask::EffectiveMask;
use crate::tile::Region;

/// The number of grid cells along the longer side of the mask, fine enough to separate distant strokes.
const CELLS: usize = 128;

/// The most pieces of strokes, and the most crops that are preferred to a single one only because it would be smaller.
const MAX_PIECES: usize = 16;

/// Several crops pay off if a single one would be scaled down more than this many times as much.
const MUCH_SMALLER: f32 = 1.25;

/// A stroke is thin if the mask covers at most one part in this many of each piece's crop; the rest is context.
const CONTEXT_SHARE: u64 = 4;

/// Returns the regions of a picture of `size` (width, height) that cover a mask with its context: one for strokes near
/// each other, several for strokes far apart.
///
/// With `cuts_strokes`, a long thin stroke on a canvas of fixed size is painted in pieces, in more detail. That is for
/// fixes that continue the surroundings: each piece of what a prompt describes would be a thing of its own.
pub fn plan(
    mask: &EffectiveMask,
    size: (u32, u32),
    canvas: Canvas,
    cuts_strokes: bool,
) -> Vec<Region> {
    let (cells, cell_side) = cells(mask);
    let mut boxes: Vec<_> = cells.iter().map(|cell| cell.bounds).collect();
    // Joins boxes whose contexts touch, and boxes that another box's crop would cut.
    merge(&mut boxes, |a, b| {
        a.with_context(size).touches(b.with_context(size))
            || b.touches(Box::of(&a.region(size, canvas)))
            || a.touches(Box::of(&b.region(size, canvas)))
    });
    let has_fixed_size = canvas.fit != Fit::Keep;
    let Some(whole) = boxes.iter().copied().reduce(Box::joined) else { return Vec::new() };
    if has_fixed_size && cuts_strokes {
        boxes = cut(&boxes, &cells, cell_side, size, canvas);
    }
    let regions: Vec<_> = boxes.iter().map(|part| part.region(size, canvas)).collect();
    let whole = whole.region(size, canvas);
    // A run on a fixed canvas costs the same for any crop, otherwise its cost grows with the area.
    let shows_more = has_fixed_size
        && regions.len() <= MAX_PIECES
        && regions.iter().all(|region| is_much_smaller(region, &whole));
    let area = |region: &Region| u64::from(region.width()) * u64::from(region.height());
    if shows_more || regions.iter().map(area).sum::<u64>() * 2 <= area(&whole) {
        regions
    } else {
        vec![whole]
    }
}

/// Returns whether a canvas shows `part` in more detail than `whole`.
fn is_much_smaller(part: &Region, whole: &Region) -> bool {
    let longest = |region: &Region| region.width().max(region.height()) as f32;
    longest(part) * MUCH_SMALLER < longest(whole)
}

/// The part of a mask in a square of the grid.
struct Cell {
    bounds: Box,
    pixels: u64,
}

/// Returns the cells of a mask that are not empty, and the side of a cell in pixels.
fn cells(mask: &EffectiveMask) -> (Vec<Cell>, usize) {
    let (left, top, width, height) = mask.bounds();
    let side = width.max(height).div_ceil(CELLS).max(1);
    let columns = width.div_ceil(side);
    let mut cells: Vec<Option<Cell>> = Vec::new();
    cells.resize_with(columns * height.div_ceil(side), || None);
    for y in 0..height {
        for x in 0..width {
            if mask.weight(left + x, top + y) > 0 {
                let pixel = Box::pixel(left + x, top + y);
                let cell = cells[y / side * columns + x / side]
                    .get_or_insert(Cell { bounds: pixel, pixels: 0 });
                cell.bounds = cell.bounds.joined(pixel);
                cell.pixels += 1;
            }
        }
    }
    (cells.into_iter().flatten().collect(), side)
}

/// Cuts boxes of thin strokes that are longer than the canvas into pieces; if these would be too many, into longer ones.
fn cut(
    boxes: &[Box],
    cells: &[Cell],
    cell_side: usize,
    size: (u32, u32),
    canvas: Canvas,
) -> Vec<Box> {
    // A piece of several cells can always be cut.
    let mut length = (canvas.side as usize).max(2 * cell_side + 2);
    loop {
        let pieces: Vec<_> = boxes
            .iter()
            .flat_map(|part| {
                let inside: Vec<_> =
                    cells.iter().filter(|cell| part.touches(cell.bounds)).collect();
                let mut pieces = Vec::new();
                add_pieces(&inside, length, cell_side, &mut pieces);
                let whole = part.region(size, canvas);
                let pays_off = pieces.iter().all(|piece| {
                    let region = piece.region(size, canvas);
                    is_much_smaller(&region, &whole) && is_mostly_context(&region, cells)
                });
                if pays_off { pieces } else { vec![*part] }
            })
            .collect();
        if pieces.len() <= MAX_PIECES.max(boxes.len()) {
            return pieces;
        }
        length += length / 4;
    }
}

/// Adds the bounding boxes of cells, cut along the longer side until none is longer than `length` pixels.
fn add_pieces(cells: &[&Cell], length: usize, cell_side: usize, pieces: &mut Vec<Box>) {
    let Some(all) = cells.iter().map(|cell| cell.bounds).reduce(Box::joined) else { return };
    let (width, height) = (all.right - all.left, all.bottom - all.top);
    let longest = width.max(height);
    if longest <= length {
        pieces.push(all);
        return;
    }
    // A piece ends with its last cell, which may reach beyond the cut.
    let count = longest.div_ceil(length - cell_side);
    let place = |cell: &Cell| {
        let at =
            if width > height { cell.bounds.left - all.left } else { cell.bounds.top - all.top };
        at * count / longest
    };
    for piece in 0..count {
        let part: Vec<_> = cells.iter().copied().filter(|cell| place(cell) == piece).collect();
        add_pieces(&part, length, cell_side, pieces);
    }
}

/// Returns whether most of a crop shows what the model should continue, and not the mask.
fn is_mostly_context(region: &Region, cells: &[Cell]) -> bool {
    let crop = Box::of(region);
    let masked: u64 =
        cells.iter().filter(|cell| cell.bounds.touches(crop)).map(|cell| cell.pixels).sum();
    masked * CONTEXT_SHARE <= u64::from(region.width()) * u64::from(region.height())
}

/// Joins boxes that belong together until none are left.
fn merge(boxes: &mut Vec<Box>, belongs: impl Fn(Box, Box) -> bool) {
    let mut at = 0;
    while at < boxes.len() {
        match (at + 1..boxes.len()).find(|other| belongs(boxes[at], boxes[*other])) {
            Some(other) => {
                let joined = boxes[at].joined(boxes.swap_remove(other));
                boxes[at] = joined;
                at = 0;
            }
            None => at += 1,
        }
    }
}

/// A rectangle of pixels, right and bottom exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Box {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

impl Box {
    const fn pixel(x: usize, y: usize) -> Self {
        Self { left: x, top: y, right: x + 1, bottom: y + 1 }
    }

    const fn of(region: &Region) -> Self {
        Self {
            left: region.x.start as usize,
            top: region.y.start as usize,
            right: region.x.end as usize,
            bottom: region.y.end as usize,
        }
    }

    fn joined(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    const fn touches(self, other: Self) -> bool {
        self.left <= other.right
            && other.left <= self.right
            && self.top <= other.bottom
            && other.top <= self.bottom
    }

    /// Returns the context around the box in pixels: 1/16 of the picture's longer side or half of the box's mean side,
    /// whichever is larger, and at least 16.
    fn margin(self, size: (u32, u32)) -> usize {
        let mean = usize::midpoint(self.right - self.left, self.bottom - self.top);
        (size.0.max(size.1) as usize / 16).max(mean / 2).max(16)
    }

    fn with_context(self, size: (u32, u32)) -> Self {
        let margin = self.margin(size);
        Self {
            left: self.left.saturating_sub(margin),
            top: self.top.saturating_sub(margin),
            right: (self.right + margin).min(size.0 as usize),
            bottom: (self.bottom + margin).min(size.1 as usize),
        }
    }

    /// Returns the region that shows the box with its context.
    fn region(self, size: (u32, u32), canvas: Canvas) -> Region {
        let margin = 2 * self.margin(size);
        let sides = (self.right - self.left + margin, self.bottom - self.top + margin);
        let longest = sides.0.max(sides.1);
        // A model with a fixed size gets at least that many pixels, and no more than the context needs.
        let (wanted_width, wanted_height) = match canvas.fit {
            Fit::Keep => sides,
            Fit::Scale | Fit::Square => {
                let square = longest.max(canvas.side as usize);
                (square, square)
            }
        };
        Region {
            x: shifted(usize::midpoint(self.left, self.right), wanted_width, size.0),
            y: shifted(usize::midpoint(self.top, self.bottom), wanted_height, size.1),
        }
    }
}

/// Returns a range of `wanted` pixels around `center`, shifted to lie in `0..size`.
fn shifted(center: usize, wanted: usize, size: u32) -> std::ops::Range<u32> {
    let length = wanted.min(size as usize);
    let start = center.saturating_sub(length / 2).min(size as usize - length);
    start as u32..(start + length) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::Mask;

    const FIXED: Canvas = Canvas { side: 512, multiple_of: 8, fit: Fit::Scale };

    #[test]
    fn crops_have_the_size_of_the_canvas_and_are_shifted_at_the_border() {
        let mut on = vec![false; 2000 * 1000];
        on[3] = true;
        let mask = Mask::new(2000, 1000, on).expect("a mask").effective(4);
        let regions = plan(&mask, (2000, 1000), FIXED, true);
        assert_eq!(regions, [Region { x: 0..512, y: 0..512 }]);
        let small = Mask::new(90, 60, vec![true; 90 * 60]).expect("a mask").effective(4);
        let regions = plan(&small, (90, 60), FIXED, true);
        assert_eq!(regions, [Region { x: 0..90, y: 0..60 }]);
    }

    #[test]
    fn distant_strokes_get_separate_crops_and_near_ones_share_one() {
        let with = |dots: &[(usize, usize)]| {
            let mut on = vec![false; 4000 * 3000];
            for (x, y) in dots {
                on[y * 4000 + x] = true;
            }
            let mask = Mask::new(4000, 3000, on).expect("a mask").effective(8);
            plan(&mask, (4000, 3000), FIXED, true).len()
        };
        assert_eq!(with(&[(100, 100), (3900, 2900)]), 2);
        assert_eq!(with(&[(100, 100), (3900, 100), (100, 2900)]), 3);
        assert_eq!(with(&[(100, 100), (300, 200)]), 1);
    }

    fn drawn(size: (u32, u32), is_on: impl Fn(usize, usize) -> bool) -> EffectiveMask {
        let (width, height) = (size.0 as usize, size.1 as usize);
        let on = (0..width * height).map(|at| is_on(at % width, at / width)).collect();
        Mask::new(width, height, on).expect("a mask").effective(8)
    }

    /// Returns the regions of a mask, after checking that they cover it.
    fn covering(mask: &EffectiveMask, size: (u32, u32), canvas: Canvas) -> Vec<Region> {
        let regions = plan(mask, size, canvas, true);
        let mut left = mask.clone();
        for region in &regions {
            for y in region.y.clone() {
                for x in region.x.clone() {
                    left.clear(x as usize, y as usize);
                }
            }
        }
        assert!(left.is_empty(), "{regions:?}");
        regions
    }

    fn longest(regions: &[Region]) -> u32 {
        regions.iter().map(|region| region.width().max(region.height())).max().unwrap_or(0)
    }

    #[test]
    fn a_thin_line_is_painted_in_pieces_and_an_object_is_not() {
        let size = (3000, 2000);
        let wire = drawn(size, |x, y| (x / 3 + 300).abs_diff(y) < 10);
        let ring = drawn(size, |x, y| {
            (700_usize.pow(2)..720_usize.pow(2))
                .contains(&(x.abs_diff(1500).pow(2) + y.abs_diff(1000).pow(2)))
        });
        for (line, most) in [(&wire, 8), (&ring, 12)] {
            for fit in [Fit::Scale, Fit::Square] {
                let regions = covering(line, size, Canvas { fit, ..FIXED });
                assert!((2..=most).contains(&regions.len()), "{regions:?}");
                assert!(longest(&regions) <= 2 * FIXED.side, "{regions:?}");
            }
        }
        assert_eq!(covering(&wire, size, Canvas { side: 4096, ..FIXED }).len(), 1);
        assert_eq!(plan(&wire, size, FIXED, false).len(), 1, "a prompt describes one thing");
        let keeping = Canvas { side: 4096, multiple_of: 1, fit: Fit::Keep };
        assert_eq!(covering(&wire, size, keeping).len(), 1);
        for object in [
            drawn(size, |x, y| (300..2700).contains(&x) && (300..1700).contains(&y)),
            drawn(size, |x, y| (300..2700).contains(&x) && (800..1300).contains(&y)),
        ] {
            assert_eq!(covering(&object, size, FIXED).len(), 1);
        }
    }

    #[test]
    fn the_pieces_of_a_line_are_few() {
        let size = (8000, 200);
        let line = drawn(size, |_, y| (90..110).contains(&y));
        let regions = covering(&line, size, Canvas { side: 64, ..FIXED });
        assert!((8..=16).contains(&regions.len()), "{}", regions.len());
    }

    #[test]
    fn strokes_that_a_single_crop_would_shrink_get_crops_of_their_own() {
        // Together they are less than twice as large as apart, but one canvas would show them at half the size.
        let size = (1000, 1000);
        let dots = drawn(size, |x, y| (x, y) == (100, 100) || (x, y) == (900, 900));
        assert_eq!(covering(&dots, size, FIXED).len(), 2);
    }
}
