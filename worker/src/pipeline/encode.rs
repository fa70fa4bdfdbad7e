//! Pixels to the bytes of a PNG: at once, row by row, and small for lists.

mod stream;
mod thumbnail;

pub use stream::{Channels, PngStream};
pub use thumbnail::{THUMBNAIL_SIDE, Thumbnail, encode_thumbnail};

use bytes::Bytes;
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use super::{Picture, PipelineError};

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
/// [`PipelineError::Defect`] when the buffer does not fit the size.
pub fn encode_png(picture: Rgba<'_>) -> Result<Bytes, PipelineError> {
    let mut png = Vec::with_capacity(picture.pixels.len() / 3);
    let mut encoder =
        PngEncoder::new_with_quality(&mut png, CompressionType::Fast, PngFilter::Adaptive);
    if let Some(icc) = picture.icc {
        encoder.set_icc_profile(icc.to_vec()).map_err(|error| defect(&error))?;
    }
    encoder
        .write_image(picture.pixels, picture.width, picture.height, ExtendedColorType::Rgba8)
        .map_err(|error| defect(&error))?;
    Ok(png.into())
}

/// Encodes a picture with the channels it has, gray as gray and opaque without alpha, and its thumbnail.
///
/// # Errors
/// [`PipelineError::Defect`] when the buffers do not fit the size.
pub fn encode_picture(picture: &Picture) -> Result<(Bytes, Bytes), PipelineError> {
    let size = (picture.width, picture.height);
    let channels = Channels::of(picture.gray, picture.alpha.is_some());
    let mut png = PngStream::new(size, channels, picture.icc.clone())?;
    let mut thumbnail = Thumbnail::new(size, channels);
    let width = picture.width as usize;
    let mut bytes = Vec::new();
    let mut line = Vec::with_capacity(width * channels.count());
    for (y, row) in picture.rgb.chunks_exact(width * 3).enumerate() {
        line.clear();
        let colours = if picture.gray { 1 } else { 3 };
        let alpha = picture.alpha.as_ref().map(|alpha| &alpha[y * width..(y + 1) * width]);
        for (x, pixel) in row.chunks_exact(3).enumerate() {
            line.extend_from_slice(&pixel[..colours]);
            line.extend(alpha.map(|alpha| alpha[x]));
        }
        png.write(&line)?;
        thumbnail.push(&line);
        bytes.extend_from_slice(&png.take());
    }
    bytes.extend_from_slice(&png.finish()?);
    // The thumbnail is RGB in any case.
    let icc = picture.icc.as_deref().filter(|_| !picture.gray);
    Ok((bytes.into(), thumbnail.encode(icc)?))
}

fn defect(error: &dyn std::error::Error) -> PipelineError {
    PipelineError::Defect(format!("encoding the result: {error}"))
}
