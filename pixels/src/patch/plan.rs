//! Which parts of a picture a model is shown: near strokes together, each with enough around it to go on from.

use super::canvas::{Canvas, Fit};
use crate::mask::Reach;
use crate::tile::Region;

/// A grid of so many cells a side is fine enough to tell strokes that are far apart.
const CELLS: usize = 128;

/// The parts of a picture that a mask needs: one for strokes that are near each other, several for strokes
/// that are far apart.
pub fn plan(reach: &Reach, size: (u32, u32), canvas: Canvas) -> Vec<Region> {
    let (left, top, width, height) = reach.bounds();
    let cell = width.max(height).div_ceil(CELLS).max(1);
    let (columns, rows) = (width.div_ceil(cell), height.div_ceil(cell));
    let mut boxes: Vec<Option<Box>> = vec![None; columns * rows];
    for y in 0..height {
        for x in 0..width {
            if reach.weight(left + x, top + y) > 0 {
                let cell = &mut boxes[y / cell * columns + x / cell];
                let pixel = Box::pixel(left + x, top + y);
                *cell = Some(cell.map_or(pixel, |known| known.joined(pixel)));
            }
        }
    }
    let mut boxes: Vec<_> = boxes.into_iter().flatten().collect();
    // What has its surroundings in common is one part, and so is what a crop would show half of.
    merge(&mut boxes, |a, b| {
        a.with_context(size).touches(b.with_context(size))
            || b.touches(Box::of(&a.region(size, canvas)))
            || a.touches(Box::of(&b.region(size, canvas)))
    });
    let mut regions: Vec<_> = boxes.iter().map(|part| part.region(size, canvas)).collect();
    if regions.len() > 1 {
        let whole = boxes.iter().copied().reduce(Box::joined).map(|all| all.region(size, canvas));
        let area = |region: &Region| u64::from(region.width()) * u64::from(region.height());
        // Several crops are worth their runs only where one would be much larger.
        if let Some(whole) = whole
            && regions.iter().map(area).sum::<u64>() * 2 > area(&whole)
        {
            regions = vec![whole];
        }
    }
    regions
}

/// Joins what `belongs` together until nothing more does.
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

/// A rectangle of pixels; the ends are not part of it.
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

    /// How much around it a model should see: a sixteenth of the picture, or half of what is painted.
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

    /// The part of a picture that shows it with its surroundings.
    fn region(self, size: (u32, u32), canvas: Canvas) -> Region {
        let margin = 2 * self.margin(size);
        let sides = (self.right - self.left + margin, self.bottom - self.top + margin);
        let longest = sides.0.max(sides.1);
        // A model that always works at one size sees no more than it has to, and never less than that.
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

/// So many pixels around a centre, moved inside of the picture.
fn shifted(centre: usize, wanted: usize, size: u32) -> std::ops::Range<u32> {
    let length = wanted.min(size as usize);
    let start = centre.saturating_sub(length / 2).min(size as usize - length);
    start as u32..(start + length) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::Mask;

    const FIXED: Canvas = Canvas { side: 512, multiple_of: 8, fit: Fit::Scale };

    #[test]
    fn crops_are_as_large_as_the_model_wants_and_shifted_at_the_border() {
        let mut on = vec![false; 2000 * 1000];
        on[3] = true;
        let reach = Mask::new(2000, 1000, on).expect("a mask").reach(4);
        let regions = plan(&reach, (2000, 1000), FIXED);
        assert_eq!(regions, [Region { x: 0..512, y: 0..512 }]);
        let small = Mask::new(90, 60, vec![true; 90 * 60]).expect("a mask").reach(4);
        let regions = plan(&small, (90, 60), FIXED);
        assert_eq!(regions, [Region { x: 0..90, y: 0..60 }]);
    }

    #[test]
    fn strokes_far_apart_are_several_crops_and_near_ones_are_one() {
        let with = |dots: &[(usize, usize)]| {
            let mut on = vec![false; 4000 * 3000];
            for (x, y) in dots {
                on[y * 4000 + x] = true;
            }
            plan(&Mask::new(4000, 3000, on).expect("a mask").reach(8), (4000, 3000), FIXED).len()
        };
        assert_eq!(with(&[(100, 100), (3900, 2900)]), 2);
        assert_eq!(with(&[(100, 100), (3900, 100), (100, 2900)]), 3);
        assert_eq!(with(&[(100, 100), (300, 200)]), 1);
    }
}
