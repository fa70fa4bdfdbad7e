//! Why a hole was not filled, and the check for cancellation.

/// Why a hole was not filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// `rgb` must hold three bytes for each pixel, `hole` one entry.
    #[error("a picture of {width} × {height} pixels does not go with {rgb} bytes and {hole} marks")]
    Sizes {
        /// The picture's width.
        width: u32,
        /// The picture's height.
        height: u32,
        /// Bytes given.
        rgb: usize,
        /// Marks given.
        hole: usize,
    },
    /// The hole is the whole picture.
    #[error("nothing of the picture is left to fill the hole from")]
    Everything,
    /// Nobody wants the result any more.
    #[error("cancelled")]
    Cancelled,
}

/// Whether the result is still wanted.
#[derive(Clone, Copy)]
pub(super) struct Poll<'a>(pub(super) &'a dyn Fn() -> bool);

impl Poll<'_> {
    pub(super) fn check(self) -> Result<(), FillError> {
        if (self.0)() { Err(FillError::Cancelled) } else { Ok(()) }
    }
}
