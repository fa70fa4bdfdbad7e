//! The errors of a fill, and the check for cancellation.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// `rgb` does not have three bytes per pixel, or `hole` one flag per pixel.
    #[error("{rgb} bytes and {hole} flags do not match a picture of {width} × {height} pixels")]
    SizeMismatch { width: u32, height: u32, rgb: usize, hole: usize },
    /// The hole covers the whole picture.
    #[error("the hole covers the whole picture; there is nothing to fill it from")]
    NothingToCopy,
    #[error("canceled")]
    Canceled,
}

/// The caller's cancellation callback.
#[derive(Clone, Copy)]
pub(super) struct Poll<'a>(pub(super) &'a dyn Fn() -> bool);

impl Poll<'_> {
    pub(super) fn check(self) -> Result<(), FillError> {
        if (self.0)() { Err(FillError::Canceled) } else { Ok(()) }
    }
}
