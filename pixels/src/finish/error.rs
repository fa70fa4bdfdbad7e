//! Why a result could not be finished.

use crate::PixelError;

/// Why a result could not be finished. API users see the texts of all variants but [`Self::Failed`]: each is a sentence
/// without its period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    #[error("The field touchUp cannot be used: {0}")]
    TouchUp(#[from] TouchUpError),
    #[error("The field background cannot be used: {}", .0.to_string().trim_end_matches('.'))]
    Background(PixelError),
    /// There is nothing to crop to.
    #[error("Nothing is left of the subject, so there is nothing to crop to")]
    NothingLeft,
    /// The crop has too many pixels.
    #[error(
        "The crop would be {width} × {height} pixels; the limit is {limit} pixels. Choose a smaller margin or another aspect ratio"
    )]
    TooManyPixels {
        width: u64,
        height: u64,
        /// Maximum number of pixels.
        limit: u64,
    },
    /// The file format cannot hold the picture.
    #[error(
        "The picture would be {width} × {height} pixels; this format holds at most {max_side} per side. Choose PNG"
    )]
    TooLong {
        width: u32,
        height: u32,
        /// In pixels.
        max_side: u32,
    },
    /// The result or the original cannot be read, or an encoder failed.
    #[error(transparent)]
    Failed(#[from] PixelError),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TouchUpError {
    /// The file does not start like a PNG.
    #[error("it is not a PNG")]
    NotPng,
    /// The PNG is damaged or truncated.
    #[error("the PNG is damaged")]
    Damaged,
    /// The PNG is interlaced, so it cannot be read row by row.
    #[error("the PNG is interlaced; save it without interlacing")]
    Interlaced,
    /// A pixel is colored or translucent.
    #[error(
        "it must be gray and opaque: 128 leaves a pixel as it is, 0 erases it, 255 restores it"
    )]
    NotGray,
    /// The PNG differs from the result in size.
    #[error("it is {} × {} pixels but the result is {} × {}", own.0, own.1, result.0, result.1)]
    WrongSize {
        /// The width and height of the touch-up in pixels.
        own: (u32, u32),
        /// The width and height of the result in pixels.
        result: (u32, u32),
    },
}
