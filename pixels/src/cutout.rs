//! Renders a cutout as an API client requests it: cropped, positioned, scaled down, on a background color, in a file
//! format.

mod arrange;
mod colors;
mod files;
mod memory;
mod options;

use bytes::Bytes;

pub use arrange::FAINTEST;
pub use colors::{Color, parse_color};
pub use memory::{fits_format, memory_bytes};
pub use options::{Channels, CutoutOptions, Format, Length, Margins, Position};

use crate::{PixelError, stored};

#[derive(Debug)]
pub struct CutoutFile {
    /// The file; of a ZIP that is not [packed](Self::pack) yet, the picture without transparency.
    pub bytes: Bytes,
    pub content_type: &'static str,
    /// The alpha channel as a gray PNG, for a ZIP that is not packed yet.
    alpha: Option<Bytes>,
    pub width: u32,
    pub height: u32,
    /// The width it would have without [`CutoutOptions::max_pixels`].
    pub full_width: u32,
    /// The height it would have without [`CutoutOptions::max_pixels`].
    pub full_height: u32,
}

impl CutoutFile {
    /// Packs a ZIP. Returns other files as they are. Until then, the picture can still get marks.
    ///
    /// # Errors
    /// [`PixelError::Internal`] if the ZIP cannot be written.
    pub fn pack(self) -> Result<Self, PixelError> {
        let Some(alpha) = &self.alpha else { return Ok(self) };
        let bytes = files::zip(&[("color.jpg", &self.bytes), ("alpha.png", alpha)])?;
        Ok(Self { bytes, content_type: "application/zip", alpha: None, ..self })
    }
}

/// Renders a cutout from the PNG that a worker stored. If `options` change nothing, the PNG is returned as it is.
/// [`memory_bytes`] says how much memory that takes.
///
/// # Errors
/// [`PixelError::Internal`] if the PNG cannot be read, the file cannot be encoded, or a ZIP with only the
/// alpha channel is requested.
pub fn render(png: &Bytes, options: &CutoutOptions) -> Result<CutoutFile, PixelError> {
    let reader = stored::open(png).map_err(|error| failed("reading a cutout", &error))?;
    let (width, height) = reader.info().size();
    if options.change_nothing(width, height) {
        return Ok(CutoutFile {
            bytes: png.clone(),
            content_type: "image/png",
            alpha: None,
            width,
            height,
            full_width: width,
            full_height: height,
        });
    }
    let stored = stored::read(reader).map_err(|error| failed("decoding a cutout", &error))?;
    let (cut, profile) = (stored.picture, stored.profile);
    let mut picture = arrange::arrange(cut, options)?;
    let (full_width, full_height) = picture.dimensions();
    if let Some(max_pixels) = options.max_pixels {
        picture = arrange::shrink(picture, max_pixels)?;
    }
    let profile = profile.as_deref();
    if let Some(color) = options.background {
        colors::put_behind(&mut picture, colors::in_profile(color, profile));
    }
    let (width, height) = picture.dimensions();
    let (alpha, (bytes, content_type)) = match (options.channels, options.format) {
        (Channels::Rgba, Format::Zip) => {
            let alpha = files::alpha(&picture, Format::Png)?.0;
            (Some(alpha), files::without_transparency(picture, profile)?)
        }
        (Channels::Rgba, format) => (None, files::subject(picture, format, profile)?),
        (Channels::Alpha, format) => (None, files::alpha(&picture, format)?),
    };
    Ok(CutoutFile { bytes, content_type, alpha, width, height, full_width, full_height })
}

fn failed(step: &str, error: &dyn std::error::Error) -> PixelError {
    PixelError::Internal(format!("{step}: {error}"))
}

#[cfg(test)]
mod tests;
