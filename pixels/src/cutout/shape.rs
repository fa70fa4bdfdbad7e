//! How a program wants its cut-out delivered.

use super::colors::Color;

/// How a cut-out shall be delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Cut off what is empty around the subject, but for these margins.
    pub crop: Option<Margins>,
    /// How much of the canvas the subject shall take, up to 1; `None` leaves its size.
    pub scale: Option<f64>,
    /// Where in the canvas the subject stands.
    pub position: Position,
    /// The most pixels the picture may have; `None` leaves its size.
    pub max_pixels: Option<u32>,
    /// What is put behind the subject.
    pub background: Option<Color>,
    /// What of the picture is delivered.
    pub channels: Channels,
    /// As what kind of file.
    pub format: Format,
}

/// What stays around a cropped subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Above.
    pub top: Length,
    /// At its right.
    pub right: Length,
    /// Below.
    pub bottom: Length,
    /// At its left.
    pub left: Length,
}

/// A length beside the subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Pixels of the full-size picture.
    Pixels(u32),
    /// A share of the subject's own width or height.
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

/// Where in its canvas the subject stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Position {
    /// Where it was.
    Original,
    /// From 0 (left, top) to 1 (right, bottom).
    At {
        /// Across.
        x: f64,
        /// Down.
        y: f64,
    },
}

/// What of a cut-out is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// The subject.
    Rgba,
    /// Where the subject is: its alpha, as grays.
    Alpha,
}

/// The kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A PNG where something is transparent, else a JPEG.
    Auto,
    /// A PNG.
    Png,
    /// A JPEG; what is transparent becomes white unless there is another background.
    Jpeg,
    /// A WebP without loss.
    WebP,
    /// `color.jpg` and `alpha.png` in one file.
    Zip,
}

impl Shape {
    /// Whether a PNG of this size is delivered as it is.
    pub(super) fn leaves_as_it_is(&self, width: u32, height: u32) -> bool {
        let is_small = self.max_pixels.is_none_or(|most| pixels(width, height) <= u64::from(most));
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
