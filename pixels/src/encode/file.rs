//! Encodes whole pictures in each file format, with a color profile.

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::{DynamicImage, ImageEncoder};

use super::{Channels, PngStream};
use crate::PixelError;

/// Encodes a PNG of interleaved samples.
pub(crate) fn png_of_samples(
    (width, height): (u32, u32),
    channels: Channels,
    samples: &[u8],
    profile: Option<&[u8]>,
) -> Result<Bytes, PixelError> {
    let mut png = PngStream::new((width, height), channels, profile.map(<[u8]>::to_vec))?;
    png.write(samples)?;
    png.finish()
}

/// Encodes a JPEG of `quality` 1 to 100.
pub(crate) fn jpeg(
    picture: &DynamicImage,
    quality: u8,
    profile: Option<&[u8]>,
) -> Result<Bytes, PixelError> {
    let mut bytes = Vec::new();
    write(picture, JpegEncoder::new_with_quality(&mut bytes, quality), profile)?;
    Ok(bytes.into())
}

pub(crate) fn lossless_webp(
    picture: &DynamicImage,
    profile: Option<&[u8]>,
) -> Result<Bytes, PixelError> {
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
    picture.write_with_encoder(encoder).map_err(|error| PixelError::encoding(&error))
}
