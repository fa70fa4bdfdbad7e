//! Decodes PNG, JPEG and WebP files to upright 8-bit RGB pictures.
//!
//! The first bytes determine the format, never a file name. The header's size is checked before any pixel is
//! decoded. Gray becomes RGB, palettes are expanded, 16-bit samples are rounded to 8, CMYK is converted without a
//! profile. Animations are refused: only one of their frames would be kept.

pub(crate) mod exif_block;
mod foreign;
mod header;
mod jpeg;
mod jpeg_segments;
pub(crate) mod png_chunks;
mod png_rows;
mod webp_chunks;
mod webp_tables;

use std::io::{Cursor, ErrorKind};

use image::codecs::webp::WebPDecoder;
use image::{DynamicImage, ImageDecoder, ImageError};
use png::DecodingError;

pub use foreign::Foreign;
pub use header::{FileFormat, Header};

use crate::orientation::{upright, upright_size};
use crate::picture::split_alpha;
use crate::{Limits, Picture, PixelError, icc};
use jpeg_segments::JpegSegments;
use png_rows::Planes;

/// The reason for refusing a file that inflates.
const TOO_MUCH: &str = "decoding it takes more memory than its size justifies";

pub struct Decoded {
    pub picture: Picture,
    pub format: FileFormat,
    /// Whether the file stored its pixels upright.
    pub was_upright: bool,
    /// Whether the file may keep its color profile: it is not oversized. In a PNG, where only inflating tells the
    /// size, also that the decoder could use it.
    pub keeps_profile: bool,
}

/// Decodes a PNG, JPEG or WebP file to an upright picture. [`Header::decode_bytes`] says how much memory that takes.
///
/// # Errors
/// [`PixelError::Foreign`] for an animation or another known format, [`PixelError::UnsupportedFormat`] for other files,
/// [`PixelError::Unreadable`] if the file is empty, damaged or truncated, [`PixelError::TooLarge`] if a side exceeds `limits`.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture, PixelError> {
    Ok(decode_file(bytes, limits)?.picture)
}

/// Decodes like [`decode`] and also returns the format and whether the pixels were stored upright.
///
/// # Errors
/// Same as [`decode`].
pub fn decode_file(bytes: &[u8], limits: &Limits) -> Result<Decoded, PixelError> {
    let header = Header::read(bytes, limits)?;
    let Header { format, width, height, orientation, .. } = header;
    let has_small_profile = header.profile_bytes <= icc::MAX_PROFILE_BYTES;
    let Planes { rgb, alpha, gray, icc, stated } = match format {
        FileFormat::Png => png_rows::read(bytes).map_err(|error| png_error(&error)),
        FileFormat::Jpeg => {
            jpeg::read(bytes, has_small_profile, &header).map_err(|_| unreadable("it is damaged"))
        }
        FileFormat::WebP => read_webp(bytes, &header),
    }?;
    let alpha = alpha.filter(|alpha| alpha.iter().any(|value| *value != u8::MAX));
    let space = if gray { *b"GRAY" } else { *b"RGB " };
    let icc = icc.filter(|profile| icc::describes(profile, space));
    let keeps_profile = has_small_profile && (format != FileFormat::Png || icc.is_some());
    let icc = icc.or(stated);

    let rgb = upright::<3>(rgb, width, height, orientation);
    let alpha = alpha.map(|alpha| upright::<1>(alpha, width, height, orientation));
    let (width, height) = upright_size(width, height, orientation);
    let picture = Picture { width, height, rgb, alpha, gray, icc };
    Ok(Decoded { picture, format, was_upright: header.is_upright(), keeps_profile })
}

/// Checks a file without decoding its pixels: the format, the size, and whether its end is present. A file that
/// passes may still be damaged. Returns the width and height in pixels, as stored.
///
/// # Errors
/// Same as [`decode`].
pub fn check(bytes: &[u8], limits: &Limits) -> Result<(u32, u32), PixelError> {
    Header::read(bytes, limits).map(|header| (header.width, header.height))
}

/// Returns the EXIF block of a PNG, JPEG or WebP.
pub(crate) fn exif(bytes: &[u8]) -> Option<&[u8]> {
    header::check_chunks(bytes).ok()?;
    match FileFormat::of(bytes).ok()? {
        FileFormat::Png => header::png_exif(bytes),
        FileFormat::Jpeg => JpegSegments::read(bytes).ok()?.exif,
        FileFormat::WebP => header::webp_exif(bytes),
    }
}

/// Reads the planes of a WebP, as stored.
fn read_webp(bytes: &[u8], header: &Header) -> Result<Planes, PixelError> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|error| pixel_error(&error))?;
    if decoder.dimensions() != (header.width, header.height) {
        return Err(unreadable("it is damaged"));
    }
    let mut limits = image::Limits::no_limits();
    limits.max_alloc = Some(header.decode_bytes());
    decoder.set_limits(limits).map_err(|error| pixel_error(&error))?;
    // The decoder would allocate what a profile claims to have.
    let has_profile = webp_chunks::extension(bytes, *b"ICCP").is_some();
    let icc = if has_profile { decoder.icc_profile().ok().flatten() } else { None };
    let image = DynamicImage::from_decoder(decoder).map_err(|error| pixel_error(&error))?;
    let (rgb, alpha) = planes(image);
    Ok(Planes { rgb, alpha, gray: false, icc, stated: None })
}

fn planes(image: DynamicImage) -> (Vec<u8>, Option<Vec<u8>>) {
    if !image.color().has_alpha() {
        return (image.into_rgb8().into_raw(), None);
    }
    let mut samples = image.into_rgba8().into_raw();
    let alpha = split_alpha(&mut samples);
    (samples, Some(alpha))
}

/// Translates a decoder's error for the picture's owner.
fn pixel_error(error: &ImageError) -> PixelError {
    let text = error.to_string();
    let is_truncated = matches!(error, ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof)
        || text.contains("unexpected end of");
    unreadable(match error {
        _ if is_truncated => "it is truncated",
        ImageError::Unsupported(_) => &text,
        ImageError::Limits(_) => TOO_MUCH,
        _ => "it is damaged",
    })
}

fn png_error(error: &DecodingError) -> PixelError {
    let is_truncated = matches!(error, DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof)
        || error.to_string().contains("unexpected end of");
    unreadable(match error {
        _ if is_truncated => "it is truncated",
        DecodingError::LimitsExceeded => TOO_MUCH,
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
