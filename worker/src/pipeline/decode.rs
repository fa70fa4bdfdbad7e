//! Bytes to an upright 8-bit RGB picture.
//!
//! The format comes from the first bytes, never from a name. Sizes are read from the header and checked
//! before a pixel is decoded. Gray becomes RGB, palettes are expanded, 16-bit samples are rounded to 8,
//! CMYK is converted without a profile; of an animation the first frame is taken.

use std::io::{Cursor, ErrorKind};

use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageResult};

use super::orient::{upright, upright_size};
use super::{Limits, Picture, PipelineError};

/// What decoding may allocate beyond the pixels themselves: profiles, metadata, decoder state.
const SPARE_BYTES: u64 = 32 << 20;

/// The widest pixel a decoder gives: RGBA of 16 bits each.
const MAX_PIXEL_BYTES: u64 = 8;

/// Decodes a PNG, JPEG or WebP file.
///
/// # Errors
/// [`PipelineError::Unreadable`] when the bytes are none of these or are damaged,
/// [`PipelineError::TooLarge`] when a side is beyond `limits`.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture, PipelineError> {
    match Format::of(bytes)? {
        Format::Png => {
            let (width, height) = png_size(bytes)?;
            check_size(width, height, *limits)?;
            // Chunks before the pixels are inflated as soon as the decoder is made.
            let allocation = allocation_limit(width, height);
            read(PngDecoder::with_limits(Cursor::new(bytes), allocation), *limits)
        }
        Format::Jpeg => {
            check_jpeg_ends(bytes)?;
            read(JpegDecoder::new(Cursor::new(bytes)), *limits)
        }
        Format::WebP => {
            check_webp_ends(bytes)?;
            read(WebPDecoder::new(Cursor::new(bytes)), *limits)
        }
    }
}

/// Looks at what can be told without decoding: the format, the size, and whether the file's end is there. What passes
/// may still be damaged.
///
/// # Errors
/// As [`decode`].
pub fn check(bytes: &[u8], limits: &Limits) -> Result<(), PipelineError> {
    let size = |decoder: ImageResult<(u32, u32)>| decoder.map_err(|error| refused(&error));
    let (width, height) = match Format::of(bytes)? {
        Format::Png => png_size(bytes)?,
        Format::Jpeg => {
            check_jpeg_ends(bytes)?;
            size(JpegDecoder::new(Cursor::new(bytes)).map(|decoder| decoder.dimensions()))?
        }
        Format::WebP => {
            check_webp_ends(bytes)?;
            size(WebPDecoder::new(Cursor::new(bytes)).map(|decoder| decoder.dimensions()))?
        }
    };
    check_size(width, height, *limits)
}

#[derive(Clone, Copy)]
enum Format {
    Png,
    Jpeg,
    WebP,
}

impl Format {
    fn of(bytes: &[u8]) -> Result<Self, PipelineError> {
        match bytes {
            [] => Err(unreadable("the file is empty")),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Ok(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Ok(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Ok(Self::WebP),
            _ => Err(unreadable("it is not a PNG, JPEG or WebP file")),
        }
    }
}

fn read<D: ImageDecoder>(
    decoder: ImageResult<D>,
    limits: Limits,
) -> Result<Picture, PipelineError> {
    let mut decoder = decoder.map_err(|error| refused(&error))?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, limits)?;
    decoder.set_limits(allocation_limit(width, height)).map_err(|error| refused(&error))?;
    // Metadata that cannot be read does not make the picture unreadable.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let gray = matches!(
        decoder.color_type(),
        ColorType::L8 | ColorType::La8 | ColorType::L16 | ColorType::La16
    );
    let space = if gray { *b"GRAY" } else { *b"RGB " };
    let icc = decoder.icc_profile().ok().flatten().filter(|profile| describes(profile, space));
    let image = DynamicImage::from_decoder(decoder).map_err(|error| refused(&error))?;

    let (rgb, alpha) = planes(image);
    let rgb = upright::<3>(rgb, width, height, orientation);
    let alpha = alpha.map(|alpha| upright::<1>(alpha, width, height, orientation));
    let (width, height) = upright_size(width, height, orientation);
    Ok(Picture { width, height, rgb, alpha, gray, icc })
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

/// Whether a profile is sound and describes samples of this colour space. One of CMYK samples says nothing
/// about the RGB we made of them, and one that is broken nothing at all; neither may be passed on.
///
/// ICC.1: the header's first field is the profile's size (7.2.2), the colour space is at offset 16 (7.2.6),
/// `acsp` at 36 (7.2.9); at 128 the number of tags, then for each its signature, offset and size (7.3).
fn describes(profile: &[u8], space: [u8; 4]) -> bool {
    let field = |at: usize| {
        let bytes = profile.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
    };
    let is_within = |tag: usize| {
        let (offset, size) = (field(132 + tag * 12 + 4)?, field(132 + tag * 12 + 8)?);
        Some(offset >= 128 && offset.checked_add(size)? <= profile.len())
    };
    let has_sound_tags =
        |count: usize| count <= 1024 && (0..count).all(|tag| is_within(tag) == Some(true));
    field(0).is_some_and(|size| (132..=profile.len()).contains(&size))
        && profile.get(16..20) == Some(&space)
        && profile.get(36..40) == Some(b"acsp")
        && field(128).is_some_and(has_sound_tags)
}

/// Width and height of the header chunk, which always comes first.
fn png_size(bytes: &[u8]) -> Result<(u32, u32), PipelineError> {
    let field = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    match (field(16), field(20)) {
        (Some(width), Some(height)) => Ok((width, height)),
        _ => Err(unreadable("it ends within its header")),
    }
}

/// The decoder fills what is missing with gray and says nothing; a picture whose lower half is gray is
/// not worth a credit. Within a scan the byte 0xff is always escaped, so `ff d9` is the real end mark.
fn check_jpeg_ends(bytes: &[u8]) -> Result<(), PipelineError> {
    let scan = first_scan(bytes).unwrap_or(bytes);
    if scan.windows(2).rev().any(|pair| pair == [0xff, 0xd9]) {
        Ok(())
    } else {
        Err(unreadable("it is cut short"))
    }
}

/// A WebP file says in its fifth to eighth byte how long it is after them (RFC 9649, 2.4).
fn check_webp_ends(bytes: &[u8]) -> Result<(), PipelineError> {
    let length = bytes.get(4..8).and_then(|length| length.try_into().ok()).map(u32::from_le_bytes);
    match length {
        Some(length) if bytes.len() as u64 >= u64::from(length) + 8 => Ok(()),
        _ => Err(unreadable("it is cut short")),
    }
}

/// What follows the first start-of-scan marker, found by walking the segments: metadata may hold a
/// thumbnail with marks of its own.
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

fn check_size(width: u32, height: u32, limits: Limits) -> Result<(), PipelineError> {
    let max_dimension = limits.max_dimension;
    if width == 0 || height == 0 {
        Err(unreadable("it has no pixels"))
    } else if width > max_dimension || height > max_dimension {
        Err(PipelineError::TooLarge { width, height, max_dimension })
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

/// A decoder's refusal in words that mean something to whoever has the picture.
fn refused(error: &ImageError) -> PipelineError {
    let text = error.to_string();
    let is_cut = matches!(error, ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof)
        || text.contains("unexpected end of");
    unreadable(match error {
        _ if is_cut => "it is cut short",
        ImageError::Unsupported(_) => &text,
        ImageError::Limits(_) => "decoding it would take more memory than its size explains",
        _ => "it is damaged",
    })
}

fn unreadable(reason: &str) -> PipelineError {
    PipelineError::Unreadable(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use image::{ImageFormat, RgbImage};

    use super::*;

    fn reason(bytes: &[u8]) -> String {
        decode(bytes, &Limits::default()).expect_err("it must be refused").to_string()
    }

    #[test]
    fn what_is_no_picture_is_refused_in_words() {
        assert!(reason(b"").contains("empty"));
        assert!(reason(b"hello, this is a text").contains("not a PNG, JPEG or WebP"));
        assert!(reason(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").contains("ends within its header"));
        assert!(reason(b"\xff\xd8\xff\xe0 nothing more").contains("cut short"));
        for format in [ImageFormat::Png, ImageFormat::WebP] {
            let mut bytes = Cursor::new(Vec::new());
            let noise = RgbImage::from_fn(64, 64, |x, y| {
                image::Rgb([(x * y) as u8, (x ^ y) as u8, x as u8])
            });
            noise.write_to(&mut bytes, format).unwrap();
            let whole = bytes.into_inner();
            assert!(check(&whole, &Limits::default()).is_ok());
            assert!(reason(&whole[..whole.len() / 2]).contains("cut short"), "{format:?}");
            if format == ImageFormat::Png {
                let mut spoilt = whole;
                let middle = spoilt.len() / 2;
                spoilt[middle..middle + 8].fill(0x55);
                assert!(reason(&spoilt).ends_with("it is damaged"), "{}", reason(&spoilt));
            }
        }
    }

    #[test]
    fn only_sound_profiles_of_the_right_samples_are_kept() {
        let mut profile = vec![0; 160];
        profile[..4].copy_from_slice(&160_u32.to_be_bytes());
        profile[16..20].copy_from_slice(b"RGB ");
        profile[36..40].copy_from_slice(b"acsp");
        profile[131] = 1; // one tag, of 16 bytes at 144
        profile[139] = 144;
        profile[143] = 16;
        assert!(describes(&profile, *b"RGB "));
        assert!(!describes(&profile, *b"GRAY"));
        assert!(!describes(&profile[..159], *b"RGB "), "it is cut short");
        profile[139] = 145;
        assert!(!describes(&profile, *b"RGB "), "its tag lies outside");
        assert!(!describes(b"RGB ", *b"RGB "));
    }
}
