//! A picture prepared for clicks: its pixels, and a reduced copy for everything but the last step.

use super::region::{Point, Region};
use crate::Picture;
use crate::resize::resize_rgb;

/// Maximum side of the reduced copy, in pixels.
pub const MAX_SIDE: u32 = 1024;

#[derive(Debug)]
pub struct Scene {
    /// R, G, B at full size.
    pub(super) full: Rgb,
    /// R, G, B of the reduced copy; `None` if the picture is no larger than that.
    reduced: Option<Rgb>,
}

/// R, G, B of every pixel, rows from the top.
#[derive(Debug)]
pub(super) struct Rgb {
    pub width: usize,
    pub height: usize,
    pub samples: Vec<u8>,
}

impl Rgb {
    /// Returns how much two pixels differ: the largest difference of a channel, 0 to 255.
    pub fn difference(&self, a: usize, b: usize) -> u8 {
        let (a, b) = (self.pixel(a), self.pixel(b));
        (0..3).map(|channel| a[channel].abs_diff(b[channel])).max().unwrap_or(0)
    }

    pub fn pixel(&self, at: usize) -> [u8; 3] {
        [self.samples[at * 3], self.samples[at * 3 + 1], self.samples[at * 3 + 2]]
    }

    fn cut(&self, region: Region) -> Vec<u8> {
        let row = region.width as usize * 3;
        let mut samples = Vec::with_capacity(row * region.height as usize);
        for y in region.top..region.top + region.height {
            let start = (y as usize * self.width + region.left as usize) * 3;
            samples.extend_from_slice(&self.samples[start..start + row]);
        }
        samples
    }
}

impl Scene {
    /// Prepares a picture. Transparent pixels are gray, so the edge of a cutout stays an edge.
    pub fn new(picture: Picture) -> Self {
        let picture = picture.on_gray();
        let (width, height) = (picture.width, picture.height);
        let longest = width.max(height);
        let reduced = if longest > MAX_SIDE {
            let scaled = |side: u32| {
                let side = u64::from(side) * u64::from(MAX_SIDE) / u64::from(longest);
                (side as u32).max(1)
            };
            let from = (width as usize, height as usize);
            let to = (scaled(width) as usize, scaled(height) as usize);
            let samples = resize_rgb(&picture.rgb, from, to);
            Some(Rgb { width: to.0, height: to.1, samples })
        } else {
            None
        };
        let full = Rgb { width: width as usize, height: height as usize, samples: picture.rgb };
        Self { full, reduced }
    }

    /// Returns the peak memory, in bytes, of a scene of this size while an object is being selected: the
    /// samples (3 bytes a pixel), the mask (1), the mask as it is encoded, and the reduced copy with its planes.
    pub const fn memory_bytes(width: u32, height: u32) -> u64 {
        width as u64 * height as u64 * 5 + (MAX_SIDE as u64 * MAX_SIDE as u64) * 32
    }

    pub const fn size(&self) -> (u32, u32) {
        (self.full.width as u32, self.full.height as u32)
    }

    pub fn reduced_size(&self) -> (u32, u32) {
        let reduced = self.reduced();
        (reduced.width as u32, reduced.height as u32)
    }

    pub(super) fn reduced(&self) -> &Rgb {
        self.reduced.as_ref().unwrap_or(&self.full)
    }

    pub(super) const fn is_reduced(&self) -> bool {
        self.reduced.is_some()
    }

    /// Returns the pixel of the reduced copy that covers a pixel of the picture.
    pub fn reduce_point(&self, at: Point) -> Point {
        let (size, reduced) = (self.size(), self.reduced_size());
        let scaled = |at: u32, side: u32, reduced: u32| {
            let scaled = u64::from(at) * u64::from(reduced) / u64::from(side);
            (scaled as u32).min(reduced - 1)
        };
        Point { x: scaled(at.x, size.0, reduced.0), y: scaled(at.y, size.1, reduced.1) }
    }

    /// Returns the pixels of the reduced copy that a region of the picture touches.
    pub fn reduce_region(&self, region: Region) -> Region {
        let first = self.reduce_point(Point { x: region.left, y: region.top });
        let last = self.reduce_point(Point {
            x: region.left + region.width - 1,
            y: region.top + region.height - 1,
        });
        Region {
            left: first.x,
            top: first.y,
            width: last.x - first.x + 1,
            height: last.y - first.y + 1,
        }
    }

    /// Returns the picture's pixels in a region of the reduced copy, for a net whose input has sides of `side`
    /// pixels: from the reduced copy if that is fine enough, otherwise from the picture itself.
    pub fn cut(&self, region: Region, side: u32) -> Picture {
        let (region, source) = if !self.is_reduced() || region.width.max(region.height) >= side {
            (region, self.reduced())
        } else {
            (self.enlarge_region(region), &self.full)
        };
        Picture {
            width: region.width,
            height: region.height,
            rgb: source.cut(region),
            alpha: None,
            gray: false,
            icc: None,
        }
    }

    /// Returns the pixels of the picture that lie under a region of the reduced copy.
    fn enlarge_region(&self, region: Region) -> Region {
        let (size, reduced) = (self.size(), self.reduced_size());
        let scaled = |at: u32, side: u32, reduced: u32| {
            (u64::from(at) * u64::from(side) / u64::from(reduced)) as u32
        };
        let (left, top) =
            (scaled(region.left, size.0, reduced.0), scaled(region.top, size.1, reduced.1));
        let right = scaled(region.left + region.width, size.0, reduced.0);
        let bottom = scaled(region.top + region.height, size.1, reduced.1);
        Region {
            left,
            top,
            width: right.saturating_sub(left).max(1),
            height: bottom.saturating_sub(top).max(1),
        }
    }
}
