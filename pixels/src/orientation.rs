//! Applies the EXIF orientation (EXIF 2.3, 4.6.4, tag 0x0112): turns pixels upright.

use image::metadata::Orientation;
use rayon::prelude::*;

/// Rows of the result that one task fills. For rotations by 90° it is also the height of the block that keeps reads
/// within cache lines.
const BAND_ROWS: usize = 32;

/// Returns the upright size of a picture stored as `width` × `height`.
pub fn upright_size(width: u32, height: u32, orientation: Orientation) -> (u32, u32) {
    match orientation {
        Orientation::NoTransforms
        | Orientation::FlipHorizontal
        | Orientation::Rotate180
        | Orientation::FlipVertical => (width, height),
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => (height, width),
    }
}

/// Turns a picture of `N` bytes per pixel, stored as `width` × `height`, upright.
pub fn upright<const N: usize>(
    pixels: Vec<u8>,
    width: u32,
    height: u32,
    orientation: Orientation,
) -> Vec<u8> {
    let (w, h) = (width as usize, height as usize);
    match orientation {
        Orientation::NoTransforms => pixels,
        Orientation::FlipHorizontal => turned::<N>(&pixels, w, w, |x, y| (w - 1 - x, y)),
        Orientation::Rotate180 => turned::<N>(&pixels, w, w, |x, y| (w - 1 - x, h - 1 - y)),
        Orientation::FlipVertical => turned::<N>(&pixels, w, w, |x, y| (x, h - 1 - y)),
        Orientation::Rotate90 => turned::<N>(&pixels, w, h, |x, y| (y, h - 1 - x)),
        Orientation::Rotate270 => turned::<N>(&pixels, w, h, |x, y| (w - 1 - y, x)),
        Orientation::Rotate90FlipH => turned::<N>(&pixels, w, h, |x, y| (y, x)),
        Orientation::Rotate270FlipH => turned::<N>(&pixels, w, h, |x, y| (w - 1 - y, h - 1 - x)),
    }
}

/// Fills a picture `out_width` pixels wide. `source` maps a column and row of the result to a column and row of the
/// input.
fn turned<const N: usize>(
    pixels: &[u8],
    width: usize,
    out_width: usize,
    source: impl Fn(usize, usize) -> (usize, usize) + Sync,
) -> Vec<u8> {
    let mut out = vec![0; pixels.len()];
    out.par_chunks_mut(out_width * N * BAND_ROWS).enumerate().for_each(|(band, rows)| {
        let top = band * BAND_ROWS;
        for x in 0..out_width {
            for (row, line) in rows.chunks_exact_mut(out_width * N).enumerate() {
                let (sx, sy) = source(x, top + row);
                let from = (sy * width + sx) * N;
                line[x * N..][..N].copy_from_slice(&pixels[from..from + N]);
            }
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, RgbImage};

    use super::*;

    #[test]
    fn every_orientation_matches_the_image_crate() {
        let (width, height) = (37, 70);
        let rgb: Vec<u8> = (0..width * height * 3).map(|i| (i * 7 % 251) as u8).collect();
        for exif in 1..=8 {
            let orientation = Orientation::from_exif(exif).expect("1 to 8 are orientations");
            let picture = RgbImage::from_raw(width, height, rgb.clone()).expect("sizes agree");
            let mut expected = DynamicImage::ImageRgb8(picture);
            expected.apply_orientation(orientation);
            let actual = upright::<3>(rgb.clone(), width, height, orientation);
            assert!(actual == expected.as_bytes(), "orientation {exif}");
            let size = upright_size(width, height, orientation);
            assert_eq!(size, (expected.width(), expected.height()));
        }
    }
}
