//! Encodes PNGs, in one piece or row by row, JPEGs and `WebP`s.

mod file;
mod stream;
mod webp;

pub(crate) use self::file::{jpeg, lossless_webp, png_of_samples};
pub use self::stream::{Channels, PngStream};
pub use self::webp::{MAX_WEBP_SIDE, lossy_webp};

use bytes::Bytes;
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use crate::PixelError;

/// An RGBA picture with straight (not premultiplied) alpha, rows from the top without padding.
#[derive(Clone, Copy, Debug)]
pub struct Rgba<'a> {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `width * height * 4` bytes.
    pub pixels: &'a [u8],
    /// The ICC profile to embed.
    pub icc: Option<&'a [u8]>,
}

/// Encodes a PNG with fast compression and adaptive filters. On photos, the default compression takes tens of times
/// longer and saves nothing.
///
/// # Errors
/// [`PixelError::Internal`] if the buffer does not match the size.
pub fn encode_png(picture: Rgba<'_>) -> Result<Bytes, PixelError> {
    let mut png = Vec::with_capacity(picture.pixels.len() / 3);
    let mut encoder =
        PngEncoder::new_with_quality(&mut png, CompressionType::Fast, PngFilter::Adaptive);
    if let Some(icc) = picture.icc {
        encoder.set_icc_profile(icc.to_vec()).map_err(|error| failed(&error))?;
    }
    encoder
        .write_image(picture.pixels, picture.width, picture.height, ExtendedColorType::Rgba8)
        .map_err(|error| failed(&error))?;
    Ok(png.into())
}

fn failed(error: &dyn std::error::Error) -> PixelError {
    PixelError::Internal(format!("encoding the result: {error}"))
}
