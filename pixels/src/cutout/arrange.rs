//! Where the subject stands, and in how large a picture.

use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use image::{DynamicImage, RgbaImage, imageops};

use super::shape::{Position, Shape, pixels};
use crate::PixelError;

/// What is fainter than this is seen by nobody and counts as empty.
const FAINTEST: u8 = 5;

/// The rectangle that a subject fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// Crops, scales and moves. A picture without a subject stays as it is.
pub(super) fn arrange(cut: RgbaImage, wanted: &Shape) -> Result<RgbaImage, PixelError> {
    let moves = wanted.scale.is_some() || wanted.position != Position::Original;
    if wanted.crop.is_none() && !moves {
        return Ok(cut);
    }
    let Some(subject) = find_subject(&cut) else { return Ok(cut) };
    let (width, height, left, top) = match wanted.crop {
        None => (cut.width(), cut.height(), subject.left, subject.top),
        Some(margins) => {
            let (top, bottom) = (margins.top.of(subject.height), margins.bottom.of(subject.height));
            let (left, right) = (margins.left.of(subject.width), margins.right.of(subject.width));
            (subject.width + left + right, subject.height + top + bottom, left, top)
        }
    };
    let Subject { left: x, top: y, width: w, height: h } = subject;
    let mut piece = imageops::crop_imm(&cut, x, y, w, h).to_image();
    drop(cut);
    if let Some(share) = wanted.scale {
        let factor =
            share * (f64::from(width) / f64::from(w)).min(f64::from(height) / f64::from(h));
        let side =
            |length: u32, most: u32| ((f64::from(length) * factor).round() as u32).clamp(1, most);
        piece = resize(piece, side(w, width), side(h, height))?;
    }
    let (free_x, free_y) = (width - piece.width(), height - piece.height());
    let (at_x, at_y) = match wanted.position {
        Position::At { x, y } => (part(free_x, x), part(free_y, y)),
        // Its middle stays where it was, as far as the canvas allows.
        Position::Original => (
            (left + w / 2).saturating_sub(piece.width() / 2).min(free_x),
            (top + h / 2).saturating_sub(piece.height() / 2).min(free_y),
        ),
    };
    let mut canvas = RgbaImage::new(width, height);
    imageops::replace(&mut canvas, &piece, i64::from(at_x), i64::from(at_y));
    Ok(canvas)
}

/// The smallest rectangle that holds all that is not empty.
pub(super) fn find_subject(cut: &RgbaImage) -> Option<Subject> {
    let (mut left, mut right, mut top, mut bottom) = (u32::MAX, 0, u32::MAX, 0);
    let is_seen = |pixel: &image::Rgba<u8>| pixel.0[3] >= FAINTEST;
    for (y, mut row) in cut.rows().enumerate() {
        let Some(first) = row.position(is_seen) else { continue };
        let last = row.rposition(is_seen).map_or(first, |more| first + 1 + more);
        left = left.min(first as u32);
        right = right.max(last as u32);
        top = top.min(y as u32);
        bottom = y as u32;
    }
    (top != u32::MAX).then(|| Subject {
        left,
        top,
        width: right - left + 1,
        height: bottom - top + 1,
    })
}

/// Makes a picture of more than `most` pixels smaller, until it has at most as many.
pub(super) fn shrink(picture: RgbaImage, most: u32) -> Result<RgbaImage, PixelError> {
    let (width, height) = picture.dimensions();
    if pixels(width, height) <= u64::from(most) {
        return Ok(picture);
    }
    let factor = (f64::from(most) / (f64::from(width) * f64::from(height))).sqrt();
    // Sides that come out even must not lose a pixel to the last bit of a square root.
    let side = |length: u32| ((f64::from(length) * factor + 1e-6).floor() as u32).max(1);
    resize(picture, side(width), side(height))
}

fn part(whole: u32, share: f64) -> u32 {
    (f64::from(whole) * share).round() as u32
}

/// Colours are weighed by their alpha: what is invisible does not bleed into what is seen.
fn resize(picture: RgbaImage, width: u32, height: u32) -> Result<RgbaImage, PixelError> {
    if picture.dimensions() == (width, height) {
        return Ok(picture);
    }
    let mut resized = DynamicImage::new_rgba8(width, height);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
    Resizer::new()
        .resize(&DynamicImage::ImageRgba8(picture), &mut resized, &options)
        .map_err(|error| PixelError::Internal(format!("resizing a cut-out: {error}")))?;
    Ok(resized.into_rgba8())
}
