//! Why a mask was rejected.

/// Why a mask was rejected; each text is a sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// The file does not begin as a PNG.
    #[error("The mask must be a PNG")]
    NotPng,
    /// The PNG is interlaced, which would have to be held in memory as a whole.
    #[error("This mask is an interlaced PNG; save it without interlacing")]
    Interlaced,
    /// The PNG is damaged or cut short.
    #[error("The mask's file is damaged")]
    Damaged,
    /// The mask's aspect ratio differs from the image's.
    #[error("The mask is {} × {} pixels, the image {} × {}: the mask must have the image's size", mask.0, mask.1, image.0, image.1)]
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
    /// Nothing of the image is left outside of the mask to fill it from.
    #[error("The mask covers everything; leave some of the image unpainted")]
    CoversEverything,
    /// No pixel is painted.
    #[error(
        "Nothing is painted: no pixel is at least half white or, where the mask is transparent, half opaque"
    )]
    Empty,
}
