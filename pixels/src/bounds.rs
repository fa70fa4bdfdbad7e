//! The bounding box of the visible part of a cutout.

use image::RgbaImage;

/// A bounding box, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub left: u32,
    pub top: u32,
    /// At least 1.
    pub width: u32,
    /// At least 1.
    pub height: u32,
}

impl Bounds {
    /// Returns the bounding box of the pixels with at least this alpha; `None` if there are none.
    pub fn of(cut: &RgbaImage, least_alpha: u8) -> Option<Self> {
        let (mut left, mut right, mut top, mut bottom) = (u32::MAX, 0, u32::MAX, 0);
        let is_visible = |pixel: &image::Rgba<u8>| pixel.0[3] >= least_alpha;
        for (y, mut row) in cut.rows().enumerate() {
            let Some(first) = row.position(is_visible) else { continue };
            let last = row.rposition(is_visible).map_or(first, |more| first + 1 + more);
            left = left.min(first as u32);
            right = right.max(last as u32);
            top = top.min(y as u32);
            bottom = y as u32;
        }
        (top != u32::MAX).then(|| Self {
            left,
            top,
            width: right - left + 1,
            height: bottom - top + 1,
        })
    }

    pub fn longer_side(&self) -> u32 {
        self.width.max(self.height)
    }
}
