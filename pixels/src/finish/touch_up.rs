//! A touch-up: erases and restores parts of a cutout. It is read row by row, so it takes no memory for its pixels.

use std::io::Cursor;

use image::RgbaImage;
use png::{ColorType, Decoder, Reader, Transformations};

use super::error::{FinishError, TouchUpError};
use crate::Picture;

/// The memory for the chunks before the pixels, in bytes. They are skipped.
const DECODER_BYTES: usize = 4 << 20;
/// The sample that leaves a pixel as it is.
const KEEP: u8 = 128;

/// A touch-up whose pixels have not been read.
pub(super) struct TouchUp<'a> {
    reader: Reader<Cursor<&'a [u8]>>,
}

impl<'a> TouchUp<'a> {
    /// Reads everything before the pixels, and checks that it has the result's `size` (width, height).
    pub fn open(png: &'a [u8], size: (u32, u32)) -> Result<Self, TouchUpError> {
        if !png.starts_with(b"\x89PNG\r\n\x1a\n") {
            return Err(TouchUpError::NotPng);
        }
        let limits = png::Limits { bytes: DECODER_BYTES };
        let mut decoder = Decoder::new_with_limits(Cursor::new(png), limits);
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        decoder.ignore_checksums(false);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let reader = decoder.read_info().map_err(|_| TouchUpError::Damaged)?;
        let own = reader.info().size();
        if own != size {
            return Err(TouchUpError::WrongSize { own, result: size });
        }
        if reader.info().interlaced {
            return Err(TouchUpError::Interlaced);
        }
        Ok(Self { reader })
    }

    /// Touches `cut` up. Both pictures have the touch-up's size.
    pub fn apply(mut self, cut: &mut RgbaImage, original: &Picture) -> Result<(), FinishError> {
        let (color, _) = self.reader.output_color_type();
        let width = original.width as usize;
        let rows = cut.chunks_exact_mut(width * 4).zip(original.rgb.chunks_exact(width * 3));
        for (y, (cut, colors)) in rows.enumerate() {
            let row = self.reader.next_row().map_err(|_| TouchUpError::Damaged)?;
            let row = row.ok_or(TouchUpError::Damaged)?;
            let alpha = original.alpha.as_ref().map(|alpha| &alpha[y * width..(y + 1) * width]);
            let pixels = cut.as_chunks_mut().0.iter_mut().zip(colors.as_chunks().0);
            let samples = row.data().chunks_exact(color.samples()).enumerate();
            for ((cut, [r, g, b]), (x, samples)) in pixels.zip(samples) {
                let sample = gray(color, samples).ok_or(TouchUpError::NotGray)?;
                if sample < KEEP {
                    *cut = erased(*cut, sample);
                } else if sample > KEEP {
                    let alpha = alpha.map_or(u8::MAX, |alpha| alpha[x]);
                    *cut = restored(*cut, [*r, *g, *b, alpha], sample - KEEP);
                }
            }
        }
        Ok(())
    }
}

/// Returns the sample of a pixel that is gray and opaque. Browsers write such pixels with all four channels.
fn gray(color: ColorType, samples: &[u8]) -> Option<u8> {
    match (color, samples) {
        (ColorType::Rgb, [r, g, b]) | (ColorType::Rgba, [r, g, b, u8::MAX]) => {
            (r == g && g == b).then_some(*r)
        }
        (ColorType::GrayscaleAlpha, [gray, u8::MAX]) | (ColorType::Grayscale, [gray]) => {
            Some(*gray)
        }
        _ => None,
    }
}

/// Keeps the share `sample / KEEP` of the alpha.
fn erased([r, g, b, alpha]: [u8; 4], sample: u8) -> [u8; 4] {
    let keep = u32::from(KEEP);
    let left = ((u32::from(alpha) * u32::from(sample) + keep / 2) / keep) as u8;
    if left == 0 { [0; 4] } else { [r, g, b, left] }
}

/// Fades from a pixel to the original, in the proportion `share` to 127. Colors are weighted by alpha, so on any
/// background this looks like fading from one picture to the other.
fn restored(cut: [u8; 4], original: [u8; 4], share: u8) -> [u8; 4] {
    let whole = u32::from(u8::MAX - KEEP);
    let share = u32::from(share);
    let weight_of_cut = u32::from(cut[3]) * (whole - share);
    let weight = u32::from(original[3]) * share;
    let sum = weight_of_cut + weight;
    if sum == 0 {
        return [0; 4];
    }
    let mix = |cut: u8, original: u8| {
        ((u32::from(cut) * weight_of_cut + u32::from(original) * weight + sum / 2) / sum) as u8
    };
    let alpha = ((sum + whole / 2) / whole) as u8;
    [mix(cut[0], original[0]), mix(cut[1], original[1]), mix(cut[2], original[2]), alpha]
}
