//! The contract of a segmentation model, which finds the subject of a picture.

use ndarray::Array4;
use retouch_pixels::alpha::{self, MapRange};
use retouch_pixels::tensor::{self, Divisor};
use retouch_pixels::{Picture, PixelError};
use serde::{Deserialize, Deserializer};

use super::contract::{Element, Layout, Output, check_normalization};

/// The contract of a segmentation model: takes an RGB picture of a fixed size and returns a map of that size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segmentation {
    /// How a picture becomes the input tensor.
    pub input: PictureInput,
    /// The output to fetch: f32 `[1, 1, height, width]`.
    pub output: Output,
    /// How the output becomes alpha.
    pub postprocess: Postprocess,
}

/// How a picture becomes a tensor: resized without keeping its aspect ratio, then `(sample / divide_by - mean) / std`
/// per channel, for samples in 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureInput {
    /// The tensor's name in the graph.
    pub name: String,
    /// The order of the axes.
    pub layout: Layout,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The element type.
    pub element: Element,
    /// How the picture is resized to `width` × `height`.
    pub resize: Resize,
    /// The divisor of the samples.
    #[serde(deserialize_with = "divisor")]
    pub divide_by: Divisor,
    /// Subtracted after the division, for R, G and B.
    pub mean: [f32; 3],
    /// The final divisor, for R, G and B.
    pub std: [f32; 3],
}

/// How pixels are resampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// A triangle filter, widened when shrinking, as in Pillow's `BILINEAR`.
    Bilinear,
}

fn divisor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Divisor, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(f32),
        Word(String),
    }
    match Value::deserialize(deserializer) {
        Ok(Value::Number(number)) if number > 0.0 => Ok(Divisor::Constant(number)),
        Ok(Value::Word(word)) if word == "max" => Ok(Divisor::Max),
        _ => Err(serde::de::Error::custom("divide_by must be \"max\" or a number above 0")),
    }
}

/// How a segmentation map becomes alpha.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postprocess {
    /// How the map is scaled to 0..=1.
    pub range: MapRange,
    /// How the map is resized to the picture's size.
    pub resize: Resize,
}

impl PictureInput {
    /// Converts a picture to the input tensor, f32 `[1, 3, height, width]`.
    pub fn to_tensor(&self, picture: &Picture) -> Array4<f32> {
        let (Resize::Bilinear, Layout::Nchw, Element::F32) =
            (self.resize, self.layout, self.element);
        tensor::to_tensor(picture, (self.width, self.height), self.divide_by, self.mean, self.std)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=8192).contains(&self.width) || !(1..=8192).contains(&self.height) {
            return Err(format!(
                "input.width and input.height are {} × {}, but must be 1 to 8192",
                self.width, self.height
            ));
        }
        check_normalization(&self.mean, &self.std)
    }
}

impl Postprocess {
    /// Converts a map, f32 `[1, 1, h, w]`, to one alpha byte per pixel of `picture`.
    ///
    /// # Errors
    /// [`PixelError::InvalidOutput`] if the map contains NaN or infinities.
    pub fn to_alpha(&self, map: &Array4<f32>, picture: &Picture) -> Result<Vec<u8>, PixelError> {
        let Resize::Bilinear = self.resize;
        alpha::to_alpha(map, self.range, picture)
    }
}
