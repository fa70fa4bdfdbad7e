//! Delivers a cut-out in the form a program asks for: cropped, moved, shrunk, on a color, in a file format.

mod arrange;
mod colors;
mod files;
mod shape;

use std::io::Cursor;

use bytes::Bytes;
use image::codecs::png::PngDecoder;
use image::{DynamicImage, ImageDecoder};

pub use colors::{Color, color};
pub use shape::{Channels, Format, Length, Margins, Position, Shape};

use crate::PixelError;

/// A cut-out as it was wished for.
#[derive(Debug)]
pub struct Shaped {
    /// The file.
    pub bytes: Bytes,
    /// Its kind.
    pub content_type: &'static str,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// The width without a limit on the number of pixels.
    pub full_width: u32,
    /// The height without a limit on the number of pixels.
    pub full_height: u32,
}

/// Brings a cut-out, the PNG that a worker made, into shape.
pub fn shape(png: &Bytes, wanted: &Shape) -> Result<Shaped, PixelError> {
    let mut decoder = PngDecoder::new(Cursor::new(png.as_ref()))
        .map_err(|error| failed("reading a cut-out", &error))?;
    let (width, height) = decoder.dimensions();
    if wanted.leaves_as_it_is(width, height) {
        return Ok(Shaped {
            bytes: png.clone(),
            content_type: "image/png",
            width,
            height,
            full_width: width,
            full_height: height,
        });
    }
    let profile = decoder.icc_profile().ok().flatten();
    let cut = DynamicImage::from_decoder(decoder)
        .map_err(|error| failed("decoding a cut-out", &error))?
        .into_rgba8();
    let mut picture = arrange::arrange(cut, wanted)?;
    let (full_width, full_height) = picture.dimensions();
    if let Some(most) = wanted.max_pixels {
        picture = arrange::shrink(picture, most)?;
    }
    if let Some(color) = wanted.background {
        colors::put_behind(&mut picture, color);
    }
    let (width, height) = picture.dimensions();
    let (bytes, content_type) = match wanted.channels {
        Channels::Rgba => files::subject(picture, wanted.format, profile.as_deref())?,
        Channels::Alpha => files::alpha(&picture, wanted.format)?,
    };
    Ok(Shaped { bytes, content_type, width, height, full_width, full_height })
}

fn failed(step: &str, error: &dyn std::error::Error) -> PixelError {
    PixelError::Internal(format!("{step}: {error}"))
}

#[cfg(test)]
mod tests;
