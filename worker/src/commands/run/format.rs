//! The formats of results.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use retouch_pixels::finish::{Background, Finish, Output, Quality, render};
use retouch_pixels::{Limits, cutout};

/// Extensions of pictures in formats that are not written.
const OTHER_FORMATS: [&str; 17] = [
    "apng", "avif", "bmp", "gif", "heic", "heif", "hif", "ico", "jp2", "jxl", "pdf", "psd", "svg",
    "tga", "tif", "tiff", "xcf",
];

/// A file format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// PNG, lossless.
    #[default]
    Png,
    /// JPEG, without transparency.
    Jpg,
    /// WebP.
    Webp,
}

impl Format {
    /// Returns the format that the extension of a path names.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "jpg" | "jpeg" | "jpe" | "jfif" => Some(Self::Jpg),
            "webp" => Some(Self::Webp),
            _ => None,
        }
    }

    /// Returns the format of an output: `given`, or the format of its file name, or PNG.
    ///
    /// # Errors
    /// If its name says a format that is not written.
    pub fn of_output(path: &Path, given: Option<Self>) -> anyhow::Result<Self> {
        if let Some(format) = given.or_else(|| Self::of_name(path)) {
            return Ok(format);
        }
        if let Some(other) = other_format(path) {
            bail!(
                "{}: Retouch cannot write a .{other}; name a .png, .jpg, or .webp, or add --format",
                path.display()
            );
        }
        Ok(Self::default())
    }

    /// Returns whether a path has the extension of a picture, also of one that is not written.
    pub fn is_file_name(path: &Path) -> bool {
        Self::of_name(path).is_some() || other_format(path).is_some()
    }

    /// Returns the extension, without its dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpg => "jpg",
            Self::Webp => "webp",
        }
    }
}

/// Returns the format that is not written whose extension a path has.
fn other_format(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    OTHER_FORMATS.into_iter().find(|other| extension.eq_ignore_ascii_case(other))
}

/// How results are written.
#[derive(Args, Clone, Copy)]
pub struct WriteArgs {
    /// The quality of JPG and WebP, from 1 to 100; a WebP of 100 is lossless.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: u8,
}

impl WriteArgs {
    /// Returns whether the PNG of a tool is written as it is.
    pub fn keeps_png(format: Format, background: Option<[u8; 3]>) -> bool {
        format == Format::Png && background.is_none()
    }

    /// Checks that a format can hold a picture of `size` (width, height).
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_size(self, format: Format, (width, height): (u32, u32)) -> anyhow::Result<()> {
        let max_side = self.output(format)?.max_side().unwrap_or(u32::MAX);
        ensure!(
            width.max(height) <= max_side,
            "the result would be {width} × {height} pixels, and a .{} holds at most {max_side} per side; add --format png",
            format.extension()
        );
        Ok(())
    }

    fn output(self, format: Format) -> anyhow::Result<Output> {
        let quality = Quality::new(f64::from(self.quality)).context("the quality is 1 to 100")?;
        Ok(match format {
            Format::Png => Output::Png,
            Format::Jpg => Output::Jpeg(quality),
            Format::Webp => Output::WebP(quality),
        })
    }

    /// Converts the PNG of a tool. Transparent pixels of a JPG are white, or have the color of the background.
    ///
    /// # Errors
    /// If the format cannot hold a picture of this size.
    pub fn convert(
        self,
        png: &Bytes,
        format: Format,
        background: Option<[u8; 3]>,
    ) -> anyhow::Result<Bytes> {
        let background = background.map(Background::Color);
        let finish = Finish { background, ..Finish::convert(self.output(format)?) };
        // The tool has limited the size already.
        let limits = Limits { max_dimension: u32::MAX };
        Ok(render(png, None, &finish, &limits)?.bytes)
    }
}

/// Parses an opaque color such as `#ffcc00`, `fc0`, or `white`.
pub fn parse_color(text: &str) -> Result<[u8; 3], String> {
    match cutout::parse_color(text) {
        Some([red, green, blue, u8::MAX]) => Ok([red, green, blue]),
        Some(_) => Err("it must be opaque".to_owned()),
        None => Err("it must be a color such as #ffcc00".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_opaque() {
        assert_eq!(parse_color("#ffcc00"), Ok([255, 204, 0]));
        assert_eq!(parse_color("fC0"), Ok([255, 204, 0]));
        assert_eq!(parse_color("white"), Ok([255; 3]));
        for wrong in
            ["", "#", "ffcc0", "ffcc0g", "+1+1+1", "äöü", "fc08", "#ffcc00fe", "transparent"]
        {
            assert!(parse_color(wrong).is_err(), "{wrong}");
        }
    }
}
