//! What becomes of an uploaded file: an upright picture without metadata, and a small copy of it.
//!
//! Nothing is decoded before its kind and its size have been read from the first bytes. A picture that is
//! upright keeps its compressed data as it is; only metadata goes (camera, place, comments, embedded
//! previews), colour profiles stay. One that lies on its side is turned and written anew.

use std::fmt::Display;
use std::io::Cursor;

use bytes::Bytes;
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use image::codecs::png::{CompressionType, PngDecoder, PngEncoder};
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageEncoder, ImageFormat};
use img_parts::ImageICC;
use img_parts::jpeg::{Jpeg, markers};
use img_parts::png::Png;
use img_parts::webp::WebP;

use crate::error::ApiError;

/// The longest side of a small copy, in pixels.
const THUMBNAIL_SIDE: u32 = 512;
/// The most memory that decoding one picture may take.
const MOST_MEMORY: u64 = 512 * 1024 * 1024;
/// The quality of a JPEG that had to be turned.
const TURNED_QUALITY: u8 = 95;
/// The quality of a small copy.
const THUMBNAIL_QUALITY: u8 = 82;

/// A picture that can be stored and shown.
#[derive(Debug)]
pub struct Picture {
    /// Its bytes.
    pub bytes: Bytes,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: &'static str,
    /// Pixels, as it is shown.
    pub width: u32,
    /// Pixels, as it is shown.
    pub height: u32,
    /// A small copy: JPEG, or PNG when there is transparency.
    pub thumbnail: Bytes,
    /// The kind of the small copy.
    pub thumbnail_type: &'static str,
}

/// Makes a picture of an uploaded file. Takes time and memory: run it on a thread that may block.
pub fn prepare(file: &Bytes, max_dimension: u32) -> Result<Picture, ApiError> {
    let format = image::guess_format(file).map_err(|_| ApiError::UnsupportedType)?;
    let source = Cursor::new(file.as_ref());
    match format {
        ImageFormat::Png => {
            let limits = limits();
            let decoder =
                PngDecoder::with_limits(source, limits).map_err(|error| unreadable(&error))?;
            read(decoder, file, Kind::Png, max_dimension)
        }
        ImageFormat::Jpeg => {
            let decoder = JpegDecoder::new(source).map_err(|error| unreadable(&error))?;
            read(decoder, file, Kind::Jpeg, max_dimension)
        }
        ImageFormat::WebP => {
            let decoder = WebPDecoder::new(source).map_err(|error| unreadable(&error))?;
            read(decoder, file, Kind::WebP, max_dimension)
        }
        _ => Err(ApiError::UnsupportedType),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Png,
    Jpeg,
    WebP,
}

impl Kind {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
        }
    }
}

fn limits() -> image::Limits {
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    limits
}

fn read(
    mut decoder: impl ImageDecoder,
    file: &Bytes,
    kind: Kind,
    max_dimension: u32,
) -> Result<Picture, ApiError> {
    let (width, height) = decoder.dimensions();
    if width > max_dimension || height > max_dimension {
        return Err(ApiError::DimensionsTooBig { max: max_dimension });
    }
    decoder.set_limits(limits()).map_err(|error| unreadable(&error))?;
    let profile = decoder.icc_profile().ok().flatten();
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut pixels = DynamicImage::from_decoder(decoder).map_err(|error| unreadable(&error))?;
    let (bytes, kind) = if orientation == Orientation::NoTransforms {
        (without_metadata(file, kind)?, kind)
    } else {
        pixels.apply_orientation(orientation);
        let kind = if kind == Kind::Jpeg { Kind::Jpeg } else { Kind::Png };
        (encode(&pixels, kind, TURNED_QUALITY, profile.as_deref())?, kind)
    };
    let small = thumbnail(&pixels)?;
    let small_kind = if small.color().has_alpha() { Kind::Png } else { Kind::Jpeg };
    Ok(Picture {
        bytes,
        content_type: kind.content_type(),
        width: pixels.width(),
        height: pixels.height(),
        thumbnail: encode(&small, small_kind, THUMBNAIL_QUALITY, profile.as_deref())?,
        thumbnail_type: small_kind.content_type(),
    })
}

/// The same compressed picture without what does not belong to its looks.
fn without_metadata(file: &Bytes, kind: Kind) -> Result<Bytes, ApiError> {
    let damaged = |error: img_parts::Error| unreadable(&error);
    match kind {
        Kind::Jpeg => {
            let mut jpeg = Jpeg::from_bytes(file.clone()).map_err(damaged)?;
            jpeg.segments_mut().retain(|segment| match segment.marker() {
                markers::APP2 => segment.contents().starts_with(b"ICC_PROFILE\0"),
                // APP0 is JFIF's density, APP14 Adobe's colour transform: without it CMYK looks wrong.
                markers::APP0 | markers::APP14 => true,
                markers::APP1..=markers::APP15 | markers::COM => false,
                _ => true,
            });
            up_to_end_of_image(&jpeg.encoder().bytes())
                .ok_or_else(|| unreadable(&"it ends too early"))
        }
        Kind::Png => {
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
        Kind::WebP => {
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

/// A JPEG without whatever somebody hid behind its end; `None` when it has no end.
fn up_to_end_of_image(jpeg: &Bytes) -> Option<Bytes> {
    let mut at = 2;
    loop {
        // Any number of 0xFF may stand before a marker (ITU-T T.81, B.1.1.2).
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
                    // In compressed data 0xFF is followed by 0 or by a restart marker.
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

fn thumbnail(pixels: &DynamicImage) -> Result<DynamicImage, ApiError> {
    let scale = f64::from(THUMBNAIL_SIDE) / f64::from(pixels.width().max(pixels.height()));
    let side = |length: u32| ((f64::from(length) * scale.min(1.0)).round() as u32).max(1);
    let (width, height) = (side(pixels.width()), side(pixels.height()));
    let (source, kind) = if pixels.color().has_alpha() {
        (DynamicImage::ImageRgba8(pixels.to_rgba8()), PixelType::U8x4)
    } else {
        (DynamicImage::ImageRgb8(pixels.to_rgb8()), PixelType::U8x3)
    };
    let mut small = match kind {
        PixelType::U8x4 => DynamicImage::new_rgba8(width, height),
        _ => DynamicImage::new_rgb8(width, height),
    };
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
    Resizer::new().resize(&source, &mut small, &options).map_err(|error| {
        ApiError::Internal(anyhow::Error::new(error).context("making a thumbnail"))
    })?;
    Ok(small)
}

fn encode(
    pixels: &DynamicImage,
    kind: Kind,
    quality: u8,
    profile: Option<&[u8]>,
) -> Result<Bytes, ApiError> {
    let failed = |error: image::ImageError| {
        ApiError::Internal(anyhow::Error::new(error).context("encoding a picture"))
    };
    let mut bytes = Vec::new();
    if kind == Kind::Jpeg {
        let mut encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
        // A profile that the encoder does not take (its limits are the format's) is not worth failing.
        if let Some(profile) = profile {
            let _ = encoder.set_icc_profile(profile.to_vec());
        }
        let pixels = if pixels.color().channel_count() < 3 {
            DynamicImage::ImageLuma8(pixels.to_luma8())
        } else {
            DynamicImage::ImageRgb8(pixels.to_rgb8())
        };
        pixels.write_with_encoder(encoder).map_err(failed)?;
    } else {
        let mut encoder = PngEncoder::new_with_quality(
            &mut bytes,
            CompressionType::Fast,
            image::codecs::png::FilterType::Adaptive,
        );
        if let Some(profile) = profile {
            let _ = encoder.set_icc_profile(profile.to_vec());
        }
        pixels.write_with_encoder(encoder).map_err(failed)?;
    }
    Ok(bytes.into())
}

/// The reason is in the words of whoever wrote the decoder, and in the log.
fn unreadable(reason: &impl Display) -> ApiError {
    tracing::debug!(%reason, "A picture is damaged");
    ApiError::UnreadableImage
}
