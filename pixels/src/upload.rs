//! Prepares an uploaded file for storage: upright, without metadata, with a thumbnail.
//!
//! An upright picture keeps its compressed data byte for byte and loses only metadata (camera, location, comments,
//! embedded previews); its color profile stays. A rotated picture is turned upright and encoded again.

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder};
use img_parts::ImageICC;
use img_parts::jpeg::{Jpeg, markers};
use img_parts::png::Png;
use img_parts::webp::WebP;

use crate::decode::{self, FileFormat};
use crate::thumbnail::{Thumbnail, encode_with_thumbnail};
use crate::{Limits, Picture, PixelError};

/// JPEG quality of a picture that was turned upright, 1 to 100.
const TURNED_QUALITY: u8 = 95;
/// JPEG quality of a thumbnail, 1 to 100.
const THUMBNAIL_QUALITY: u8 = 82;

/// An uploaded picture, ready for storage.
#[derive(Debug)]
pub struct Upload {
    /// The file to store.
    pub bytes: Bytes,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: &'static str,
    /// Width of the upright picture in pixels.
    pub width: u32,
    /// Height of the upright picture in pixels.
    pub height: u32,
    /// A JPEG, or a PNG if the picture has transparency; at most [`crate::thumbnail::THUMBNAIL_SIDE`] pixels per side.
    pub thumbnail: Bytes,
    /// `image/png` or `image/jpeg`.
    pub thumbnail_type: &'static str,
}

/// Prepares an uploaded file for storage. A rotated PNG or WebP becomes a PNG.
///
/// # Errors
/// Same as [`decode::decode`], and [`PixelError::Internal`] if an encoder fails.
pub fn prepare(file: &Bytes, limits: &Limits) -> Result<Upload, PixelError> {
    let decoded = decode::decode_file(file, limits)?;
    let (picture, format) = (decoded.picture, decoded.format);
    let (bytes, format) = match (decoded.was_upright, format) {
        (true, format) => (without_metadata(file, format)?, format),
        (false, FileFormat::Jpeg) => (encode_jpeg(&picture, TURNED_QUALITY)?, FileFormat::Jpeg),
        (false, FileFormat::Png | FileFormat::WebP) => {
            (encode_with_thumbnail(&picture)?.0, FileFormat::Png)
        }
    };
    let (width, height) = (picture.width, picture.height);
    let (thumbnail, thumbnail_format) = thumbnail(&picture)?;
    Ok(Upload {
        bytes,
        content_type: format.content_type(),
        width,
        height,
        thumbnail,
        thumbnail_type: thumbnail_format.content_type(),
    })
}

/// Drops everything that does not affect how the file is displayed. The compressed pixels do not change.
fn without_metadata(file: &Bytes, format: FileFormat) -> Result<Bytes, PixelError> {
    let damaged = |error: img_parts::Error| unreadable(&error);
    match format {
        FileFormat::Jpeg => {
            let mut jpeg = Jpeg::from_bytes(file.clone()).map_err(damaged)?;
            jpeg.segments_mut().retain(|segment| match segment.marker() {
                markers::APP2 => segment.contents().starts_with(b"ICC_PROFILE\0"),
                // APP0 is the JFIF density, APP14 the Adobe color transform, which CMYK needs.
                markers::APP0 | markers::APP14 => true,
                markers::APP1..=markers::APP15 | markers::COM => false,
                _ => true,
            });
            up_to_end_of_image(&jpeg.encoder().bytes())
                .ok_or_else(|| PixelError::Unreadable("it is truncated".to_owned()))
        }
        FileFormat::Png => {
            let mut png = Png::from_bytes(file.clone()).map_err(damaged)?;
            png.chunks_mut().retain(|chunk| {
                matches!(
                    &chunk.kind(),
                    b"IHDR"
                        | b"PLTE"
                        | b"IDAT"
                        | b"IEND"
                        | b"tRNS"
                        | b"cHRM"
                        | b"gAMA"
                        | b"iCCP"
                        | b"sBIT"
                        | b"sRGB"
                        | b"bKGD"
                        | b"pHYs"
                        | b"cICP"
                )
            });
            Ok(png.encoder().bytes())
        }
        FileFormat::WebP => {
            use img_parts::ImageEXIF;
            let mut webp = WebP::from_bytes(file.clone()).map_err(damaged)?;
            let profile = webp.icc_profile();
            webp.set_exif(None);
            webp.remove_chunks_by_id(*b"XMP ");
            webp.set_icc_profile(profile);
            Ok(webp.encoder().bytes())
        }
    }
}

/// Drops the bytes after the end marker of a JPEG; `None` if there is no end marker.
fn up_to_end_of_image(jpeg: &Bytes) -> Option<Bytes> {
    let mut at = 2;
    loop {
        // A marker may be preceded by any number of 0xFF bytes (ITU-T T.81, B.1.1.2).
        while *jpeg.get(at + 1)? == 0xff {
            at += 1;
        }
        match (jpeg[at], jpeg[at + 1]) {
            (0xff, markers::EOI) => return Some(jpeg.slice(..at + 2)),
            (0xff, markers::RST0..=markers::RST7) => at += 2,
            (0xff, marker) => {
                let length = [*jpeg.get(at + 2)?, *jpeg.get(at + 3)?];
                at += 2 + usize::from(u16::from_be_bytes(length));
                if marker == markers::SOS {
                    // In compressed data, 0xFF is followed by 0 or a restart marker (T.81, B.1.1.5).
                    let next = jpeg.get(at..)?.windows(2).position(|pair| {
                        pair[0] == 0xff
                            && !matches!(pair[1], 0 | 0xff | markers::RST0..=markers::RST7)
                    });
                    at += next?;
                }
            }
            _ => return None,
        }
    }
}

fn thumbnail(picture: &Picture) -> Result<(Bytes, FileFormat), PixelError> {
    let thumbnail = Thumbnail::of(picture);
    // The thumbnail's samples are RGB, which a profile of gray samples does not describe.
    let icc = picture.icc.as_deref().filter(|_| !picture.gray);
    if picture.alpha.is_some() {
        return Ok((thumbnail.encode(icc)?, FileFormat::Png));
    }
    let (width, height, rgba) = thumbnail.into_rgba()?;
    let rgb = rgba.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
    let icc = icc.map(<[u8]>::to_vec);
    let small = Picture { width, height, rgb, alpha: None, gray: picture.gray, icc };
    Ok((encode_jpeg(&small, THUMBNAIL_QUALITY)?, FileFormat::Jpeg))
}

/// Encodes an opaque picture, gray as gray.
fn encode_jpeg(picture: &Picture, quality: u8) -> Result<Bytes, PixelError> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
    if let Some(profile) = &picture.icc {
        // Better no profile than no picture: the format limits a profile's size.
        let _ = encoder.set_icc_profile(profile.clone());
    }
    let gray: Vec<u8>;
    let (samples, color) = if picture.gray {
        gray = picture.rgb.iter().step_by(3).copied().collect();
        (&gray, ExtendedColorType::L8)
    } else {
        (&picture.rgb, ExtendedColorType::Rgb8)
    };
    encoder
        .write_image(samples, picture.width, picture.height, color)
        .map_err(|error| PixelError::Internal(format!("encoding a JPEG: {error}")))?;
    Ok(bytes.into())
}

fn unreadable(error: &img_parts::Error) -> PixelError {
    tracing::debug!(%error, "Cannot parse an uploaded file");
    PixelError::Unreadable("it is damaged".to_owned())
}
