//! Encodes a cutout in each file format.

use std::io::{Cursor, Write};

use bytes::Bytes;
use image::{DynamicImage, GrayImage, RgbaImage};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::colors::{self, Color};
use super::options::Format;
use crate::PixelError;
use crate::encode::{Channels, MAX_WEBP_SIDE, jpeg, lossless_webp, png_of_samples};

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
        Format::Auto | Format::Png => Ok((
            png_of_samples(picture.dimensions(), Channels::Rgba, &picture, profile)?,
            "image/png",
        )),
        Format::WebP => {
            let (width, height) = picture.dimensions();
            if width.max(height) > MAX_WEBP_SIDE {
                return Err(PixelError::TooLarge { width, height, max_dimension: MAX_WEBP_SIDE });
            }
            Ok((lossless_webp(&DynamicImage::ImageRgba8(picture), profile)?, "image/webp"))
        }
        Format::Jpeg => {
            colors::put_behind(&mut picture, WHITE);
            Ok((jpeg(&without_alpha(picture), JPEG_QUALITY, profile)?, "image/jpeg"))
        }
        Format::Zip => without_transparency(picture, profile),
    }
}

/// Encodes only the colors, including the colors of transparent pixels; returns the file and its MIME type.
pub(super) fn without_transparency(
    picture: RgbaImage,
    profile: Option<&[u8]>,
) -> Result<(Bytes, &'static str), PixelError> {
    Ok((jpeg(&without_alpha(picture), JPEG_QUALITY, profile)?, "image/jpeg"))
}

/// Encodes the alpha channel as a gray picture; returns the file and its MIME type.
pub(super) fn alpha(
    picture: &RgbaImage,
    format: Format,
) -> Result<(Bytes, &'static str), PixelError> {
    let alpha = alpha_of(picture);
    match format {
        Format::Auto | Format::Png => Ok((gray_png(&alpha)?, "image/png")),
        Format::Jpeg => Ok((jpeg(&alpha.into(), JPEG_QUALITY, None)?, "image/jpeg")),
        Format::WebP => Ok((lossless_webp(&alpha.into(), None)?, "image/webp")),
        Format::Zip => {
            Err(PixelError::Internal("an alpha channel alone cannot fill the ZIP".to_owned()))
        }
    }
}

fn without_alpha(picture: RgbaImage) -> DynamicImage {
    DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(picture).into_rgb8())
}

fn gray_png(alpha: &GrayImage) -> Result<Bytes, PixelError> {
    png_of_samples(alpha.dimensions(), Channels::Gray, alpha, None)
}

pub(super) fn zip(files: &[(&str, &Bytes)]) -> Result<Bytes, PixelError> {
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
