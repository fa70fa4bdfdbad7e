//! The smaller copies of a picture, made while its rows pass: a thumbnail, and a preview if the picture is large. The
//! thumbnail of a large picture is made from the preview, so that every row is averaged once.

use bytes::Bytes;

use crate::encode::{Channels, interleave};
use crate::preview::Preview;
use crate::thumbnail::Thumbnail;
use crate::{Picture, PixelError, icc};

pub enum Copies {
    /// The picture is small enough to be its own preview.
    OfSmall(Thumbnail),
    /// Both copies are made.
    OfLarge(Preview),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedCopies {
    /// A PNG of at most [`THUMBNAIL_SIDE`](crate::thumbnail::THUMBNAIL_SIDE) pixels per side.
    pub thumbnail: Bytes,
    /// A lossy WebP of at most [`PREVIEW_SIDE`](crate::preview::PREVIEW_SIDE) pixels per side; `None` if the picture is
    /// at most that large.
    pub preview: Option<Bytes>,
}

impl Copies {
    /// Starts the copies of a picture of `size` (width, height).
    pub fn new(size: (u32, u32), channels: Channels) -> Self {
        match Preview::new(size, channels) {
            Some(preview) => Self::OfLarge(preview),
            None => Self::OfSmall(Thumbnail::new(size, channels)),
        }
    }

    /// Makes the copies of a whole picture.
    ///
    /// # Errors
    /// Same as [`Self::encode`].
    pub fn of(picture: &Picture) -> Result<EncodedCopies, PixelError> {
        let channels = Channels::of(picture.gray, picture.alpha.is_some());
        let mut copies = Self::new((picture.width, picture.height), channels);
        let mut line = Vec::new();
        for y in 0..picture.height as usize {
            interleave(picture, y, &mut line);
            copies.push(&line);
        }
        copies.encode(picture.icc.as_deref().and_then(icc::of_rgb).as_deref())
    }

    /// Adds whole rows of interleaved samples.
    pub fn push(&mut self, rows: &[u8]) {
        match self {
            Self::OfSmall(thumbnail) => thumbnail.push(rows),
            Self::OfLarge(preview) => preview.push(rows),
        }
    }

    /// Encodes the copies, which are always RGB; `icc` is their profile, which is embedded unless it is large.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if rows are missing or an encoder fails.
    pub fn encode(self, icc: Option<&[u8]>) -> Result<EncodedCopies, PixelError> {
        match self {
            Self::OfSmall(thumbnail) => {
                Ok(EncodedCopies { thumbnail: thumbnail.encode(icc)?, preview: None })
            }
            Self::OfLarge(preview) => {
                let encoded = preview.encode(icc)?;
                let thumbnail = preview.into_thumbnail().encode(icc)?;
                Ok(EncodedCopies { thumbnail, preview: Some(encoded) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Rgba;

    impl Copies {
        /// Like [`Self::of`], for interleaved samples.
        pub fn of_rgba(picture: Rgba<'_>) -> Result<EncodedCopies, PixelError> {
            let mut copies = Self::new((picture.width, picture.height), Channels::Rgba);
            copies.push(picture.pixels);
            copies.encode(picture.icc)
        }
    }

    fn decoded(file: &[u8]) -> image::RgbaImage {
        image::load_from_memory(file).expect("our own file decodes").into_rgba8()
    }

    #[test]
    fn a_thumbnail_from_the_preview_looks_like_one_from_the_picture() {
        // A subject on transparent ground; the height makes both copies round.
        let (width, height) = (2311_u32, 1733_u32);
        let at = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels: Vec<u8> = at
            .flat_map(|(x, y)| {
                let inside = x.abs_diff(1100).pow(2) + y.abs_diff(800).pow(2) < 600 * 600;
                let color = [(x / 10) as u8, (y / 7) as u8, 90, 255];
                if inside { color } else { [0; 4] }
            })
            .collect();
        let picture = Rgba { width, height, pixels: &pixels, icc: None };
        let copies = Copies::of_rgba(picture).expect("they encode");
        assert_eq!(decoded(&copies.preview.expect("it is large")).dimensions(), (1600, 1200));
        let small = decoded(&copies.thumbnail);
        let direct = decoded(&Thumbnail::encoded(picture).expect("it encodes"));
        assert_eq!(small.dimensions(), direct.dimensions());
        let seen = |pixel: &image::Rgba<u8>| {
            pixel.0.map(|value| f32::from(value) * f32::from(pixel[3]) / 255.0)
        };
        let differences = small.pixels().zip(direct.pixels()).flat_map(|(one, other)| {
            let (one, other) = (seen(one), seen(other));
            (0..4).map(move |channel| (one[channel] - other[channel]).abs())
        });
        let mean = differences.sum::<f32>() / (small.len() as f32);
        assert!(mean < 1.0, "{mean}");
    }

    #[test]
    fn a_small_picture_has_no_preview() {
        let pixels = vec![200; 1600 * 4];
        let picture = Rgba { width: 1600, height: 1, pixels: &pixels, icc: None };
        let copies = Copies::of_rgba(picture).expect("they encode");
        assert_eq!(copies.preview, None);
        assert_eq!(decoded(&copies.thumbnail).dimensions(), (512, 1));
    }
}
