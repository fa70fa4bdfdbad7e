//! A picture's header: the format, the size and the memory that decoding takes, read without decoding a pixel.

use std::io::Cursor;

use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder};

use super::exif_block::without_prefix;
use super::foreign::{self, Foreign};
use super::jpeg_segments::JpegSegments;
use super::png_chunks::{Chunk, chunks, chunks_before_pixels};
use super::{webp_chunks, webp_tables};
use crate::{Limits, PixelError, preview};

/// The memory for everything but pixels, in bytes: rows, tables and profiles.
const SPARE_BYTES: u64 = 8 << 20;
/// Maximum memory for making a thumbnail, in bytes.
const THUMBNAIL_BYTES: u64 = 24 << 20;

/// Maximum number of chunks in a PNG, so that walking over them takes no more than a millisecond. Encoders write
/// chunks of kilobytes.
const MOST_PNG_CHUNKS: usize = 1 << 16;
/// Maximum number of chunks in a WebP, whose decoder takes longer for each chunk.
const MOST_WEBP_CHUNKS: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    Png,
    Jpeg,
    WebP,
}

impl FileFormat {
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
        }
    }

    pub(super) fn of(bytes: &[u8]) -> Result<Self, PixelError> {
        match bytes {
            [] => Err(unreadable("the file is empty")),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Ok(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Ok(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Ok(Self::WebP),
            _ => Err(Foreign::of(bytes).map_or(PixelError::UnsupportedFormat, PixelError::Foreign)),
        }
    }
}

/// The facts that a file states about its picture before the first pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    pub format: FileFormat,
    /// Width in pixels, as stored.
    pub width: u32,
    /// Height in pixels, as stored.
    pub height: u32,
    /// How to turn the stored pixels upright.
    pub orientation: Orientation,
    /// The size of the file, in bytes.
    file: u64,
    /// Peak memory of the decoder with its output, in bytes.
    decoder: u64,
    /// The memory of the decoded picture, in bytes.
    picture: u64,
    /// The size of a JPEG's color profile, in bytes; 0 for other formats.
    pub(super) profile_bytes: usize,
}

impl Header {
    /// Reads the header of a file. A file that passes may still be damaged.
    ///
    /// Callers do that on async threads and before they know what a file is worth, so its time is bounded, whatever the
    /// file says: 15 ms for the worst WebP that was found, less than 1 ms for a PNG, and about 1 ms per megabyte of JPEG.
    ///
    /// # Errors
    /// [`PixelError::Foreign`] for an animation or another known format, [`PixelError::UnsupportedFormat`] for other files,
    /// [`PixelError::Unreadable`] if the file is empty or truncated, its header is damaged, or it has too many chunks,
    /// [`PixelError::TooLarge`] if a side exceeds `limits`.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, PixelError> {
        let mut header = match FileFormat::of(bytes)? {
            FileFormat::Png => png(bytes, *limits),
            FileFormat::Jpeg => jpeg(bytes, *limits),
            FileFormat::WebP => webp(bytes, *limits),
        }?;
        header.file = bytes.len() as u64;
        Ok(header)
    }

    /// Returns the peak memory that decoding takes beside the file, in bytes.
    pub fn decode_bytes(&self) -> u64 {
        // One plane is rotated at a time; the largest has three bytes per pixel.
        let turning = if self.is_upright() { 0 } else { self.picture + 3 * self.pixels() };
        self.decoder.max(turning) + SPARE_BYTES
    }

    /// Returns the memory of the decoded picture, in bytes.
    pub const fn picture_bytes(&self) -> u64 {
        self.picture
    }

    /// Returns the peak memory that [`crate::upload::prepare`] takes beside the file, in bytes.
    pub fn prepare_bytes(&self) -> u64 {
        // A rotated picture is encoded again, and noise does not compress. The fast compression of PNGs has a
        // fixed code, which takes up to 12 bits per byte of noise.
        let written = match self.format {
            _ if self.is_upright() => self.file,
            FileFormat::Jpeg => self.picture,
            FileFormat::Png | FileFormat::WebP => self.picture / 2 * 3,
        };
        // The thumbnail is finished before the preview begins.
        let preview = preview::memory_bytes(self.width, self.height);
        let copies = THUMBNAIL_BYTES.min(8 * self.pixels()).max(preview);
        // EXIF is put on a copy of the file before the thumbnail begins.
        let encoding = self.picture + written + copies.max(written);
        self.decode_bytes().max(encoding + SPARE_BYTES)
    }

    /// Returns whether the file stores its pixels upright.
    pub fn is_upright(&self) -> bool {
        self.orientation == Orientation::NoTransforms
    }

    fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}

/// Returns the EXIF block of a PNG, from the byte order mark. It may come after the pixels (PNG 3, 5.6).
pub(super) fn png_exif(bytes: &[u8]) -> Option<&[u8]> {
    chunks_of_png(bytes).find(|chunk| chunk.name == b"eXIf").map(|chunk| without_prefix(chunk.data))
}

/// Returns the EXIF block of a WebP, from the byte order mark.
pub(super) fn webp_exif(bytes: &[u8]) -> Option<&[u8]> {
    webp_chunks::extension(bytes, *b"EXIF").map(without_prefix)
}

/// Returns the chunks of a PNG before its end. What follows, such as padding, may look like chunks.
fn chunks_of_png(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    chunks(bytes).take_while(|chunk| chunk.name != b"IEND")
}

/// Refuses a PNG or WebP whose chunks take long to walk over.
pub(super) fn check_chunks(bytes: &[u8]) -> Result<(), PixelError> {
    let has_too_many = if bytes.starts_with(b"\x89PNG") {
        chunks_before_pixels(bytes).nth(MOST_PNG_CHUNKS).is_some()
            || chunks_of_png(bytes).nth(MOST_PNG_CHUNKS).is_some()
    } else {
        bytes.starts_with(b"RIFF") && webp_chunks::chunks(bytes).nth(MOST_WEBP_CHUNKS).is_some()
    };
    if has_too_many { Err(unreadable("it has too many chunks")) } else { Ok(()) }
}

fn check_still(bytes: &[u8]) -> Result<(), PixelError> {
    foreign::animation(bytes).map_or(Ok(()), |animation| Err(PixelError::Foreign(animation)))
}

/// PNGs are decoded row by row, right into the planes of the picture.
fn png(bytes: &[u8], limits: Limits) -> Result<Header, PixelError> {
    let field = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    // The header chunk always comes first: length, type, width, height, depth, color type.
    let (Some(width), Some(height), Some(color)) = (field(16), field(20), bytes.get(25)) else {
        return Err(unreadable("it ends within its header"));
    };
    check_size(width, height, limits)?;
    check_chunks(bytes)?;
    check_still(bytes)?;
    let has_alpha =
        color & 4 != 0 || chunks_before_pixels(bytes).any(|chunk| chunk.name == b"tRNS");
    // Unreadable metadata does not make the picture unreadable.
    let orientation = png_exif(bytes).and_then(Orientation::from_exif_chunk);
    let pixels = u64::from(width) * u64::from(height);
    let picture = pixels * if has_alpha { 4 } else { 3 };
    let format = FileFormat::Png;
    Ok(Header {
        format,
        width,
        height,
        orientation: orientation.unwrap_or(Orientation::NoTransforms),
        file: 0,
        decoder: picture,
        picture,
        profile_bytes: 0,
    })
}

fn jpeg(bytes: &[u8], limits: Limits) -> Result<Header, PixelError> {
    let segments = JpegSegments::read(bytes)?;
    let (width, height) = (u32::from(segments.width), u32::from(segments.height));
    check_size(width, height, limits)?;
    let pixels = u64::from(width) * u64::from(height);
    let orientation = segments.exif.and_then(Orientation::from_exif_chunk);
    // The decoder copies the file, and its metadata twice more. Gray samples become RGB afterwards.
    let samples = if segments.is_gray() { 1 } else { 3 };
    let decoding = bytes.len() as u64
        + 2 * segments.metadata_bytes()
        + segments.coefficient_bytes()
        + samples * pixels;
    let widening = if segments.is_gray() { 4 * pixels } else { 0 };
    Ok(Header {
        format: FileFormat::Jpeg,
        width,
        height,
        orientation: orientation.unwrap_or(Orientation::NoTransforms),
        file: 0,
        decoder: decoding.max(widening),
        picture: 3 * pixels,
        profile_bytes: segments.profile_bytes,
    })
}

fn webp(bytes: &[u8], limits: Limits) -> Result<Header, PixelError> {
    // The fifth to eighth byte hold the number of bytes that follow (RFC 9649, 2.4).
    let length = bytes.get(4..8).and_then(|length| length.try_into().ok()).map(u32::from_le_bytes);
    if length.is_none_or(|length| (bytes.len() as u64) < u64::from(length) + 8) {
        return Err(unreadable("it is truncated"));
    }
    check_chunks(bytes)?;
    check_still(bytes)?;
    let damaged = |_| unreadable("it is damaged");
    let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    // Reading the tables takes time.
    check_size(width, height, limits)?;
    // The decoder compares the size of a lossy stream with the picture's only after decoding it.
    if webp_chunks::lossy_sizes(bytes).any(|(w, h)| w > width || h > height) {
        return Err(unreadable("it is damaged"));
    }
    let has_alpha = decoder.color_type() == ColorType::Rgba8;
    // Bytes per pixel, doubled: the samples; brightness and color of the lossy codec (1.5); a lossless picture (4),
    // whose green channel (1) is the alpha of a lossy one.
    let doubled = match (has_alpha, bytes.get(12..16)) {
        (true, Some(b"VP8L")) => 2 * 5,
        (true, _) => 2 * 4 + 3 + 2 * 5,
        (false, Some(b"VP8 ")) => 2 * 3 + 3,
        (false, _) => 2 * 3 + 2 * 4,
    };
    let pixels = u64::from(width) * u64::from(height);
    // The decoder would allocate what the block claims to have.
    let orientation = webp_exif(bytes).and_then(Orientation::from_exif_chunk);
    let tables = webp_tables::bytes(bytes, (width, height));
    Ok(Header {
        format: FileFormat::WebP,
        width,
        height,
        orientation: orientation.unwrap_or(Orientation::NoTransforms),
        file: 0,
        // The decoder copies metadata.
        decoder: pixels * doubled / 2 + bytes.len() as u64 + tables,
        picture: pixels * if has_alpha { 4 } else { 3 },
        profile_bytes: 0,
    })
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

fn unreadable(reason: &str) -> PixelError {
    PixelError::Unreadable(reason.to_owned())
}
