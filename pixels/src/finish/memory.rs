//! The memory that finishing a result takes.

use super::canvas::Canvas;
use super::file::{Output, Quality};
use super::options::{Background, Finish, MAX_PIXELS};
use super::soft::reduction;
use crate::bounds::Bounds;
use crate::decode::Header;

/// The memory for everything but pixels, in bytes: rows, tables and profiles.
const SPARE_BYTES: u64 = 8 << 20;
/// Maximum margin of a blurred picture around its canvas, in pixels after scaling down.
const BLUR_REACH: u64 = 16;

/// Returns the peak memory that [`super::render`] takes beside the files, in bytes, for a result of `size` (width,
/// height). `original` is the header of the picture that the result was made from, `background` the header of the
/// background picture. Assumes a subject that fills the result, and noise, which does not compress.
pub fn memory_bytes(
    size: (u32, u32),
    finish: &Finish,
    original: Option<&Header>,
    background: Option<&Header>,
) -> u64 {
    if finish.changes_nothing() {
        return 0;
    }
    let canvas = largest_canvas(size, finish);
    let cut = 4 * pixels(size);
    let picture = 4 * canvas.pixels;
    let shadow = if finish.shadow.is_some() { canvas.pixels } else { 0 };
    let kept = if finish.shows_original() { 3 * pixels(size) } else { 0 };

    let reading =
        original.map_or(0, |header| header.decode_bytes().max(header.picture_bytes() + cut));
    // Its alpha, the same in the place of the shadow, blurred twice, and the shadow.
    let casting =
        if shadow > 0 { kept + cut + pixels(size) + 3 * canvas.extended(1) + shadow } else { 0 };
    let placing = kept + shadow + cut + if finish.crop.is_some() { picture } else { 0 };
    let behind = match &finish.background {
        None | Some(Background::Color(_) | Background::Gradient(_)) => 0,
        Some(Background::Blur { percent }) => {
            let sigma = f64::from(size.0.max(size.1)) * percent / 100.0;
            blurring(size, &canvas, reduction(sigma))
        }
        Some(Background::Picture(_)) => background.map_or(0, |header| covering(header, &canvas)),
    };
    let encoding = match finish.output {
        // The picture and its file; of a JPEG a copy without alpha.
        Output::Png | Output::Jpeg(_) => 2 * picture + picture / 4,
        Output::WebP(Quality::BEST) => 4 * picture,
        Output::WebP(_) => 6 * picture,
    };
    let stages = [reading, casting, placing, picture + shadow + behind, encoding];
    stages.into_iter().max().unwrap_or(0) + SPARE_BYTES
}

/// The canvas of a subject that fills the result.
struct LargestCanvas {
    width: u64,
    height: u64,
    pixels: u64,
}

impl LargestCanvas {
    /// Returns the pixels of a picture that is scaled down by `factor` and reaches beyond the canvas for a blur.
    fn extended(&self, factor: u64) -> u64 {
        let around = (self.width + self.height).div_ceil(factor) * (2 * BLUR_REACH + 1);
        self.pixels / factor.pow(2) + around + 4 * BLUR_REACH.pow(2)
    }
}

fn largest_canvas(size: (u32, u32), finish: &Finish) -> LargestCanvas {
    let (width, height) = size;
    let canvas = finish.crop.map_or(Canvas::of_picture(size), |crop| {
        Canvas::around(&Bounds { left: 0, top: 0, width, height }, &crop)
    });
    // A larger one is refused.
    let pixels = canvas.pixels().min(MAX_PIXELS.max(pixels(size)));
    LargestCanvas { width: u64::from(canvas.width), height: u64::from(canvas.height), pixels }
}

/// The original, scaled down; its extended part with two copies; and the blurred picture.
fn blurring(size: (u32, u32), canvas: &LargestCanvas, factor: u32) -> u64 {
    let factor = u64::from(factor);
    let scaling_down = 3 * pixels(size) + 3 * pixels(size) / factor;
    let extended = 3 * canvas.extended(factor);
    let scaling_up = extended + 3 * canvas.pixels / factor + 3 * canvas.pixels;
    scaling_down.max(3 * pixels(size) / factor.pow(2) + 3 * extended).max(scaling_up)
}

/// The decoded background, twice if it has alpha, scaled in one direction, and scaled in both.
fn covering(background: &Header, canvas: &LargestCanvas) -> u64 {
    let decoded = background.picture_bytes();
    let (width, height) = (u64::from(background.width), u64::from(background.height));
    // Only the part that covers the canvas is scaled. The picture may be rotated.
    let part = |width: u64, height: u64| (width * canvas.height).min(canvas.width * height);
    let scaled = part(width, height).max(part(height, width)) + canvas.pixels;
    let scaling = decoded + decoded / (width * height).max(1) * scaled;
    background.decode_bytes().max(2 * decoded).max(scaling)
}

fn pixels((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
}
