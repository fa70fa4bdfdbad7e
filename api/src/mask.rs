//! What becomes of an uploaded mask: one bit a pixel. The mask is read row by row, so that one as large as
//! the largest picture takes a few megabytes, not hundreds.

use bytes::Bytes;
use png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};
use sha2::{Digest, Sha256};

use crate::error::ApiError;

/// Samples from here on are painted; 127 is not, as in the field's other tools.
const PAINTED: u8 = 128;

/// A mask that can be stored.
#[derive(Debug, PartialEq, Eq)]
pub struct Mask {
    /// A PNG of one bit a pixel, white where to work.
    pub png: Bytes,
    /// Its SHA-256.
    pub sha256: Vec<u8>,
}

/// Rows of one bit a pixel, the leftmost in the highest bit.
struct Plane {
    rows: Vec<u8>,
    stride: usize,
    painted: u64,
}

impl Plane {
    fn new(width: u32, height: u32) -> Self {
        let stride = width.div_ceil(8) as usize;
        Self { rows: vec![0; stride * height as usize], stride, painted: 0 }
    }

    fn paint(&mut self, x: usize, y: usize) {
        self.rows[y * self.stride + x / 8] |= 0x80 >> (x % 8);
        self.painted += 1;
    }
}

/// Reads the mask of a picture of `width` × `height` pixels. Where the PNG is transparent anywhere, its
/// alpha is the mask, as a drawing on a transparent canvas; else its brightness. A mask of another size is
/// taken when its shape is the picture's; the worker scales it.
///
/// Takes time: run it on a thread that may block.
///
/// # Errors
/// [`ApiError::MaskInvalid`] when it is no PNG or has another shape, [`ApiError::MaskEmpty`] when nothing
/// is painted.
pub fn read(file: &[u8], width: u32, height: u32, max_dimension: u32) -> Result<Mask, ApiError> {
    let mut decoder =
        Decoder::new_with_limits(std::io::Cursor::new(file), Limits { bytes: 64 << 20 });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    decoder.ignore_checksums(false);
    let mut reader = decoder.read_info().map_err(|error| no_png(&error))?;
    let (own_width, own_height, interlaced) =
        (reader.info().width, reader.info().height, reader.info().interlaced);
    if own_width > max_dimension || own_height > max_dimension {
        return Err(ApiError::DimensionsTooBig { max: max_dimension });
    }
    if !has_same_shape((own_width, own_height), (width, height)) {
        return Err(ApiError::MaskInvalid(format!(
            "The mask is {own_width} × {own_height} pixels, the image {width} × {height}: the mask must have the image's size"
        )));
    }
    if interlaced {
        return Err(ApiError::MaskInvalid(
            "This mask is an interlaced PNG; save it without interlacing".into(),
        ));
    }
    let (color, _) = reader.output_color_type();
    let channels = color.samples();
    let mut luma = Plane::new(own_width, own_height);
    let mut alpha = Plane::new(own_width, own_height);
    let (mut is_translucent, mut y) = (false, 0);
    while let Some(row) = reader.next_row().map_err(|error| no_png(&error))? {
        for (x, pixel) in row.data().chunks_exact(channels).enumerate() {
            let (bright, opacity) = match (color, pixel) {
                (ColorType::GrayscaleAlpha, [gray, alpha]) => (*gray, *alpha),
                (ColorType::Rgba, [r, g, b, alpha]) => (brightness(*r, *g, *b), *alpha),
                (ColorType::Rgb, [r, g, b]) => (brightness(*r, *g, *b), 255),
                (_, pixel) => (pixel.first().copied().unwrap_or(0), 255),
            };
            is_translucent |= opacity < 255;
            if bright >= PAINTED {
                luma.paint(x, y);
            }
            if opacity >= PAINTED {
                alpha.paint(x, y);
            }
        }
        y += 1;
    }
    let plane = if is_translucent { alpha } else { luma };
    if plane.painted == 0 {
        return Err(ApiError::MaskEmpty);
    }
    let png = encode(&plane, own_width, own_height)
        .map_err(|error| ApiError::Internal(anyhow::Error::new(error).context("writing a mask")))?;
    let sha256 = Sha256::digest(&png).to_vec();
    Ok(Mask { png: png.into(), sha256 })
}

/// Rec. 601, as everybody's gray.
fn brightness(r: u8, g: u8, b: u8) -> u8 {
    ((u32::from(r) * 299 + u32::from(g) * 587 + u32::from(b) * 114 + 500) / 1000) as u8
}

/// Whether one is the other scaled, but for rounding to whole pixels.
fn has_same_shape(mask: (u32, u32), picture: (u32, u32)) -> bool {
    let off = (u64::from(mask.0) * u64::from(picture.1))
        .abs_diff(u64::from(mask.1) * u64::from(picture.0));
    off <= u64::from(picture.0.max(picture.1))
}

fn encode(plane: &Plane, width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&plane.rows)?;
    writer.finish()?;
    Ok(bytes)
}

fn no_png(error: &png::DecodingError) -> ApiError {
    tracing::debug!(%error, "A mask is no PNG");
    ApiError::MaskInvalid("The mask must be a PNG".into())
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, ImageFormat, Luma, Rgba, RgbaImage};

    use super::*;

    fn png(image: &image::DynamicImage) -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png).expect("a PNG in memory");
        bytes.into_inner()
    }

    fn painted(mask: &Mask) -> Vec<(u32, u32)> {
        let image = image::load_from_memory(&mask.png).expect("a mask").to_luma8();
        image.enumerate_pixels().filter(|(_, _, p)| p.0[0] > 0).map(|(x, y, _)| (x, y)).collect()
    }

    #[test]
    fn brightness_is_the_mask_where_nothing_is_transparent() {
        let drawing =
            GrayImage::from_fn(11, 3, |x, y| Luma([if (x, y) == (9, 2) { 128 } else { 127 }]));
        let mask = read(&png(&drawing.into()), 11, 3, 100).expect("a mask");
        assert_eq!(painted(&mask), [(9, 2)]);
    }

    #[test]
    fn alpha_is_the_mask_where_anything_is() {
        let drawing =
            RgbaImage::from_fn(10, 4, |x, _| Rgba([0, 0, 0, if x == 3 { 200 } else { 0 }]));
        let mask = read(&png(&drawing.into()), 10, 4, 100).expect("a mask");
        assert_eq!(painted(&mask), [(3, 0), (3, 1), (3, 2), (3, 3)]);
    }

    #[test]
    fn a_mask_of_the_same_shape_is_taken_and_another_is_not() {
        let drawing = png(&GrayImage::from_pixel(50, 33, Luma([255])).into());
        assert!(read(&drawing, 100, 67, 100).is_ok());
        assert!(read(&drawing, 50, 33, 100).is_ok());
        for size in [(33, 50), (50, 40), (1, 1)] {
            let refused = read(&drawing, size.0, size.1, 100);
            assert!(matches!(refused, Err(ApiError::MaskInvalid(_))), "{refused:?}");
        }
        assert!(matches!(read(&drawing, 50, 33, 40), Err(ApiError::DimensionsTooBig { .. })));
    }

    #[test]
    fn nothing_painted_and_no_png_are_told_apart() {
        let blank = png(&GrayImage::new(8, 8).into());
        assert!(matches!(read(&blank, 8, 8, 100), Err(ApiError::MaskEmpty)));
        let clear = png(&RgbaImage::new(8, 8).into());
        assert!(matches!(read(&clear, 8, 8, 100), Err(ApiError::MaskEmpty)));
        for bytes in [&b"no picture"[..], &blank[..blank.len() / 2], b"\xff\xd8\xff\xe0JFIF"] {
            let refused = read(bytes, 8, 8, 100);
            assert!(matches!(refused, Err(ApiError::MaskInvalid(_))), "{refused:?}");
        }
    }

    #[test]
    fn the_same_drawing_is_the_same_mask() {
        let gray = GrayImage::from_fn(20, 10, |x, _| Luma([if x > 4 { 255 } else { 0 }]));
        let alpha = RgbaImage::from_fn(20, 10, |x, _| Rgba([9, 9, 9, if x > 4 { 255 } else { 0 }]));
        let of = |image| read(&png(&image), 20, 10, 100).expect("a mask");
        assert_eq!(of(gray.into()), of(alpha.into()));
    }
}
