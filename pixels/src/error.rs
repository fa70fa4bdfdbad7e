//! The errors of this crate.

use crate::decode::Foreign;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PixelError {
    /// The bytes are not a PNG, JPEG or WebP file.
    #[error("the image cannot be read: it is not a PNG, JPEG or WebP file")]
    UnsupportedFormat,
    /// The bytes are in a known format that is not accepted.
    #[error("{0}")]
    Foreign(Foreign),
    /// The file is damaged, truncated or empty; the text says which.
    #[error("the image cannot be read: {0}")]
    Unreadable(String),
    /// A side of the picture exceeds the limit.
    #[error("the image is {width} × {height} pixels; the limit is {max_dimension} per side")]
    TooLarge {
        width: u32,
        height: u32,
        /// The longest side allowed, in pixels.
        max_dimension: u32,
    },
    #[error(transparent)]
    Mask(#[from] MaskError),
    /// A model's output has the wrong shape or contains NaN or infinities.
    #[error("the model's output is invalid: {0}")]
    InvalidOutput(String),
    /// A bug in this crate; the text is for the operator.
    #[error("internal error: {0}")]
    Internal(String),
}

impl PixelError {
    pub(crate) fn encoding(error: &dyn std::error::Error) -> Self {
        Self::Internal(format!("encoding the result: {error}"))
    }
}

/// Why a mask was rejected. API users see the texts: each is a sentence without its period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// The file does not start like a PNG.
    #[error("The mask must be a PNG")]
    NotPng,
    /// The PNG is interlaced, so it cannot be read row by row.
    #[error("The mask is an interlaced PNG; save it without interlacing")]
    Interlaced,
    /// The PNG is damaged or truncated.
    #[error("The mask file is damaged")]
    Damaged,
    /// The mask's aspect ratio differs from the image's.
    #[error("The mask is {} × {} pixels but the image is {} × {}; they must have the same aspect ratio", mask.0, mask.1, image.0, image.1)]
    WrongShape {
        /// The mask's width and height in pixels.
        mask: (u32, u32),
        /// The image's width and height in pixels.
        image: (u32, u32),
    },
    /// A side of the mask exceeds the limit.
    #[error("The mask is larger than {max_dimension} pixels per side")]
    TooLarge {
        /// The longest side allowed, in pixels.
        max_dimension: u32,
    },
    /// The number of flags is not the number of pixels.
    #[error("The mask's size differs from the image's")]
    WrongLength,
    /// The mask leaves no pixel of the image to fill from.
    #[error("The mask covers the whole image; leave a part of it unpainted")]
    CoversEverything,
    /// Alpha is 0 at every painted pixel.
    #[error("The selected area is transparent")]
    Transparent,
    /// No pixel is painted.
    #[error(
        "The mask is empty: paint the area white, or draw it opaque on a transparent background"
    )]
    Empty,
}
