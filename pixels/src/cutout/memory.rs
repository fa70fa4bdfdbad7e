//! The memory that rendering a cutout takes.

use super::options::{CutoutOptions, Format, Position, pixels};
use crate::encode::MAX_WEBP_SIDE;

/// The memory for everything but pixels, in bytes: rows, tables and profiles.
const SPARE_BYTES: u64 = 8 << 20;

/// Returns the peak memory that [`super::render`] takes beside the stored PNG of `width` × `height` pixels, in bytes.
/// Assumes a subject that fills the picture, and noise, which does not compress.
pub fn memory_bytes(width: u32, height: u32, options: &CutoutOptions) -> u64 {
    if options.change_nothing(width, height) {
        return 0;
    }
    let source = 4 * pixels(width, height);
    let (across, down) = canvas(width, height, options);
    let canvas = 4 * pixels(across, down);
    let moves =
        options.crop.is_some() || options.scale.is_some() || options.position != Position::Original;
    // The subject is cut out (a copy), scaled in two passes (from a copy weighted by alpha), and put on the canvas.
    let arranging = match options.scale {
        _ if !moves => source,
        None => source + source.max(canvas),
        Some(_) => (2 * source + 4 * pixels(across, height) + canvas).max(2 * canvas),
    };
    let file = options.max_pixels.map_or(canvas, |max| canvas.min(4 * u64::from(max)));
    let shrinking = if file < canvas {
        let narrowed = canvas as f64 * (file as f64 / canvas as f64).sqrt();
        2 * canvas + narrowed as u64 + file
    } else {
        0
    };
    // The picture and its file; a copy in between for JPEG, two for lossless WebP.
    let encoding = match options.format {
        Format::WebP => 4 * file,
        Format::Auto | Format::Png | Format::Jpeg | Format::Zip => 2 * file + file / 4,
    };
    arranging.max(shrinking).max(encoding) + SPARE_BYTES
}

/// Returns the largest canvas of a cutout of `width` × `height` pixels: its subject fills the picture.
fn canvas(width: u32, height: u32, options: &CutoutOptions) -> (u32, u32) {
    options.crop.map_or((width, height), |margins| {
        let across = margins.left.of(width) + margins.right.of(width);
        let down = margins.top.of(height) + margins.bottom.of(height);
        (width + across, height + down)
    })
}

/// Returns whether the file format can hold every cutout of a picture of `width` × `height` pixels.
pub fn fits_format(width: u32, height: u32, options: &CutoutOptions) -> bool {
    let (across, down) = canvas(width, height, options);
    let share = options.max_pixels.map_or(1.0, |max| f64::from(max) / pixels(across, down) as f64);
    let longer = f64::from(across.max(down)) * share.min(1.0).sqrt();
    options.format != Format::WebP || longer <= f64::from(MAX_WEBP_SIDE)
}
