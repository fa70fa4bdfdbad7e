//! The limits of pictures and masks that are accepted.

/// Maximum size of pictures and masks.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In pixels.
    pub max_dimension: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_dimension: 6000 }
    }
}
