//! The shadow of a subject.

use image::{DynamicImage, GrayImage, RgbaImage};

use super::canvas::Canvas;
use super::options::Shadow;
use super::soft::{Beyond, Soft};
use crate::PixelError;
use crate::bounds::Bounds;

/// Returns the opacity of the shadow at every pixel of the canvas.
pub(super) fn cast(
    cut: &RgbaImage,
    subject: &Bounds,
    shadow: &Shadow,
    canvas: &Canvas,
) -> Result<GrayImage, PixelError> {
    let pixels = |percent: f64| f64::from(subject.longer_side()) * percent / 100.0;
    let alpha = cut.pixels().map(|pixel| pixel.0[3]).collect();
    let alpha = GrayImage::from_raw(cut.width(), cut.height(), alpha)
        .ok_or_else(|| PixelError::Internal("a cutout has another size".to_owned()))?;
    let soft = Soft::new(DynamicImage::ImageLuma8(alpha), pixels(shadow.blur))?;
    // Whole pixels, so that a sharp shadow stays sharp.
    let (right, down) = (pixels(shadow.x).round() as i64, pixels(shadow.y).round() as i64);
    let moved = Canvas { left: canvas.left - right, top: canvas.top - down, ..*canvas };
    let mut plane = soft.render(&moved, Beyond::Nothing)?.into_luma8();
    let levels: [u8; 256] =
        std::array::from_fn(|alpha| (alpha as f64 * shadow.opacity).round() as u8);
    for level in plane.iter_mut() {
        *level = levels[usize::from(*level)];
    }
    Ok(plane)
}
