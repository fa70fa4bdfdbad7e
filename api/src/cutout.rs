//! The shape in which a program wants a cut-out: cropped, moved, shrunk, on a colour, as this or that file.
//!
//! Everything here is pure: a PNG and a wish in, a file out. It takes time and memory; run it on a thread
//! that may block.

mod arrange;
mod colours;
mod files;

use std::io::Cursor;

use anyhow::Context;
use bytes::Bytes;
use image::codecs::png::PngDecoder;
use image::{DynamicImage, GrayImage, ImageDecoder, RgbaImage};

pub use colours::{Colour, colour};

/// How a cut-out shall be delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Cut off what is empty around the subject, but for these margins.
    pub crop: Option<Margins>,
    /// How much of the canvas the subject shall take, up to 1; `None` leaves its size.
    pub scale: Option<f64>,
    /// Where in the canvas the subject stands.
    pub position: Position,
    /// The most pixels the picture may have; `None` leaves its size.
    pub max_pixels: Option<u32>,
    /// What is put behind the subject.
    pub background: Option<Colour>,
    /// What of the picture is delivered.
    pub channels: Channels,
    /// As what kind of file.
    pub format: Format,
}

/// What stays around a cropped subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Above.
    pub top: Length,
    /// At its right.
    pub right: Length,
    /// Below.
    pub bottom: Length,
    /// At its left.
    pub left: Length,
}

/// A length beside the subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Pixels of the full-size picture.
    Pixels(u32),
    /// A share of the subject's own width or height.
    Share(f64),
}

impl Length {
    fn of(self, whole: u32) -> u32 {
        match self {
            Self::Pixels(pixels) => pixels,
            Self::Share(share) => (f64::from(whole) * share).round() as u32,
        }
    }
}

/// Where in its canvas the subject stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Position {
    /// Where it was.
    Original,
    /// From 0 (left, top) to 1 (right, bottom).
    At {
        /// Across.
        x: f64,
        /// Down.
        y: f64,
    },
}

/// What of a cut-out is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// The subject.
    Rgba,
    /// Where the subject is: its alpha, as grays.
    Alpha,
}

/// The kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A PNG where something is transparent, else a JPEG.
    Auto,
    /// A PNG.
    Png,
    /// A JPEG; what is transparent becomes white unless there is another background.
    Jpeg,
    /// A WebP without loss.
    WebP,
    /// `color.jpg` and `alpha.png` in one file.
    Zip,
}

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
pub fn shape(png: &Bytes, wanted: &Shape) -> anyhow::Result<Shaped> {
    let mut decoder = PngDecoder::new(Cursor::new(png.as_ref())).context("reading a cut-out")?;
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
    let cut = DynamicImage::from_decoder(decoder).context("decoding a cut-out")?.into_rgba8();
    let mut picture = arrange::arrange(cut, wanted)?;
    let (full_width, full_height) = picture.dimensions();
    if let Some(most) = wanted.max_pixels {
        picture = arrange::shrink(picture, most)?;
    }
    if let Some(colour) = wanted.background {
        colours::put_behind(&mut picture, colour);
    }
    let (width, height) = picture.dimensions();
    let (bytes, content_type) = match wanted.channels {
        Channels::Rgba => files::subject(picture, wanted.format, profile.as_deref())?,
        Channels::Alpha => files::grays(alpha_of(&picture), wanted.format)?,
    };
    Ok(Shaped { bytes, content_type, width, height, full_width, full_height })
}

impl Shape {
    /// Whether a PNG of this size is delivered as it is.
    fn leaves_as_it_is(&self, width: u32, height: u32) -> bool {
        let is_small = self.max_pixels.is_none_or(|most| pixels(width, height) <= u64::from(most));
        is_small
            && self.crop.is_none()
            && self.scale.is_none()
            && self.position == Position::Original
            && self.background.is_none()
            && self.channels == Channels::Rgba
            && self.format == Format::Png
    }
}

fn pixels(width: u32, height: u32) -> u64 {
    u64::from(width) * u64::from(height)
}

fn alpha_of(picture: &RgbaImage) -> GrayImage {
    GrayImage::from_fn(picture.width(), picture.height(), |x, y| {
        image::Luma([picture.get_pixel(x, y).0[3]])
    })
}

#[cfg(test)]
mod tests;
