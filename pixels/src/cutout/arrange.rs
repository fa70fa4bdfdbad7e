//! Places the subject on a canvas.

use image::{DynamicImage, RgbaImage, imageops};
use retouch_resample::{FilterType, ResizeAlg, ResizeOptions};

use super::options::{CutoutOptions, Position, pixels};
use crate::PixelError;
use crate::bounds::Bounds;
use crate::resize::convolve_image;

/// The least alpha of a visible pixel. Fainter pixels count as empty.
pub const FAINTEST: u8 = 5;

/// Crops the picture, scales the subject and moves it. A picture without a subject does not change.
pub(super) fn arrange(cut: RgbaImage, options: &CutoutOptions) -> Result<RgbaImage, PixelError> {
    let moves = options.scale.is_some() || options.position != Position::Original;
    if options.crop.is_none() && !moves {
        return Ok(cut);
    }
    let Some(subject) = find_subject(&cut) else { return Ok(cut) };
    let (width, height, left, top) = match options.crop {
        None => (cut.width(), cut.height(), subject.left, subject.top),
        Some(margins) => {
            let (top, bottom) = (margins.top.of(subject.height), margins.bottom.of(subject.height));
            let (left, right) = (margins.left.of(subject.width), margins.right.of(subject.width));
            (subject.width + left + right, subject.height + top + bottom, left, top)
        }
    };
    let Bounds { left: x, top: y, width: w, height: h } = subject;
    let mut piece = imageops::crop_imm(&cut, x, y, w, h).to_image();
    drop(cut);
    if let Some(share) = options.scale {
        let factor =
            share * (f64::from(width) / f64::from(w)).min(f64::from(height) / f64::from(h));
        let side =
            |length: u32, most: u32| ((f64::from(length) * factor).round() as u32).clamp(1, most);
        piece = resize(piece, side(w, width), side(h, height))?;
    }
    let (free_x, free_y) = (width - piece.width(), height - piece.height());
    let (at_x, at_y) = match options.position {
        Position::At { x, y } => (part(free_x, x), part(free_y, y)),
        // Keeps the subject's center in place as far as the canvas allows.
        Position::Original => (
            (left + w / 2).saturating_sub(piece.width() / 2).min(free_x),
            (top + h / 2).saturating_sub(piece.height() / 2).min(free_y),
        ),
    };
    let mut canvas = RgbaImage::new(width, height);
    imageops::replace(&mut canvas, &piece, i64::from(at_x), i64::from(at_y));
    Ok(canvas)
}

/// Returns the bounding box of the visible pixels.
pub(super) fn find_subject(cut: &RgbaImage) -> Option<Bounds> {
    Bounds::of(cut, FAINTEST)
}

/// Scales a picture down to at most `max_pixels` pixels, keeping its aspect ratio.
pub(super) fn shrink(picture: RgbaImage, max_pixels: u32) -> Result<RgbaImage, PixelError> {
    let (width, height) = picture.dimensions();
    if pixels(width, height) <= u64::from(max_pixels) {
        return Ok(picture);
    }
    let factor = (f64::from(max_pixels) / (f64::from(width) * f64::from(height))).sqrt();
    // The tolerance keeps rounding in the square root from costing a pixel.
    let side = |length: u32| ((f64::from(length) * factor + 1e-6).floor() as u32).max(1);
    resize(picture, side(width), side(height))
}

fn part(whole: u32, share: f64) -> u32 {
    (f64::from(whole) * share).round() as u32
}

/// Resizes with colors weighted by alpha, so that invisible colors do not bleed into visible ones.
fn resize(picture: RgbaImage, width: u32, height: u32) -> Result<RgbaImage, PixelError> {
    if picture.dimensions() == (width, height) {
        return Ok(picture);
    }
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
    let picture = DynamicImage::ImageRgba8(picture);
    Ok(convolve_image(&picture, (width, height), &options)?.into_rgba8())
}
