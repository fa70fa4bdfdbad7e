//! A picture in memory.

/// A decoded picture: 8-bit RGB, upright, rows from the top without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// R, G, B of every pixel: `width * height * 3` bytes.
    pub rgb: Vec<u8>,
    /// Alpha, `width * height` bytes; `None` if every pixel is opaque.
    pub alpha: Option<Vec<u8>>,
    /// Whether the file holds gray samples; then R, G and B are equal.
    pub gray: bool,
    /// The ICC profile that describes the file's RGB or gray samples, unchanged.
    pub icc: Option<Vec<u8>>,
}

impl Picture {
    /// Returns the number of pixels.
    pub const fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}
