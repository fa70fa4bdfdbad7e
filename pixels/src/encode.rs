//! Encodes PNG files, in one piece or row by row, JPEG and WebP files.

mod file;
mod filter;
mod stream;
mod webp;

pub(crate) use self::file::{jpeg, lossless_webp, png_of_samples};
pub use self::stream::{Channels, PngStream};
pub use self::webp::{Effort, MAX_WEBP_SIDE, lossy_webp};

use bytes::Bytes;

use crate::{Picture, PixelError};

/// An RGBA picture with straight (not premultiplied) alpha, rows from the top without padding.
#[derive(Clone, Copy, Debug)]
pub struct Rgba<'a> {
    pub width: u32,
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
    let size = (picture.width, picture.height);
    png_of_samples(size, Channels::Rgba, picture.pixels, picture.icc)
}

/// Encodes a picture as a PNG. Gray pictures are encoded as gray, opaque ones without alpha.
///
/// # Errors
/// [`PixelError::Internal`] if the buffers do not match the size.
pub fn encode_picture(picture: &Picture) -> Result<Bytes, PixelError> {
    let size = (picture.width, picture.height);
    let channels = Channels::of(picture.gray, picture.alpha.is_some());
    let mut png = PngStream::new(size, channels, picture.icc.clone())?;
    let mut line = Vec::new();
    for y in 0..picture.height as usize {
        interleave(picture, y, &mut line);
        png.write(&line)?;
    }
    png.finish()
}

/// Writes the interleaved samples of row `y` to `line`.
pub(crate) fn interleave(picture: &Picture, y: usize, line: &mut Vec<u8>) {
    let width = picture.width as usize;
    let row = &picture.rgb[y * width * 3..(y + 1) * width * 3];
    let pixels = row.as_chunks::<3>().0.iter();
    let alpha = picture.alpha.as_ref().map(|alpha| &alpha[y * width..(y + 1) * width]);
    match (picture.gray, alpha) {
        (false, None) => row.clone_into(line),
        (true, None) => collect(pixels.map(|[v, ..]| [*v]), line),
        (false, Some(alpha)) => {
            collect(pixels.zip(alpha).map(|([r, g, b], alpha)| [*r, *g, *b, *alpha]), line);
        }
        (true, Some(alpha)) => {
            collect(pixels.zip(alpha).map(|([v, ..], alpha)| [*v, *alpha]), line);
        }
    }
}

fn collect<const N: usize>(pixels: impl ExactSizeIterator<Item = [u8; N]>, line: &mut Vec<u8>) {
    line.resize(pixels.len() * N, 0);
    for (to, pixel) in line.as_chunks_mut().0.iter_mut().zip(pixels) {
        *to = pixel;
    }
}
