//! How a picture is framed in the fixed input of a model: stretched, or letterboxed.

use std::ops::Range;

use serde::Deserialize;

/// How a picture is brought to the size of a model's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Resized to exactly that size; the aspect ratio changes.
    Stretch,
    /// Resized with its aspect ratio, and the rest of the input has one color.
    Letterbox {
        /// R, G, B of the rest.
        color: [u8; 3],
        align: Align,
    },
}

/// Where a letterboxed picture lies in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// In the middle; an odd remainder goes to the right and the bottom.
    #[default]
    Center,
    TopLeft,
}

/// The part of a model's input that shows the picture. The rest is border.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Width and height of the whole input.
    pub size: (u32, u32),
    /// The columns that show the picture.
    pub x: Range<u32>,
    /// The rows that show the picture.
    pub y: Range<u32>,
}

impl Framing {
    /// Returns where a picture of `picture` (width, height) lies in an input of `size`. Both of its sides keep at least
    /// one pixel.
    pub fn frame(&self, picture: (u32, u32), size: (u32, u32)) -> Frame {
        let Self::Letterbox { align, .. } = self else {
            return Frame { size, x: 0..size.0, y: 0..size.1 };
        };
        let scale = |input: u32, side: u32| f64::from(input) / f64::from(side.max(1));
        let scale = scale(size.0, picture.0).min(scale(size.1, picture.1));
        let span = |side: u32, input: u32| {
            let length = ((f64::from(side) * scale).round() as u32).clamp(1, input);
            let start = match align {
                Align::Center => (input - length) / 2,
                Align::TopLeft => 0,
            };
            start..start + length
        };
        Frame { size, x: span(picture.0, size.0), y: span(picture.1, size.1) }
    }
}

impl Frame {
    /// Returns the width and height of the part that shows the picture.
    pub const fn content(&self) -> (u32, u32) {
        (self.x.end - self.x.start, self.y.end - self.y.start)
    }

    pub fn is_full(&self) -> bool {
        self.content() == self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(align: Align, picture: (u32, u32)) -> (Range<u32>, Range<u32>) {
        let frame = Framing::Letterbox { color: [0; 3], align }.frame(picture, (32, 32));
        (frame.x, frame.y)
    }

    #[test]
    fn a_letterboxed_picture_keeps_its_aspect_ratio() {
        assert_eq!(framed(Align::Center, (90, 60)), (0..32, 5..26));
        assert_eq!(framed(Align::TopLeft, (90, 60)), (0..32, 0..21));
        assert_eq!(framed(Align::Center, (10, 20)), (8..24, 0..32));
        assert_eq!(framed(Align::Center, (6000, 1)), (0..32, 15..16));
    }

    #[test]
    fn a_stretched_picture_fills_the_input() {
        let frame = Framing::Stretch.frame((90, 60), (32, 24));
        assert!(frame.is_full());
        assert_eq!((frame.x, frame.y), (0..32, 0..24));
    }
}
