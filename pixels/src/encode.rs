//! Encodes PNGs, at once or row by row.

mod stream;

pub use stream::{Channels, PngStream};

use bytes::Bytes;
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use crate::PixelError;

/// R, G, B, A of a picture, straight alpha, rows from the top without padding.
#[derive(Clone, Copy, Debug)]
pub struct Rgba<'a> {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `width * height * 4` bytes.
    pub pixels: &'a [u8],
    /// The profile to embed.
    pub icc: Option<&'a [u8]>,
}

/// Encodes a PNG at the fast level with adaptive filters: on photos the default level takes tens of
/// times longer and saves nothing.
///
/// # Errors
/// [`PixelError::Internal`] when the buffer does not fit the size.
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
