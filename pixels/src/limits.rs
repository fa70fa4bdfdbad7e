//! The limits of pictures and masks that are accepted.

/// The largest picture or mask accepted.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest side allowed, in pixels.
    pub max_dimension: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_dimension: 6000 }
    }
}
