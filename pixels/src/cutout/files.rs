//! Encodes a cutout in each file format.

use std::io::{Cursor, Write};

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::{DynamicImage, GrayImage, ImageEncoder, RgbaImage};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::colors::{self, Color};
use super::options::Format;
use crate::PixelError;
use crate::encode::{Channels, PngStream};

const JPEG_QUALITY: u8 = 90;
const WHITE: Color = [255; 4];

/// Encodes the cutout itself; returns the file and its MIME type.
pub(super) fn subject(
    mut picture: RgbaImage,
    format: Format,
    profile: Option<&[u8]>,
) -> Result<(Bytes, &'static str), PixelError> {
    let format = match format {
        Format::Auto if picture.pixels().all(|pixel| pixel.0[3] == 255) => Format::Jpeg,
        Format::Auto => Format::Png,
        other => other,
    };
    match format {
        Format::Auto | Format::Png => {
            Ok((png(picture.dimensions(), Channels::Rgba, &picture, profile)?, "image/png"))
        }
        Format::WebP => Ok((webp(&DynamicImage::ImageRgba8(picture), profile)?, "image/webp")),
        Format::Jpeg => {
            colors::put_behind(&mut picture, WHITE);
            Ok((jpeg(&without_alpha(picture), profile)?, "image/jpeg"))
        }
        Format::Zip => {
            let alpha = gray_png(&alpha_of(&picture))?;
            let color = jpeg(&without_alpha(picture), profile)?;
            Ok((zip(&[("color.jpg", &color), ("alpha.png", &alpha)])?, "application/zip"))
        }
    }
}

/// Encodes the alpha channel as a gray picture; returns the file and its MIME type.
pub(super) fn alpha(
    picture: &RgbaImage,
    format: Format,
) -> Result<(Bytes, &'static str), PixelError> {
    let alpha = alpha_of(picture);
    match format {
        Format::Auto | Format::Png => Ok((gray_png(&alpha)?, "image/png")),
        Format::Jpeg => Ok((jpeg(&alpha.into(), None)?, "image/jpeg")),
        Format::WebP => Ok((webp(&alpha.into(), None)?, "image/webp")),
        Format::Zip => {
            Err(PixelError::Internal("an alpha channel alone cannot fill the ZIP".to_owned()))
        }
    }
}

fn without_alpha(picture: RgbaImage) -> DynamicImage {
    DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(picture).into_rgb8())
}

/// Encodes in pieces, because an encoder of whole pictures would hold the file twice.
fn png(
    (width, height): (u32, u32),
    channels: Channels,
    samples: &[u8],
    profile: Option<&[u8]>,
) -> Result<Bytes, PixelError> {
    let mut png = PngStream::new((width, height), channels, profile.map(<[u8]>::to_vec))?;
    let mut bytes = Vec::with_capacity(samples.len());
    for row in samples.chunks_exact(width as usize * channels.count()) {
        png.write(row)?;
        bytes.extend_from_slice(&png.take());
    }
    bytes.extend_from_slice(&png.finish()?);
    bytes.shrink_to_fit();
    Ok(bytes.into())
}

fn gray_png(alpha: &GrayImage) -> Result<Bytes, PixelError> {
    png(alpha.dimensions(), Channels::Gray, alpha, None)
}

fn jpeg(picture: &DynamicImage, profile: Option<&[u8]>) -> Result<Bytes, PixelError> {
    let mut bytes = Vec::new();
    write(picture, JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY), profile)?;
    Ok(bytes.into())
}

fn webp(picture: &DynamicImage, profile: Option<&[u8]>) -> Result<Bytes, PixelError> {
    let mut bytes = Vec::new();
    write(picture, WebPEncoder::new_lossless(&mut bytes), profile)?;
    Ok(bytes.into())
}

fn write(
    picture: &DynamicImage,
    mut encoder: impl ImageEncoder,
    profile: Option<&[u8]>,
) -> Result<(), PixelError> {
    if let Some(profile) = profile {
        // Better no profile than no file: the format limits a profile's size.
        let _ = encoder.set_icc_profile(profile.to_vec());
    }
    picture.write_with_encoder(encoder).map_err(|error| failed(&error))
}

fn zip(files: &[(&str, &Bytes)]) -> Result<Bytes, PixelError> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    // The pictures are already compressed.
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in files {
        archive.start_file(*name, stored).map_err(|error| failed(&error))?;
        archive.write_all(bytes).map_err(|error| failed(&error))?;
    }
    Ok(archive.finish().map_err(|error| failed(&error))?.into_inner().into())
}

fn alpha_of(picture: &RgbaImage) -> GrayImage {
    GrayImage::from_fn(picture.width(), picture.height(), |x, y| {
        image::Luma([picture.get_pixel(x, y).0[3]])
    })
}

fn failed(error: &dyn std::error::Error) -> PixelError {
    PixelError::Internal(format!("encoding a cutout: {error}"))
}
