//! The error that every function on pixels shares.

use crate::mask::MaskError;

/// Why a picture could not be processed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PixelError {
    /// The bytes are not a PNG, JPEG or WebP file.
    #[error("the image cannot be read: it is not a PNG, JPEG or WebP file")]
    UnsupportedFormat,
    /// The file is damaged, cut short or empty; the text says which.
    #[error("the image cannot be read: {0}")]
    Unreadable(String),
    /// A side of the picture exceeds the limit.
    #[error("the image is {width} × {height} pixels; the limit is {max_dimension} per side")]
    TooLarge {
        /// The picture's width in pixels.
        width: u32,
        /// The picture's height in pixels.
        height: u32,
        /// The longest side allowed, in pixels.
        max_dimension: u32,
    },
    /// The mask was rejected.
    #[error("the mask cannot be used: {0}")]
    Mask(#[from] MaskError),
    /// A model's output has the wrong shape or contains NaN or infinities.
    #[error("the model's output is invalid: {0}")]
    InvalidOutput(String),
    /// A bug in this crate; the text is for the operator.
    #[error("internal error: {0}")]
    Internal(String),
}
