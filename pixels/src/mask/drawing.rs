//! An uploaded mask: a PNG, read row by row into one bit per pixel. A mask of 6000 × 6000 pixels takes 5 MB instead
//! of 144 MB.

use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, Transformations};

use crate::error::MaskError;
use crate::{Limits, PixelError};

/// The lowest brightness or alpha that counts as painted.
const PAINTED: u8 = 128;

/// The memory for the chunks before the pixels, in bytes. They are skipped.
const DECODER_BYTES: usize = 4 << 20;

/// The painted pixels of an uploaded mask, at the file's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    width: u32,
    height: u32,
    plane: Plane,
}

impl Drawing {
    /// Reads the mask of a picture of `size` (width, height). If any pixel of the PNG is translucent, as when drawn on
    /// a transparent canvas, alpha is the mask; otherwise brightness is. The drawing may be larger or smaller than the
    /// picture but must have its aspect ratio, up to rounding to whole pixels.
    pub fn read(png: &[u8], size: (u32, u32), limits: &Limits) -> Result<Self, MaskError> {
        let mut decoder = Decoder::new_with_limits(
            std::io::Cursor::new(png),
            png::Limits { bytes: DECODER_BYTES },
        );
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        decoder.ignore_checksums(false);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let unreadable = |error: &DecodingError| unreadable(png, error);
        let mut reader = decoder.read_info().map_err(|error| unreadable(&error))?;
        let (width, height) = (reader.info().width, reader.info().height);
        if width.max(height) > limits.max_dimension {
            return Err(MaskError::TooLarge { max_dimension: limits.max_dimension });
        }
        if !has_same_aspect_ratio((width, height), size) {
            return Err(MaskError::WrongShape { mask: (width, height), image: size });
        }
        if reader.info().interlaced {
            return Err(MaskError::Interlaced);
        }
        let (color, _) = reader.output_color_type();
        let mut luma = Plane::new(width, height);
        let mut alpha = Plane::new(width, height);
        let (mut is_translucent, mut y) = (false, 0);
        while let Some(row) = reader.next_row().map_err(|error| unreadable(&error))? {
            for (x, pixel) in row.data().chunks_exact(color.samples()).enumerate() {
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
            return Err(MaskError::Empty);
        }
        Ok(Self { width, height, plane })
    }

    /// Draws a filled rectangle of `extent` (width, height) whose first pixel is `at` (column, row), in a picture of
    /// `size`. Pixels outside the picture are left out.
    ///
    /// # Errors
    /// [`MaskError::Empty`] if nothing of it is inside the picture.
    pub fn rectangle(
        size: (u32, u32),
        at: (u32, u32),
        extent: (u32, u32),
    ) -> Result<Self, MaskError> {
        let range = |at: u32, extent: u32, side: u32| at..at.saturating_add(extent).min(side);
        let mut plane = Plane::new(size.0, size.1);
        for y in range(at.1, extent.1, size.1) {
            for x in range(at.0, extent.0, size.0) {
                plane.paint(x as usize, y as usize);
            }
        }
        if plane.painted == 0 {
            return Err(MaskError::Empty);
        }
        Ok(Self { width: size.0, height: size.1, plane })
    }

    /// Returns the peak memory that reading a drawing and encoding it again takes beside the file, in bytes.
    pub fn memory_bytes(limits: &Limits) -> u64 {
        let side = u64::from(limits.max_dimension);
        // Two planes of one bit per pixel, a copy and the file; rows of up to eight bytes per pixel.
        side * side / 2 + side * 64 + DECODER_BYTES as u64
    }

    /// Encodes the drawing as a PNG of one bit per pixel, white where painted.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if the encoder fails.
    pub fn to_png(&self) -> Result<Vec<u8>, PixelError> {
        self.encode().map_err(|error| PixelError::Internal(format!("encoding a mask: {error}")))
    }

    fn encode(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(ColorType::Grayscale);
        encoder.set_depth(BitDepth::One);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.plane.rows)?;
        writer.finish()?;
        Ok(bytes)
    }

    /// Returns one flag per pixel of a picture of `size`, rows from the top; set if the pixel touches a painted one.
    pub(super) fn scaled(&self, size: (u32, u32)) -> Vec<bool> {
        let own = (self.width as usize, self.height as usize);
        let size = (size.0 as usize, size.1 as usize);
        let mut on = vec![false; size.0 * size.1];
        let range =
            |at: usize, from: usize, to: usize| at * to / from..((at + 1) * to).div_ceil(from);
        for y in 0..own.1 {
            for x in (0..own.0).filter(|x| self.plane.is_painted(*x, y)) {
                for row in range(y, own.1, size.1) {
                    on[row * size.0..][range(x, own.0, size.0)].fill(true);
                }
            }
        }
        on
    }
}

/// Rows of one bit per pixel, the leftmost pixel in the highest bit.
#[derive(Clone, Debug, PartialEq, Eq)]
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

    fn is_painted(&self, x: usize, y: usize) -> bool {
        self.rows[y * self.stride + x / 8] & (0x80 >> (x % 8)) != 0
    }
}

/// Returns the luma (Rec. 601).
fn brightness(r: u8, g: u8, b: u8) -> u8 {
    ((u32::from(r) * 299 + u32::from(g) * 587 + u32::from(b) * 114 + 500) / 1000) as u8
}

/// Returns true if the aspect ratios are equal, up to rounding to whole pixels.
fn has_same_aspect_ratio(mask: (u32, u32), picture: (u32, u32)) -> bool {
    let difference = (u64::from(mask.0) * u64::from(picture.1))
        .abs_diff(u64::from(mask.1) * u64::from(picture.0));
    difference <= u64::from(picture.0.max(picture.1))
}

fn unreadable(file: &[u8], error: &DecodingError) -> MaskError {
    tracing::debug!(%error, "Cannot decode a mask");
    if file.starts_with(b"\x89PNG\r\n\x1a\n") { MaskError::Damaged } else { MaskError::NotPng }
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, ImageFormat, Luma, Rgba, RgbaImage};

    use super::*;

    fn read(png: &[u8], size: (u32, u32)) -> Result<Drawing, MaskError> {
        Drawing::read(png, size, &Limits::default())
    }

    fn png(image: &image::DynamicImage) -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png).expect("a PNG in memory");
        bytes.into_inner()
    }

    fn painted(drawing: &Drawing) -> Vec<(u32, u32)> {
        let png = drawing.to_png().expect("it encodes");
        let image = image::load_from_memory(&png).expect("our own PNG decodes").to_luma8();
        image.enumerate_pixels().filter(|(_, _, p)| p.0[0] > 0).map(|(x, y, _)| (x, y)).collect()
    }

    #[test]
    fn brightness_is_the_mask_of_an_opaque_drawing() {
        let drawing =
            GrayImage::from_fn(11, 3, |x, y| Luma([if (x, y) == (9, 2) { 128 } else { 127 }]));
        let drawing = read(&png(&drawing.into()), (11, 3)).expect("a mask");
        assert_eq!(painted(&drawing), [(9, 2)]);
    }

    #[test]
    fn alpha_is_the_mask_of_a_translucent_drawing() {
        let drawing =
            RgbaImage::from_fn(10, 4, |x, _| Rgba([0, 0, 0, if x == 3 { 200 } else { 0 }]));
        let drawing = read(&png(&drawing.into()), (10, 4)).expect("a mask");
        assert_eq!(painted(&drawing), [(3, 0), (3, 1), (3, 2), (3, 3)]);
    }

    #[test]
    fn a_scaled_mask_is_accepted_and_another_aspect_ratio_is_not() {
        let drawing = png(&GrayImage::from_pixel(50, 33, Luma([255])).into());
        assert!(read(&drawing, (100, 67)).is_ok());
        assert!(read(&drawing, (50, 33)).is_ok());
        for size in [(33, 50), (50, 40), (1, 1)] {
            let refused = read(&drawing, size);
            assert!(matches!(refused, Err(MaskError::WrongShape { .. })), "{refused:?}");
        }
    }

    #[test]
    fn an_empty_mask_and_a_broken_file_are_different_errors() {
        let blank = png(&GrayImage::new(8, 8).into());
        assert_eq!(read(&blank, (8, 8)), Err(MaskError::Empty));
        let clear = png(&RgbaImage::new(8, 8).into());
        assert_eq!(read(&clear, (8, 8)), Err(MaskError::Empty));
        let cut = &blank[..blank.len() / 2];
        assert_eq!(read(cut, (8, 8)), Err(MaskError::Damaged));
        for bytes in [&b"no picture"[..], b"\xff\xd8\xff\xe0JFIF"] {
            assert_eq!(read(bytes, (8, 8)), Err(MaskError::NotPng));
        }
    }

    #[test]
    fn equal_drawings_encode_to_equal_bytes() {
        let gray = GrayImage::from_fn(20, 10, |x, _| Luma([if x > 4 { 255 } else { 0 }]));
        let alpha = RgbaImage::from_fn(20, 10, |x, _| Rgba([9, 9, 9, if x > 4 { 255 } else { 0 }]));
        let of = |image| read(&png(&image), (20, 10)).expect("a mask");
        assert_eq!(of(gray.into()), of(alpha.into()));
    }

    #[test]
    fn the_limit_of_pictures_is_the_limit_of_masks() {
        let drawing = png(&GrayImage::from_pixel(50, 33, Luma([255])).into());
        let refused = Drawing::read(&drawing, (50, 33), &Limits { max_dimension: 49 });
        assert_eq!(refused, Err(MaskError::TooLarge { max_dimension: 49 }));
        let strip = png(&GrayImage::from_pixel(9000, 2, Luma([255])).into());
        assert!(Drawing::read(&strip, (9000, 2), &Limits { max_dimension: 9000 }).is_ok());
    }
}
