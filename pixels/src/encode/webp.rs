//! A lossy WebP encoder: libwebp, because the `image` crate writes only lossless WebP.

use ::webp::{Encoder, WebPConfig};
use bytes::Bytes;
use img_parts::ImageICC;
use img_parts::webp::WebP;

use super::Rgba;
use crate::PixelError;

/// Maximum side of a WebP, in pixels: its header has 14 bits for each side.
pub const MAX_WEBP_SIDE: u32 = 16_383;

/// How much time the encoder takes to make a file smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For copies that are shown once or twice. At equal fidelity, files are 6 % larger and take a quarter less time.
    Least,
    /// For files that people keep. libwebp's default takes three times as long for a picture with alpha, and its files are
    /// 4 % smaller.
    Some,
}

impl Effort {
    /// libwebp's own measure of it, 0 to 6.
    const fn method(self) -> i32 {
        match self {
            Self::Least => 1,
            Self::Some => 2,
        }
    }
}

/// Encodes a lossy WebP. Both qualities are 1 to 100; with 100, alpha is kept without loss. Opaque pictures are encoded
/// without alpha.
///
/// # Errors
/// [`PixelError::TooLarge`] if a side exceeds [`MAX_WEBP_SIDE`], [`PixelError::Internal`] if the buffer does not match
/// the size.
pub fn lossy_webp(
    picture: Rgba<'_>,
    quality: u8,
    alpha_quality: u8,
    effort: Effort,
) -> Result<Bytes, PixelError> {
    let Rgba { width, height, pixels, icc } = picture;
    if width.max(height) > MAX_WEBP_SIDE {
        return Err(PixelError::TooLarge { width, height, max_dimension: MAX_WEBP_SIDE });
    }
    if width.min(height) == 0 || pixels.len() != width as usize * height as usize * 4 {
        return Err(PixelError::Internal(format!(
            "encoding a WebP: {} bytes are not {width} × {height} pixels",
            pixels.len()
        )));
    }
    let mut config = WebPConfig::new()
        .map_err(|()| PixelError::Internal("libwebp has no default settings".to_owned()))?;
    config.quality = f32::from(quality.clamp(1, 100));
    config.alpha_quality = i32::from(alpha_quality.clamp(1, 100));
    config.method = effort.method();
    let encoded = Encoder::from_rgba(pixels, width, height)
        .encode_advanced(&config)
        .map_err(|error| PixelError::Internal(format!("encoding a WebP: {error:?}")))?;
    let bytes = Bytes::copy_from_slice(&encoded);
    match icc {
        Some(icc) => with_profile(bytes, icc),
        None => Ok(bytes),
    }
}

fn with_profile(bytes: Bytes, icc: &[u8]) -> Result<Bytes, PixelError> {
    let mut webp = WebP::from_bytes(bytes).map_err(|error| PixelError::encoding(&error))?;
    webp.set_icc_profile(Some(Bytes::copy_from_slice(icc)));
    Ok(webp.encoder().bytes())
}

#[cfg(test)]
mod tests {
    use image::codecs::webp::WebPDecoder;
    use image::{DynamicImage, ImageDecoder};

    use super::*;

    fn decoded(webp: &[u8]) -> DynamicImage {
        image::load_from_memory_with_format(webp, image::ImageFormat::WebP).expect("it decodes")
    }

    #[test]
    fn colors_are_close_and_alpha_is_exact() {
        let pixels: Vec<u8> =
            (0..64 * 64).flat_map(|i| [200, 40, 90, (i % 64 * 4) as u8]).collect();
        let picture = Rgba { width: 64, height: 64, pixels: &pixels, icc: None };
        let webp = lossy_webp(picture, 80, 100, Effort::Some).expect("it encodes");
        let result = decoded(&webp).into_rgba8();
        assert_eq!(result.dimensions(), (64, 64));
        for (pixel, given) in result.pixels().zip(pixels.as_chunks::<4>().0) {
            assert_eq!(pixel[3], given[3]);
            let is_close = pixel.0.iter().zip(given).all(|(a, b)| a.abs_diff(*b) <= 6);
            assert!(is_close || given[3] == 0, "{pixel:?} is far from {given:?}");
        }
    }

    #[test]
    fn an_opaque_picture_has_no_alpha_and_keeps_its_profile() {
        let pixels = [10, 200, 30, 255].repeat(32 * 16);
        for (pixels, has_alpha) in
            [(pixels.clone(), false), ([&pixels[4..], &[0; 4]].concat(), true)]
        {
            let picture = Rgba { width: 32, height: 16, pixels: &pixels, icc: Some(b"a profile") };
            let webp = lossy_webp(picture, 80, 100, Effort::Some).expect("it encodes");
            let mut decoder =
                WebPDecoder::new(std::io::Cursor::new(&webp[..])).expect("it decodes");
            assert_eq!(decoder.icc_profile().expect("it reads"), Some(b"a profile".to_vec()));
            assert_eq!(decoder.color_type().has_alpha(), has_alpha);
            assert_eq!(decoded(&webp).to_rgba8().dimensions(), (32, 16));
        }
    }

    #[test]
    fn a_lower_quality_takes_fewer_bytes() {
        let noise: Vec<u8> = (0..128_u32 * 128)
            .flat_map(|i| (i.wrapping_mul(2_654_435_761) | 0xff00_0000).to_le_bytes())
            .collect();
        let picture = Rgba { width: 128, height: 128, pixels: &noise, icc: None };
        let bytes =
            |quality| lossy_webp(picture, quality, 100, Effort::Some).expect("it encodes").len();
        assert!(bytes(40) < bytes(80) && bytes(80) < bytes(100));
    }

    #[test]
    fn a_picture_that_webp_cannot_hold_is_refused() {
        let pixels = vec![0; (MAX_WEBP_SIDE as usize + 1) * 4];
        let picture = Rgba { width: MAX_WEBP_SIDE + 1, height: 1, pixels: &pixels, icc: None };
        assert!(matches!(
            lossy_webp(picture, 80, 100, Effort::Some),
            Err(PixelError::TooLarge { .. })
        ));
        let torn = Rgba { width: 2, height: 1, pixels: &pixels[..4], icc: None };
        assert!(matches!(lossy_webp(torn, 80, 100, Effort::Some), Err(PixelError::Internal(_))));
    }
}
