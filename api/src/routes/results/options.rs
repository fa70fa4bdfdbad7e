//! The options of a finished result, in JSON.

use std::ops::RangeInclusive;

use bytes::Bytes;
use retouch_pixels::cutout::parse_color;
use retouch_pixels::finish::{Background, Crop, Finish, Gradient, Output, Quality, Shadow};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::ApiError;

const DEFAULT_QUALITY: f64 = 90.0;

/// A file format.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ResultFormat)]
pub enum FileFormat {
    #[default]
    Png,
    Jpg,
    Webp,
}

/// How to finish a result.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenderOptions {
    /// `png` by default. Transparent pixels are white in a JPG.
    #[serde(default)]
    #[schema(inline, required = false)]
    format: FileFormat,
    /// The quality of a JPG or WebP; a WebP of quality 100 is lossless. 90 by default.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 100)]
    quality: Option<f64>,
    /// The background behind the subject; null keeps the transparency.
    background: Option<BackgroundOption>,
    shadow: Option<ShadowOption>,
    crop: Option<CropOption>,
}

/// The background behind the subject.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackgroundOption {
    /// A color: `#` and six hexadecimal digits.
    #[schema(example = "#81d4fa")]
    Color(String),
    /// A linear gradient.
    Gradient(GradientOption),
    /// The original picture, blurred: the standard deviation in percent of its longer side, from 0.1 to 5. Beyond its
    /// border, the picture is mirrored.
    #[schema(example = 2)]
    Blur(f64),
    /// The picture in the field `background`. Always true.
    Picture(bool),
}

/// A linear gradient, as CSS defines it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GradientOption {
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    from: String,
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    to: String,
    /// The direction in degrees, clockwise; 0 is up.
    #[schema(minimum = 0, maximum = 359)]
    angle: f64,
}

/// A black shadow between the subject and the background. Its lengths are in percent of the subject's longer side.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShadowOption {
    #[schema(minimum = 0, maximum = 1)]
    opacity: f64,
    /// The standard deviation.
    #[schema(minimum = 0, maximum = 10)]
    blur: f64,
    /// The offset to the right.
    #[schema(minimum = -20, maximum = 20)]
    x: f64,
    /// The offset downward.
    #[schema(minimum = -20, maximum = 20)]
    y: f64,
}

/// Crops to the subject. The margin may leave the picture. At most 36 megapixels.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CropOption {
    /// The minimum distance from the subject to the border, in percent of the subject's longer side.
    #[schema(minimum = 0, maximum = 50)]
    margin: f64,
    /// The ratio of width and height, two whole numbers from 1 to 100; null takes the subject's ratio.
    #[schema(example = "4:5", pattern = "^[0-9]{1,3}:[0-9]{1,3}$")]
    aspect: Option<String>,
}

impl RenderOptions {
    /// Parses the field `options`.
    pub fn parse(json: &str) -> Result<Self, ApiError> {
        let mut parser = serde_json::Deserializer::from_str(json);
        let invalid = |path: String, reason: &serde_json::Error| {
            let at = if path == "." { String::new() } else { format!(" at {path}") };
            ApiError::Unprocessable(format!("The field options is invalid{at}: {reason}."))
        };
        let options = serde_path_to_error::deserialize(&mut parser)
            .map_err(|error| invalid(error.path().to_string(), error.inner()))?;
        parser.end().map_err(|error| invalid(".".to_owned(), &error))?;
        Ok(options)
    }

    /// Checks the ranges, and combines the options with the files of the upload.
    pub fn into_finish(
        self,
        touch_up: Option<Bytes>,
        picture: Option<Bytes>,
    ) -> Result<Finish, ApiError> {
        let Self { format, quality, background, shadow, crop } = self;
        Ok(Finish {
            touch_up,
            background: background.map(|it| it.into_background(picture)).transpose()?,
            shadow: shadow.map(ShadowOption::into_shadow).transpose()?,
            crop: crop.map(CropOption::into_crop).transpose()?,
            output: output(format, quality)?,
        })
    }
}

/// Combines a format with a quality, if that is valid.
pub fn output(format: FileFormat, quality: Option<f64>) -> Result<Output, ApiError> {
    let quality = Quality::new(quality.unwrap_or(DEFAULT_QUALITY))
        .ok_or_else(|| out_of_range("quality must be a whole number from 1 to 100."))?;
    Ok(match format {
        FileFormat::Png => Output::Png,
        FileFormat::Jpg => Output::Jpeg(quality),
        FileFormat::Webp => Output::WebP(quality),
    })
}

impl BackgroundOption {
    fn into_background(self, picture: Option<Bytes>) -> Result<Background, ApiError> {
        Ok(match (self, picture) {
            (Self::Color(text), _) => Background::Color(color("color", &text)?),
            (Self::Gradient(GradientOption { from, to, angle }), _) => {
                Background::Gradient(Gradient {
                    from: color("gradient.from", &from)?,
                    to: color("gradient.to", &to)?,
                    angle: within("background.gradient.angle", angle, 0.0..=359.0)?,
                })
            }
            (Self::Blur(percent), _) => {
                Background::Blur { percent: within("background.blur", percent, 0.1..=5.0)? }
            }
            (Self::Picture(true), Some(picture)) => Background::Picture(picture),
            (Self::Picture(true), None) => {
                let detail =
                    "options.background asks for a picture, but the field background is missing.";
                return Err(out_of_range(detail));
            }
            (Self::Picture(false), _) => {
                return Err(out_of_range("options.background.picture must be true."));
            }
        })
    }
}

impl ShadowOption {
    fn into_shadow(self) -> Result<Shadow, ApiError> {
        Ok(Shadow {
            opacity: within("shadow.opacity", self.opacity, 0.0..=1.0)?,
            blur: within("shadow.blur", self.blur, 0.0..=10.0)?,
            x: within("shadow.x", self.x, -20.0..=20.0)?,
            y: within("shadow.y", self.y, -20.0..=20.0)?,
        })
    }
}

impl CropOption {
    fn into_crop(self) -> Result<Crop, ApiError> {
        let margin = within("crop.margin", self.margin, 0.0..=50.0)?;
        let side = |text: &str| text.parse().ok().filter(|side| (1..=100).contains(side));
        let parse = |text: String| {
            let (width, height) = text.split_once(':')?;
            Some((side(width)?, side(height)?))
        };
        let aspect = match self.aspect {
            None => None,
            Some(text) => Some(parse(text).ok_or_else(|| {
                out_of_range(
                    "options.crop.aspect must be two whole numbers from 1 to 100, such as 4:5.",
                )
            })?),
        };
        Ok(Crop { margin, aspect })
    }
}

fn color(field: &str, text: &str) -> Result<[u8; 3], ApiError> {
    let is_long = text.len() == 7 && text.starts_with('#');
    let [r, g, b, _] = parse_color(text).filter(|_| is_long).ok_or_else(|| {
        out_of_range(&format!("options.background.{field} must be a color such as #81d4fa."))
    })?;
    Ok([r, g, b])
}

fn within(field: &str, value: f64, range: RangeInclusive<f64>) -> Result<f64, ApiError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(out_of_range(&format!("options.{field} must be from {least} to {most}.")))
}

fn out_of_range(detail: &str) -> ApiError {
    ApiError::Unprocessable(detail.to_owned())
}
