//! Decodes PNG, JPEG and WebP files to upright 8-bit RGB pictures.
//!
//! The first bytes determine the format, never a file name. The header's size is checked before any pixel is
//! decoded. Gray becomes RGB, palettes are expanded, 16-bit samples are rounded to 8, CMYK is converted without a
//! profile. Of an animation, only the first frame is decoded.

use std::io::{Cursor, ErrorKind};

use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageResult};

use crate::orientation::{upright, upright_size};
use crate::{Limits, Picture, PixelError, icc};

/// The memory for decoding beyond the pixels, in bytes: profiles, metadata, decoder state.
const SPARE_BYTES: u64 = 32 << 20;

/// The largest pixel of any decoder: RGBA with 16 bits per sample.
const MAX_PIXEL_BYTES: u64 = 8;

/// A decoded file.
pub struct Decoded {
    /// The upright picture.
    pub picture: Picture,
    /// The file's format.
    pub format: FileFormat,
    /// Whether the file stored its pixels upright.
    pub was_upright: bool,
}

/// Decodes a PNG, JPEG or WebP file to an upright picture.
///
/// # Errors
/// [`PixelError::UnsupportedFormat`] for any other file, [`PixelError::Unreadable`] if the file is empty, damaged or
/// truncated, [`PixelError::TooLarge`] if a side exceeds `limits`.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture, PixelError> {
    Ok(decode_file(bytes, limits)?.picture)
}

/// Decodes like [`decode`] and also returns the format and whether the pixels were stored upright.
///
/// # Errors
/// Same as [`decode`].
pub fn decode_file(bytes: &[u8], limits: &Limits) -> Result<Decoded, PixelError> {
    let format = FileFormat::of(bytes)?;
    let (picture, was_upright) = match format {
        FileFormat::Png => {
            let (width, height) = png_size(bytes)?;
            check_size(width, height, *limits)?;
            // The decoder inflates the chunks before the pixels on creation, so it needs its limit now.
            let allocation = allocation_limit(width, height);
            read(PngDecoder::with_limits(Cursor::new(bytes), allocation), *limits)
        }
        FileFormat::Jpeg => {
            check_jpeg_ends(bytes)?;
            read(JpegDecoder::new(Cursor::new(bytes)), *limits)
        }
        FileFormat::WebP => {
            check_webp_ends(bytes)?;
            read(WebPDecoder::new(Cursor::new(bytes)), *limits)
        }
    }?;
    Ok(Decoded { picture, format, was_upright })
}

/// Checks a file without decoding its pixels: the format, the size, and whether its end is present. A file that
/// passes may still be damaged.
///
/// # Errors
/// Same as [`decode`].
pub fn check(bytes: &[u8], limits: &Limits) -> Result<(), PixelError> {
    let size = |decoder: ImageResult<(u32, u32)>| decoder.map_err(|error| pixel_error(&error));
    let (width, height) = match FileFormat::of(bytes)? {
        FileFormat::Png => png_size(bytes)?,
        FileFormat::Jpeg => {
            check_jpeg_ends(bytes)?;
            size(JpegDecoder::new(Cursor::new(bytes)).map(|decoder| decoder.dimensions()))?
        }
        FileFormat::WebP => {
            check_webp_ends(bytes)?;
            size(WebPDecoder::new(Cursor::new(bytes)).map(|decoder| decoder.dimensions()))?
        }
    };
    check_size(width, height, *limits)
}

/// A file format that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    WebP,
}

impl FileFormat {
    /// Returns the format's MIME type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
        }
    }

    fn of(bytes: &[u8]) -> Result<Self, PixelError> {
        match bytes {
            [] => Err(unreadable("the file is empty")),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Ok(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Ok(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Ok(Self::WebP),
            _ => Err(PixelError::UnsupportedFormat),
        }
    }
}

fn read<D: ImageDecoder>(
    decoder: ImageResult<D>,
    limits: Limits,
) -> Result<(Picture, bool), PixelError> {
    let mut decoder = decoder.map_err(|error| pixel_error(&error))?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, limits)?;
    decoder.set_limits(allocation_limit(width, height)).map_err(|error| pixel_error(&error))?;
    // Unreadable metadata does not make the picture unreadable.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let gray = matches!(
        decoder.color_type(),
        ColorType::L8 | ColorType::La8 | ColorType::L16 | ColorType::La16
    );
    let space = if gray { *b"GRAY" } else { *b"RGB " };
    let icc = decoder.icc_profile().ok().flatten().filter(|profile| icc::describes(profile, space));
    let image = DynamicImage::from_decoder(decoder).map_err(|error| pixel_error(&error))?;

    let (rgb, alpha) = planes(image);
    let rgb = upright::<3>(rgb, width, height, orientation);
    let alpha = alpha.map(|alpha| upright::<1>(alpha, width, height, orientation));
    let (width, height) = upright_size(width, height, orientation);
    let picture = Picture { width, height, rgb, alpha, gray, icc };
    Ok((picture, orientation == Orientation::NoTransforms))
}

fn planes(image: DynamicImage) -> (Vec<u8>, Option<Vec<u8>>) {
    if !image.color().has_alpha() {
        return (image.into_rgb8().into_raw(), None);
    }
    let rgba = image.into_rgba8().into_raw();
    let mut rgb = Vec::with_capacity(rgba.len() / 4 * 3);
    let mut alpha = Vec::with_capacity(rgba.len() / 4);
    for pixel in rgba.chunks_exact(4) {
        rgb.extend_from_slice(&pixel[..3]);
        alpha.push(pixel[3]);
    }
    let is_opaque = alpha.iter().all(|value| *value == u8::MAX);
    (rgb, (!is_opaque).then_some(alpha))
}

/// Reads the width and height from the header chunk, which always comes first.
fn png_size(bytes: &[u8]) -> Result<(u32, u32), PixelError> {
    let field = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    match (field(16), field(20)) {
        (Some(width), Some(height)) => Ok((width, height)),
        _ => Err(unreadable("it ends within its header")),
    }
}

/// Checks that a JPEG has an end marker. Without one, the decoder silently fills the rest with gray, and the user
/// would pay for a picture whose lower half is gray. In a scan the byte `ff` is always escaped, so `ff d9` is the
/// real end marker.
fn check_jpeg_ends(bytes: &[u8]) -> Result<(), PixelError> {
    let scan = first_scan(bytes).unwrap_or(bytes);
    if scan.windows(2).rev().any(|pair| pair == [0xff, 0xd9]) {
        Ok(())
    } else {
        Err(unreadable("it is truncated"))
    }
}

/// Checks a WebP file's length: its fifth to eighth byte hold the number of bytes that follow (RFC 9649, 2.4).
fn check_webp_ends(bytes: &[u8]) -> Result<(), PixelError> {
    let length = bytes.get(4..8).and_then(|length| length.try_into().ok()).map(u32::from_le_bytes);
    match length {
        Some(length) if bytes.len() as u64 >= u64::from(length) + 8 => Ok(()),
        _ => Err(unreadable("it is truncated")),
    }
}

/// Returns the bytes after the first start-of-scan marker. Walks the segments, because metadata may contain a
/// thumbnail with its own markers.
fn first_scan(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.get(2..)?;
    loop {
        match rest {
            [0xff, 0xda, scan @ ..] => return Some(scan),
            [0xff, 0xff, ..] => rest = &rest[1..],
            [0xff, _, high, low, ..] => {
                rest = rest.get(2 + usize::from(u16::from_be_bytes([*high, *low]))..)?;
            }
            _ => return None,
        }
    }
}

fn check_size(width: u32, height: u32, limits: Limits) -> Result<(), PixelError> {
    let max_dimension = limits.max_dimension;
    if width == 0 || height == 0 {
        Err(unreadable("it has no pixels"))
    } else if width > max_dimension || height > max_dimension {
        Err(PixelError::TooLarge { width, height, max_dimension })
    } else {
        Ok(())
    }
}

fn allocation_limit(width: u32, height: u32) -> image::Limits {
    let pixels = u64::from(width) * u64::from(height);
    let mut limits = image::Limits::no_limits();
    limits.max_alloc = Some(pixels * MAX_PIXEL_BYTES + SPARE_BYTES);
    limits
}

/// Translates a decoder's error for the picture's owner.
fn pixel_error(error: &ImageError) -> PixelError {
    let text = error.to_string();
    let is_truncated = matches!(error, ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof)
        || text.contains("unexpected end of");
    unreadable(match error {
        _ if is_truncated => "it is truncated",
        ImageError::Unsupported(_) => &text,
        ImageError::Limits(_) => "decoding it takes more memory than its size justifies",
        _ => "it is damaged",
    })
}

fn unreadable(reason: &str) -> PixelError {
    PixelError::Unreadable(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use image::{ImageFormat, RgbImage};

    use super::*;

    fn reason(bytes: &[u8]) -> String {
        decode(bytes, &Limits::default()).expect_err("it must be refused").to_string()
    }

    #[test]
    fn unreadable_files_are_refused_with_a_reason() {
        assert!(reason(b"").contains("empty"));
        assert!(reason(b"hello, this is a text").contains("not a PNG, JPEG or WebP"));
        assert!(reason(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").contains("ends within its header"));
        assert!(reason(b"\xff\xd8\xff\xe0 nothing more").contains("truncated"));
        for format in [ImageFormat::Png, ImageFormat::WebP] {
            let mut bytes = Cursor::new(Vec::new());
            let noise = RgbImage::from_fn(64, 64, |x, y| {
                image::Rgb([(x * y) as u8, (x ^ y) as u8, x as u8])
            });
            noise.write_to(&mut bytes, format).unwrap();
            let whole = bytes.into_inner();
            assert!(check(&whole, &Limits::default()).is_ok());
            assert!(reason(&whole[..whole.len() / 2]).contains("truncated"), "{format:?}");
            if format == ImageFormat::Png {
                let mut damaged = whole;
                let middle = damaged.len() / 2;
                damaged[middle..middle + 8].fill(0x55);
                assert!(reason(&damaged).ends_with("it is damaged"), "{}", reason(&damaged));
            }
        }
    }
}
