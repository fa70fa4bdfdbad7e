//! How to finish a result.

use bytes::Bytes;

use super::file::Output;
use super::gradient::Gradient;

/// Maximum number of pixels of a finished result, unless the result itself has more.
pub const MAX_PIXELS: u64 = 36_000_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// A gray PNG of the result's size. 128 leaves a pixel as it is, 0 erases it, 255 restores the original picture;
    /// the values between do so in proportion.
    pub touch_up: Option<Bytes>,
    /// The background behind the subject; `None` keeps the transparency.
    pub background: Option<Background>,
    /// The shadow between both.
    pub shadow: Option<Shadow>,
    /// Crops to the subject; `None` keeps the size of the result.
    pub crop: Option<Crop>,
    pub output: Output,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Background {
    /// A color: R, G, B.
    Color([u8; 3]),
    Gradient(Gradient),
    /// The original picture, blurred. Beyond its border, it is mirrored.
    Blur {
        /// The standard deviation in percent of the picture's longer side, at least 0.
        percent: f64,
    },
    /// A picture file, scaled to cover the output and centered.
    Picture(Bytes),
}

/// A black shadow of the subject. All lengths are in percent of the subject's longer side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadow {
    /// From 0, invisible, to 1, black.
    pub opacity: f64,
    /// The standard deviation of the blur, at least 0.
    pub blur: f64,
    /// The offset to the right.
    pub x: f64,
    /// The offset downward.
    pub y: f64,
}

/// Crops to the subject. Pixels outside the picture are transparent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crop {
    /// Minimum distance from the subject to the border, in percent of the subject's longer side.
    pub margin: f64,
    /// The ratio of width and height, both at least 1; `None` takes the ratio of the subject with its margin.
    pub aspect: Option<(u32, u32)>,
}

impl Finish {
    /// Changes nothing but the file format.
    pub const fn convert(output: Output) -> Self {
        Self { touch_up: None, background: None, shadow: None, crop: None, output }
    }

    /// Returns whether the stored PNG already satisfies these options.
    pub fn changes_nothing(&self) -> bool {
        *self == Self::convert(Output::Png)
    }

    /// Returns whether it takes the original picture.
    pub fn needs_original(&self) -> bool {
        self.touch_up.is_some() || self.shows_original()
    }

    /// Returns whether the original picture is the background.
    pub(super) const fn shows_original(&self) -> bool {
        matches!(self.background, Some(Background::Blur { .. }))
    }
}
