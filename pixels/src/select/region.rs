//! Points and rectangles of a picture.

/// A pixel: its column and row, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub x: u32,
    pub y: u32,
}

/// A rectangle of whole pixels, at least one wide and high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl Region {
    /// Returns the whole of a picture of `size` (width, height).
    pub const fn whole((width, height): (u32, u32)) -> Self {
        Self { left: 0, top: 0, width, height }
    }

    /// Returns the square with sides of `side` pixels that has `middle` in its middle, or as near as the picture
    /// (width, height) allows.
    pub fn around(middle: Point, side: u32, picture: (u32, u32)) -> Self {
        let (width, height) = (side.clamp(1, picture.0), side.clamp(1, picture.1));
        Self {
            left: middle.x.saturating_sub(width / 2).min(picture.0 - width),
            top: middle.y.saturating_sub(height / 2).min(picture.1 - height),
            width,
            height,
        }
    }

    /// Returns the region extended on each side by `share` of its longer side, within a picture of `size`.
    #[must_use]
    pub fn grown(self, share: f32, size: (u32, u32)) -> Self {
        let margin = ((self.width.max(self.height) as f32 * share).ceil() as u32).max(1);
        let (left, top) = (self.left.saturating_sub(margin), self.top.saturating_sub(margin));
        Self {
            left,
            top,
            width: (self.left + self.width + margin).min(size.0) - left,
            height: (self.top + self.height + margin).min(size.1) - top,
        }
    }

    pub const fn contains(&self, at: Point) -> bool {
        at.x >= self.left
            && at.y >= self.top
            && at.x - self.left < self.width
            && at.y - self.top < self.height
    }

    pub const fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Returns the share of the union of two regions that both cover, 0 to 1.
    pub fn overlap(&self, other: &Self) -> f32 {
        let length = |a: u32, a_size: u32, b: u32, b_size: u32| {
            (a + a_size).min(b + b_size).saturating_sub(a.max(b)) as usize
        };
        let both = length(self.left, self.width, other.left, other.width)
            * length(self.top, self.height, other.top, other.height);
        both as f32 / (self.pixels() + other.pixels() - both) as f32
    }

    /// Sets everything outside the region to its default, in a plane of rows of `width` values.
    pub(super) fn clear_outside<T: Copy + Default>(&self, plane: &mut [T], width: usize) {
        for (y, row) in plane.chunks_exact_mut(width).enumerate() {
            for (x, value) in row.iter_mut().enumerate() {
                if !self.contains(Point { x: x as u32, y: y as u32 }) {
                    *value = T::default();
                }
            }
        }
    }
}
