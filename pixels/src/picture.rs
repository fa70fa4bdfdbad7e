//! A picture in memory, and how large one may be.

/// A decoded picture: 8-bit RGB, upright, rows from the top without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// R, G, B of every pixel: `width * height * 3` bytes.
    pub rgb: Vec<u8>,
    /// The picture's own alpha, `width * height` bytes; `None` where all of it is opaque.
    pub alpha: Option<Vec<u8>>,
    /// Whether the file held gray samples; R, G and B are equal then.
    pub gray: bool,
    /// The ICC profile of the file's RGB, or gray, samples, byte for byte as it was embedded.
    pub icc: Option<Vec<u8>>,
}

impl Picture {
    /// How many pixels the picture has.
    pub const fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}

/// What a picture may be at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest side that is accepted, in pixels.
    pub max_dimension: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_dimension: 6000 }
    }
}
