//! Finishes a result: touches a cutout up, crops it, puts a background and a shadow behind it, and writes a file.
//!
//! All formats are made from the same pixels. Pixels are composited with straight alpha in the encoding of the result's
//! samples, as browsers do it, not in linear light. The caller's colors, which are sRGB, and the colors of a background
//! picture are converted to that encoding.

mod backdrop;
mod canvas;
mod error;
mod file;
mod gradient;
mod memory;
mod options;
mod shadow;
mod soft;
mod touch_up;

use bytes::Bytes;

pub use error::{FinishError, TouchUpError};
pub use file::{FinishedFile, Output, Quality};
pub use gradient::Gradient;
pub use memory::memory_bytes;
pub use options::{Background, Crop, Finish, MAX_PIXELS, Shadow};

use crate::bounds::Bounds;
use crate::cutout::FAINTEST;
use crate::{Limits, Picture, PixelError, decode, encode, icc, stored};
use backdrop::Backdrop;
use canvas::Canvas;
use touch_up::TouchUp;

/// Renders a result from the PNG that a worker stored. If `finish` changes nothing, the PNG is returned as it is.
/// `original` is the picture that the result was made from, for a [`Finish`] that needs it; it has the result's size.
/// [`memory_bytes`] says how much memory that takes.
pub fn render(
    result: &Bytes,
    original: Option<&[u8]>,
    finish: &Finish,
    limits: &Limits,
) -> Result<FinishedFile, FinishError> {
    if finish.changes_nothing() {
        return Ok(FinishedFile { bytes: result.clone(), content_type: "image/png" });
    }
    let reader = stored::open(result).map_err(|error| failed("reading a result", &error))?;
    let size = reader.info().size();
    let touch_up = finish.touch_up.as_ref().map(|png| TouchUp::open(png, size)).transpose()?;
    // Do this first, because its peak memory is the highest.
    let original =
        if finish.needs_original() { Some(read_original(original, size)?) } else { None };
    let stored = stored::read(reader).map_err(|error| failed("decoding a result", &error))?;
    let mut cut = stored.picture;
    if let (Some(touch_up), Some(original)) = (touch_up, &original) {
        touch_up.apply(&mut cut, original)?;
    }
    let original = original.filter(|_| finish.shows_original());

    let subject = Bounds::of(&cut, FAINTEST);
    let canvas = match (&finish.crop, &subject) {
        (None, _) => Canvas::of_picture(size),
        (Some(_), None) => return Err(FinishError::NothingLeft),
        (Some(crop), Some(subject)) => Canvas::around(subject, crop),
    };
    canvas.check(size, finish.output)?;
    let shadow = match (&finish.shadow, &subject) {
        (Some(shadow), Some(subject)) => Some(shadow::cast(&cut, subject, shadow, &canvas)?),
        _ => None,
    };
    let mut picture = canvas.place(cut);
    let backdrop = match &finish.background {
        None => Backdrop::Nothing,
        Some(background) => {
            let profile = stored.profile.as_deref().and_then(icc::of_rgb);
            Backdrop::prepare(background, original, &canvas, *limits, profile.as_deref())?
        }
    };
    backdrop::compose(&mut picture, &backdrop, shadow.as_ref());
    drop((backdrop, shadow));

    let colors_are_kept = finish.background.is_none() && finish.touch_up.is_none();
    let is_gray = stored.is_gray && colors_are_kept;
    Ok(file::write(picture, finish.output, stored.profile.as_deref(), is_gray)?)
}

/// Returns the alpha of a result as a gray PNG of the same size: white where the subject is.
///
/// # Errors
/// [`PixelError::Internal`] if the result is not a PNG as workers make it.
pub fn mask_of(result: &Bytes) -> Result<Bytes, PixelError> {
    let reader = stored::open(result).map_err(|error| failed("reading a result", &error))?;
    let stored = stored::read(reader).map_err(|error| failed("decoding a result", &error))?;
    let alpha: Vec<u8> = stored.picture.pixels().map(|pixel| pixel.0[3]).collect();
    encode::png_of_samples(stored.picture.dimensions(), encode::Channels::Gray, &alpha, None)
}

fn read_original(original: Option<&[u8]>, size: (u32, u32)) -> Result<Picture, PixelError> {
    let missing = || PixelError::Internal("the original picture is missing".to_owned());
    let limits = Limits { max_dimension: size.0.max(size.1) };
    let picture = decode::decode(original.ok_or_else(missing)?, &limits)?;
    if (picture.width, picture.height) == size {
        return Ok(picture);
    }
    let Picture { width, height, .. } = picture;
    let text = format!("the original is {width} × {height} pixels but the result is {size:?}");
    Err(PixelError::Internal(text))
}

fn failed(step: &str, error: &dyn std::error::Error) -> PixelError {
    PixelError::Internal(format!("{step}: {error}"))
}

#[cfg(test)]
mod tests;
