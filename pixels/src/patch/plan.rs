//! Plans the crops for a mask: one for strokes near each other, each with enough context for the model.

use super::canvas::{Canvas, Fit};
use crate::mask::EffectiveMask;
use crate::tile::Region;

/// The number of grid cells along the longer side of the mask, fine enough to separate distant strokes.
const CELLS: usize = 128;

/// Returns the regions of a picture of `size` (width, height) that cover a mask with its context: one for strokes near
/// each other, several for strokes far apart.
pub fn plan(mask: &EffectiveMask, size: (u32, u32), canvas: Canvas) -> Vec<Region> {
    let (left, top, width, height) = mask.bounds();
    let cell = width.max(height).div_ceil(CELLS).max(1);
    let (columns, rows) = (width.div_ceil(cell), height.div_ceil(cell));
    let mut boxes: Vec<Option<Box>> = vec![None; columns * rows];
    for y in 0..height {
        for x in 0..width {
            if mask.weight(left + x, top + y) > 0 {
                let cell = &mut boxes[y / cell * columns + x / cell];
                let pixel = Box::pixel(left + x, top + y);
                *cell = Some(cell.map_or(pixel, |known| known.joined(pixel)));
            }
        }
    }
    let mut boxes: Vec<_> = boxes.into_iter().flatten().collect();
    // Joins boxes whose contexts touch, and boxes that another box's crop would cut.
    merge(&mut boxes, |a, b| {
        a.with_context(size).touches(b.with_context(size))
            || b.touches(Box::of(&a.region(size, canvas)))
            || a.touches(Box::of(&b.region(size, canvas)))
    });
    let mut regions: Vec<_> = boxes.iter().map(|part| part.region(size, canvas)).collect();
    if regions.len() > 1 {
        let whole = boxes.iter().copied().reduce(Box::joined).map(|all| all.region(size, canvas));
        let area = |region: &Region| u64::from(region.width()) * u64::from(region.height());
        // Several runs pay off only if a single crop would be more than twice their area.
        if let Some(whole) = whole
            && regions.iter().map(area).sum::<u64>() * 2 > area(&whole)
        {
            regions = vec![whole];
        }
    }
    regions
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
        let regions = plan(&mask, (2000, 1000), FIXED);
        assert_eq!(regions, [Region { x: 0..512, y: 0..512 }]);
        let small = Mask::new(90, 60, vec![true; 90 * 60]).expect("a mask").effective(4);
        let regions = plan(&small, (90, 60), FIXED);
        assert_eq!(regions, [Region { x: 0..90, y: 0..60 }]);
    }

    #[test]
    fn distant_strokes_get_separate_crops_and_near_ones_share_one() {
        let with = |dots: &[(usize, usize)]| {
            let mut on = vec![false; 4000 * 3000];
            for (x, y) in dots {
                on[y * 4000 + x] = true;
            }
            plan(&Mask::new(4000, 3000, on).expect("a mask").effective(8), (4000, 3000), FIXED)
                .len()
        };
        assert_eq!(with(&[(100, 100), (3900, 2900)]), 2);
        assert_eq!(with(&[(100, 100), (3900, 100), (100, 2900)]), 3);
        assert_eq!(with(&[(100, 100), (300, 200)]), 1);
    }
}
