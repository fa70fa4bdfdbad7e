//! The part of the plane that is rendered: the whole picture, or what a crop selects, which may extend beyond the
//! picture.

use image::RgbaImage;

use super::error::FinishError;
use super::file::Output;
use super::options::{Crop, MAX_PIXELS};
use crate::bounds::Bounds;

/// A rectangle, in pixels of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Canvas {
    pub left: i64,
    pub top: i64,
    pub width: u32,
    pub height: u32,
}

impl Canvas {
    /// Returns the canvas that is a whole picture of `size` (width, height).
    pub const fn of_picture((width, height): (u32, u32)) -> Self {
        Self { left: 0, top: 0, width, height }
    }

    /// Returns the smallest canvas around a subject and its margin with the aspect ratio of `crop`. The subject is in its
    /// center, up to half a pixel.
    pub fn around(subject: &Bounds, crop: &Crop) -> Self {
        let margin = f64::from(subject.longer_side()) * crop.margin / 100.0;
        let margin = margin.round() as u32;
        let (mut width, mut height) = (subject.width + 2 * margin, subject.height + 2 * margin);
        if let Some((across, down)) = crop.aspect {
            let (across, down) = (u64::from(across), u64::from(down));
            let fitting =
                |side: u32, from: u64, to: u64| ((u64::from(side) * to + from / 2) / from) as u32;
            match fitting(height, down, across) {
                wider if wider >= width => width = wider,
                _ => height = height.max(fitting(width, across, down)),
            }
        }
        Self {
            left: i64::from(subject.left) - i64::from(width - subject.width) / 2,
            top: i64::from(subject.top) - i64::from(height - subject.height) / 2,
            width,
            height,
        }
    }

    pub fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Checks that a picture of `size` may become a file with this canvas.
    pub fn check(&self, size: (u32, u32), output: Output) -> Result<(), FinishError> {
        let Self { width, height, .. } = *self;
        let limit = MAX_PIXELS.max(Self::of_picture(size).pixels());
        if self.pixels() > limit {
            let (width, height) = (u64::from(width), u64::from(height));
            return Err(FinishError::TooManyPixels { width, height, limit });
        }
        match output.max_side() {
            Some(max_side) if width.max(height) > max_side => {
                Err(FinishError::TooLong { width, height, max_side })
            }
            _ => Ok(()),
        }
    }

    /// Returns this part of a picture. It is transparent beyond the picture's border.
    pub fn place(&self, cut: RgbaImage) -> RgbaImage {
        if *self == Self::of_picture(cut.dimensions()) {
            return cut;
        }
        let mut placed = RgbaImage::new(self.width, self.height);
        image::imageops::replace(&mut placed, &cut, -self.left, -self.top);
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: Bounds = Bounds { left: 10, top: 20, width: 40, height: 30 };

    fn around(margin: f64, aspect: Option<(u32, u32)>) -> Canvas {
        Canvas::around(&SUBJECT, &Crop { margin, aspect })
    }

    #[test]
    fn a_crop_has_its_margin_and_aspect_around_the_subject() {
        let canvas = |left, top, width, height| Canvas { left, top, width, height };
        assert_eq!(around(0.0, None), canvas(10, 20, 40, 30));
        // 10 % of 40 pixels.
        assert_eq!(around(10.0, None), canvas(6, 16, 48, 38));
        assert_eq!(around(0.0, Some((1, 1))), canvas(10, 15, 40, 40));
        assert_eq!(around(10.0, Some((4, 5))), canvas(6, 5, 48, 60));
        assert_eq!(around(0.0, Some((16, 9))), canvas(4, 20, 53, 30));
        assert_eq!(around(50.0, Some((1, 100))), canvas(-10, -3965, 80, 8000));
    }

    #[test]
    fn a_canvas_beyond_the_limits_is_refused() {
        let wide = Canvas::of_picture((20_000, 100));
        assert_eq!(wide.check((50, 50), Output::Png), Ok(()));
        let webp = Output::WebP(super::super::file::Quality::BEST);
        let refused = wide.check((50, 50), webp).expect_err("it is too long");
        assert!(refused.to_string().contains("at most 16383 per side"), "{refused}");
        let large = Canvas::of_picture((6000, 6001));
        assert!(matches!(
            large.check((6000, 6000), Output::Png),
            Err(FinishError::TooManyPixels { width: 6000, height: 6001, limit: MAX_PIXELS })
        ));
        assert_eq!(large.check((6000, 6001), Output::Png), Ok(()), "the result itself is as large");
    }
}
