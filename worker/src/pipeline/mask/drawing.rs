//! A PNG that somebody has drawn, as the pixels of a picture that it covers.

use image::{DynamicImage, ImageError, ImageFormat, ImageReader};

use super::unusable;
use crate::pipeline::PipelineError;

/// Samples from here on are painted; 127 is not.
const PAINTED: u8 = 128;

/// Which of `size.0 * size.1` pixels are painted, rows from the top: see [`super::Mask::read`].
pub(super) fn read(png: &[u8], size: (u32, u32)) -> Result<Vec<bool>, PipelineError> {
    let mut reader = ImageReader::with_format(std::io::Cursor::new(png), ImageFormat::Png);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(1 << 30);
    reader.limits(limits);
    let drawing = reader.decode().map_err(|error| unusable(refusal(png, &error)))?;
    let own = (drawing.width(), drawing.height());
    let off = (u64::from(own.0) * u64::from(size.1)).abs_diff(u64::from(own.1) * u64::from(size.0));
    if off > u64::from(size.0.max(size.1)) {
        return Err(unusable(&format!(
            "it is {} × {} pixels, the image {} × {}",
            own.0, own.1, size.0, size.1
        )));
    }
    let on = painted(&drawing);
    let (width, height) = (size.0 as usize, size.1 as usize);
    Ok(scaled(on, (own.0 as usize, own.1 as usize), (width, height)))
}

/// Why a file is no mask, in words.
fn refusal(file: &[u8], error: &ImageError) -> &'static str {
    const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
    match error {
        _ if !file.starts_with(SIGNATURE) => "it is no PNG",
        ImageError::Limits(_) => "it has too many pixels",
        _ => "it is damaged",
    }
}

fn painted(drawing: &DynamicImage) -> Vec<bool> {
    if drawing.color().has_alpha() {
        let drawing = drawing.to_luma_alpha8();
        if drawing.pixels().any(|pixel| pixel.0[1] < 255) {
            return drawing.pixels().map(|pixel| pixel.0[1] >= PAINTED).collect();
        }
        return drawing.pixels().map(|pixel| pixel.0[0] >= PAINTED).collect();
    }
    drawing.to_luma8().pixels().map(|pixel| pixel.0[0] >= PAINTED).collect()
}

/// Every pixel that touches a painted one is painted.
fn scaled(on: Vec<bool>, own: (usize, usize), size: (usize, usize)) -> Vec<bool> {
    if own == size {
        return on;
    }
    let mut out = vec![false; size.0 * size.1];
    let range = |at: usize, from: usize, to: usize| at * to / from..((at + 1) * to).div_ceil(from);
    for (y, row) in on.chunks_exact(own.0).enumerate() {
        for x in row.iter().enumerate().filter(|(_, on)| **on).map(|(x, _)| x) {
            for out_y in range(y, own.1, size.1) {
                let columns = range(x, own.0, size.0);
                out[out_y * size.0..][columns].fill(true);
            }
        }
    }
    out
}
