//! Prepares an uploaded file for storage: upright, without metadata or with EXIF only, with a thumbnail and a preview.
//!
//! An upright picture keeps its compressed data byte for byte and loses only metadata (camera, location, comments,
//! embedded previews); its color profile stays unless it is oversized. A rotated picture is made upright and encoded
//! again.

mod metadata;

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder};

use crate::decode::{self, FileFormat};
use crate::encode::encode_picture;
use crate::exif::Exif;
use crate::preview::Preview;
use crate::thumbnail::{Thumbnail, small_profile};
use crate::{Limits, Picture, PixelError, icc};
use metadata::{strip_jpeg, strip_png, strip_webp};

/// JPEG quality of a picture that is encoded again, 1 to 100.
const ENCODED_QUALITY: u8 = 95;
/// JPEG quality of a thumbnail, 1 to 100.
const THUMBNAIL_QUALITY: u8 = 82;

/// An uploaded picture, ready for storage.
#[derive(Debug)]
pub struct Upload {
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
    /// A lossy WebP of at most [`crate::preview::PREVIEW_SIDE`] pixels per side; `None` if the picture is at most that
    /// large, or nobody will look at it.
    pub preview: Option<Bytes>,
}

/// Prepares an uploaded file for storage; `has_preview` says whether to make a preview, and `exif` is written into the
/// file. A rotated PNG or WebP becomes a PNG. [`decode::Header::prepare_bytes`] says how much memory that takes.
///
/// # Errors
/// Same as [`decode::decode`], and [`PixelError::Internal`] if an encoder fails.
pub fn prepare(
    file: &Bytes,
    limits: &Limits,
    has_preview: bool,
    exif: Option<&Exif>,
) -> Result<Upload, PixelError> {
    let decoded = decode::decode_file(file, limits)?;
    let (picture, format) = (decoded.picture, decoded.format);
    let (bytes, format) = match (decoded.was_upright, format) {
        (true, format) => {
            let stripped = match format {
                FileFormat::Jpeg => strip_jpeg(file, decoded.keeps_profile),
                FileFormat::Png => strip_png(file, decoded.keeps_profile),
                FileFormat::WebP => strip_webp(file),
            };
            let damaged = || PixelError::Unreadable("it is damaged".to_owned());
            (stripped.ok_or_else(damaged)?.into(), format)
        }
        (false, FileFormat::Jpeg) => (encode_jpeg(&picture, ENCODED_QUALITY)?, FileFormat::Jpeg),
        (false, FileFormat::Png | FileFormat::WebP) => (encode_picture(&picture)?, FileFormat::Png),
    };
    let bytes = marked(bytes, exif)?;
    let (width, height) = (picture.width, picture.height);
    let (thumbnail, thumbnail_format) = thumbnail(&picture)?;
    let preview = if has_preview { Preview::of(&picture)? } else { None };
    Ok(Upload {
        bytes,
        content_type: format.content_type(),
        width,
        height,
        thumbnail,
        thumbnail_type: thumbnail_format.content_type(),
        preview,
    })
}

/// Puts EXIF on a file, and drops the file without it before more is made of the picture.
fn marked(file: Bytes, exif: Option<&Exif>) -> Result<Bytes, PixelError> {
    match exif {
        Some(exif) => exif.put_on(&file),
        None => Ok(file),
    }
}

/// Encodes a picture whose own format cannot be stored: as JPEG, or as PNG if it has transparency.
///
/// # Errors
/// [`PixelError::Internal`] if an encoder fails.
pub fn encode_upright(picture: &Picture) -> Result<Bytes, PixelError> {
    if picture.alpha.is_some() {
        encode_picture(picture)
    } else {
        encode_jpeg(picture, ENCODED_QUALITY)
    }
}

fn thumbnail(picture: &Picture) -> Result<(Bytes, FileFormat), PixelError> {
    let thumbnail = Thumbnail::of(picture);
    if picture.alpha.is_some() {
        let icc = picture.icc.as_deref().and_then(icc::of_rgb);
        return Ok((thumbnail.encode(icc.as_deref())?, FileFormat::Png));
    }
    let (width, height, rgba) = thumbnail.into_rgba()?;
    let rgb = rgba.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
    let icc = small_profile(picture.icc.as_deref()).map(<[u8]>::to_vec);
    let small = Picture { width, height, rgb, alpha: None, gray: picture.gray, icc };
    Ok((encode_jpeg(&small, THUMBNAIL_QUALITY)?, FileFormat::Jpeg))
}

/// Encodes an opaque picture, gray as gray.
fn encode_jpeg(picture: &Picture, quality: u8) -> Result<Bytes, PixelError> {
    // Growing would copy; unused capacity takes no memory.
    let mut bytes = Vec::with_capacity(picture.rgb.len());
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
    bytes.shrink_to_fit();
    Ok(bytes.into())
}
