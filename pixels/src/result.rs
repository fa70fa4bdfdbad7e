//! Encodes a result together with its copies. One band of rows is encoded while the next one is made, so that the whole
//! result is never in memory.

use std::ops::Range;

use bytes::Bytes;

use crate::PixelError;
use crate::copies::{Copies, EncodedCopies};
use crate::encode::{Channels, PngStream};

/// The size of a band, in bytes: it fits into the cache of a core.
const BAND_BYTES: usize = 1 << 19;

/// Encodes a picture of `size` (width, height) as a PNG, and its copies. `make` writes the interleaved samples of a range
/// of rows. `icc` describes the samples; copies carry it, too, unless it is large.
///
/// # Errors
/// [`PixelError::Internal`] if an encoder fails.
pub fn encode(
    size: (u32, u32),
    channels: Channels,
    icc: Option<&[u8]>,
    make: impl Fn(Range<usize>, &mut [u8]) + Sync,
) -> Result<(Bytes, EncodedCopies), PixelError> {
    let (stride, height) = (size.0 as usize * channels.count(), size.1 as usize);
    let mut png = PngStream::new(size, channels, icc.map(<[u8]>::to_vec))?;
    let mut copies = Copies::new(size, channels);
    let band_rows = (BAND_BYTES / stride.max(1)).clamp(1, height.max(1));
    let make_band = |start: usize, band: &mut Vec<u8>| {
        let rows = start..(start + band_rows).min(height);
        band.resize(rows.len() * stride, 0);
        make(rows, band);
    };
    let (mut band, mut next) = (Vec::new(), Vec::new());
    make_band(0, &mut band);
    for start in (0..height).step_by(band_rows) {
        let (encoded, ()) = rayon::join(
            || png.write(&band),
            || {
                copies.push(&band);
                if start + band_rows < height {
                    make_band(start + band_rows, &mut next);
                }
            },
        );
        encoded?;
        std::mem::swap(&mut band, &mut next);
    }
    let (png, copies) = rayon::join(|| png.finish(), || copies.encode(icc));
    Ok((png?, copies?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Rgba, encode_png};

    #[test]
    fn a_result_in_bands_is_the_whole_picture_and_has_the_same_copies() {
        // One row, one column, bands of several rows with a rest, rows larger than a band.
        for (width, height) in [(1, 1), (700, 1), (1, 3000), (1700, 1001), (140_000, 2)] {
            let pixels: Vec<u8> = (0..width as usize * height as usize)
                .flat_map(|at| {
                    let alpha = ((at / 50 % 3) * 127) as u8;
                    if alpha == 0 { [0; 4] } else { [at as u8, (at / 7) as u8, 90, alpha] }
                })
                .collect();
            let stride = width as usize * 4;
            let (png, copies) = encode((width, height), Channels::Rgba, None, |rows, out| {
                out.copy_from_slice(&pixels[rows.start * stride..rows.end * stride]);
            })
            .expect("it encodes");
            let picture = Rgba { width, height, pixels: &pixels, icc: None };
            assert!(png == encode_png(picture).expect("it encodes"));
            assert!(copies == Copies::of_rgba(picture).expect("they encode"));
            let decoded = image::load_from_memory(&png).expect("it decodes").into_rgba8();
            assert!(decoded.into_raw() == pixels, "{width} × {height}");
        }
    }
}
