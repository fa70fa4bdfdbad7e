//! How a hole is filled.

/// How a hole is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the random search begins: the same seed gives the same bytes.
    pub seed: u64,
    /// Pixels of the largest size that is searched, at least 1. Larger surroundings of a hole are searched at
    /// half the size, or a quarter, and copied from at full size.
    pub max_pixels: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seed: 0, max_pixels: 1 << 21 }
    }
}
