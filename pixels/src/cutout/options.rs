//! How to render a cutout.

use super::colors::Color;

#[derive(Clone, Debug, PartialEq)]
pub struct CutoutOptions {
    /// Crops to the subject plus these margins; `None` keeps the canvas.
    pub crop: Option<Margins>,
    /// Scales the subject to this share of the canvas, above 0 and up to 1; `None` keeps its size.
    pub scale: Option<f64>,
    pub position: Position,
    /// Maximum number of pixels; `None` sets no limit.
    pub max_pixels: Option<u32>,
    /// The color behind the subject; `None` keeps the transparency.
    pub background: Option<Color>,
    pub channels: Channels,
    pub format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    pub top: Length,
    pub right: Length,
    pub bottom: Length,
    pub left: Length,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Pixels of the full-size picture.
    Pixels(u32),
    /// A share of the subject's width (left, right) or height (top, bottom); 1 is all of it.
    Share(f64),
}

impl Length {
    pub(super) fn of(self, whole: u32) -> u32 {
        match self {
            Self::Pixels(pixels) => pixels,
            Self::Share(share) => (f64::from(whole) * share).round() as u32,
        }
    }
}

/// The subject's place on the canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Position {
    Original,
    /// From (0, 0), top left, to (1, 1), bottom right.
    At {
        /// 0 is left, 1 is right.
        x: f64,
        /// 0 is top, 1 is bottom.
        y: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// Color and alpha.
    Rgba,
    /// Alpha alone, as a gray picture.
    Alpha,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// PNG if any pixel is transparent, otherwise JPEG.
    Auto,
    Png,
    /// JPEG on the background color, or on white.
    Jpeg,
    /// Lossless WebP.
    WebP,
    /// A ZIP with `color.jpg` and `alpha.png`.
    Zip,
}

impl CutoutOptions {
    /// Returns true if a PNG of this size needs no change.
    pub(super) fn change_nothing(&self, width: u32, height: u32) -> bool {
        let is_small = self.max_pixels.is_none_or(|max| pixels(width, height) <= u64::from(max));
        is_small
            && self.crop.is_none()
            && self.scale.is_none()
            && self.position == Position::Original
            && self.background.is_none()
            && self.channels == Channels::Rgba
            && self.format == Format::Png
    }
}

pub(super) fn pixels(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height)
}
