//! The file formats of a finished result.

use bytes::Bytes;
use image::{DynamicImage, RgbaImage};

use crate::encode::{Channels, Effort, MAX_WEBP_SIDE, Rgba, jpeg, lossless_webp, lossy_webp};
use crate::over::over;
use crate::{PixelError, encode, icc};

/// Maximum side of a JPEG, in pixels: its header has 16 bits for each side.
const MAX_JPEG_SIDE: u32 = 65_535;
const WHITE: [u8; 4] = [u8::MAX; 4];

#[derive(Clone, Debug)]
pub struct FinishedFile {
    pub bytes: Bytes,
    pub content_type: &'static str,
}

/// The quality of a lossy format, from 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quality(u8);

impl Quality {
    pub const BEST: Self = Self(100);

    /// Returns `None` if `quality` is not a whole number from 1 to 100.
    pub fn new(quality: f64) -> Option<Self> {
        let is_valid = quality.fract() == 0.0 && (1.0..=100.0).contains(&quality);
        is_valid.then_some(Self(quality as u8))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Png,
    /// JPEG; transparent pixels become white.
    Jpeg(Quality),
    /// Lossy WebP, or lossless with the best quality.
    WebP(Quality),
}

impl Output {
    /// Returns the format's maximum side, in pixels.
    pub const fn max_side(self) -> Option<u32> {
        match self {
            Self::Png => None,
            Self::Jpeg(_) => Some(MAX_JPEG_SIDE),
            Self::WebP(_) => Some(MAX_WEBP_SIDE),
        }
    }
}

/// Encodes a picture. `is_gray` says that its colors are gray; only then a JPEG holds gray samples. `profile` describes
/// RGB or gray samples.
pub(super) fn write(
    mut picture: RgbaImage,
    output: Output,
    profile: Option<&[u8]>,
    is_gray: bool,
) -> Result<FinishedFile, PixelError> {
    let of_rgb = profile.and_then(icc::of_rgb);
    let (bytes, content_type) = match output {
        Output::Png => (png(picture, of_rgb.as_deref())?, "image/png"),
        Output::Jpeg(Quality(quality)) => {
            for pixel in picture.pixels_mut() {
                pixel.0 = over(pixel.0, WHITE);
            }
            let picture = DynamicImage::ImageRgba8(picture);
            let bytes = if is_gray {
                jpeg(&DynamicImage::ImageLuma8(picture.into_luma8()), quality, profile)?
            } else {
                jpeg(&DynamicImage::ImageRgb8(picture.into_rgb8()), quality, of_rgb.as_deref())?
            };
            (bytes, "image/jpeg")
        }
        Output::WebP(quality) => (webp(picture, quality, of_rgb.as_deref())?, "image/webp"),
    };
    Ok(FinishedFile { bytes, content_type })
}

fn png(picture: RgbaImage, profile: Option<&[u8]>) -> Result<Bytes, PixelError> {
    let size = picture.dimensions();
    if picture.pixels().all(|pixel| pixel.0[3] == u8::MAX) {
        let opaque = DynamicImage::ImageRgba8(picture).into_rgb8();
        return encode::png_of_samples(size, Channels::Rgb, &opaque, profile);
    }
    encode::png_of_samples(size, Channels::Rgba, &picture, profile)
}

fn webp(picture: RgbaImage, quality: Quality, profile: Option<&[u8]>) -> Result<Bytes, PixelError> {
    if quality == Quality::BEST {
        return lossless_webp(&DynamicImage::ImageRgba8(picture), profile);
    }
    let (width, height) = picture.dimensions();
    let picture = Rgba { width, height, pixels: &picture, icc: profile };
    lossy_webp(picture, quality.0, 100, Effort::Some)
}
