//! Reads a stored result row by row: any kind of PNG becomes RGBA without a copy in between.

use std::io::Cursor;

use image::RgbaImage;
use png::{ColorType, Decoder, DecodingError, Reader, Transformations};

use crate::icc::MAX_PROFILE_BYTES;

/// The memory for chunks before the pixels, in bytes: a profile, compressed and inflated.
const CHUNK_BYTES: usize = 4 * MAX_PROFILE_BYTES;

/// A result in memory.
pub(crate) struct Stored {
    /// R, G, B, A of every pixel; alpha is straight, not premultiplied.
    pub picture: RgbaImage,
    /// The profile of the samples in the file, unless it is oversized.
    pub profile: Option<Vec<u8>>,
    /// Whether the file holds gray samples, which the profile then describes.
    pub is_gray: bool,
}

/// Reads everything before the pixels.
pub(crate) fn open(png: &[u8]) -> Result<Reader<Cursor<&[u8]>>, DecodingError> {
    let limits = png::Limits { bytes: CHUNK_BYTES };
    let mut decoder = Decoder::new_with_limits(Cursor::new(png), limits);
    decoder.set_transformations(Transformations::ALPHA | Transformations::STRIP_16);
    decoder.set_ignore_text_chunk(true);
    decoder.read_info()
}

pub(crate) fn read(mut reader: Reader<Cursor<&[u8]>>) -> Result<Stored, DecodingError> {
    let profile = reader.info().icc_profile.as_ref();
    let profile =
        profile.filter(|profile| profile.len() <= MAX_PROFILE_BYTES).map(|it| it.to_vec());
    let (width, height) = reader.info().size();
    let is_gray = reader.output_color_type().0 == ColorType::GrayscaleAlpha;
    let mut picture = RgbaImage::new(width, height);
    let mut rows = picture.chunks_exact_mut(width as usize * 4);
    while let (Some(to), Some(row)) = (rows.next(), reader.next_row()?) {
        if is_gray {
            for (to, [gray, alpha]) in
                to.as_chunks_mut::<4>().0.iter_mut().zip(row.data().as_chunks().0)
            {
                *to = [*gray, *gray, *gray, *alpha];
            }
        } else {
            to.copy_from_slice(row.data());
        }
    }
    Ok(Stored { picture, profile, is_gray })
}
