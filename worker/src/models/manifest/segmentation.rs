//! What a manifest says about a model that finds the subject of a picture.

use serde::{Deserialize, Deserializer};

use super::{Element, Layout, Output, check_normalisation};

/// The contract of a segmentation model: one RGB picture of a fixed size in, one map of that size out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segmentation {
    /// How a picture becomes the input tensor.
    pub input: PictureInput,
    /// The output to ask for: f32 `[1, 1, height, width]`.
    pub output: Output,
    /// How the output becomes alpha.
    pub postprocess: Postprocess,
}

/// How a picture becomes a tensor: resized without keeping its aspect, then
/// `(sample / divide_by - mean) / std` for each channel, samples being 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureInput {
    /// The tensor's name in the graph.
    pub name: String,
    /// The order of its axes.
    pub layout: Layout,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The type of its elements.
    pub element: Element,
    /// How the picture is brought to `width` × `height`.
    pub resize: Resize,
    /// What samples are divided by.
    pub divide_by: Divisor,
    /// Subtracted after the division, for R, G and B.
    pub mean: [f32; 3],
    /// Divided by at last, for R, G and B.
    pub std: [f32; 3],
}

/// How pixels are resampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// A triangle filter, widened when shrinking: what Pillow calls BILINEAR.
    Bilinear,
}

/// What samples are divided by before normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Divisor {
    /// The largest sample of the resized picture, over all channels.
    Max,
    /// A constant.
    Constant(f32),
}

impl<'de> Deserialize<'de> for Divisor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f32),
            Word(String),
        }
        match Written::deserialize(deserializer) {
            Ok(Written::Number(number)) if number > 0.0 => Ok(Self::Constant(number)),
            Ok(Written::Word(word)) if word == "max" => Ok(Self::Max),
            _ => Err(serde::de::Error::custom("divide_by must be \"max\" or a number above 0")),
        }
    }
}

/// How a segmentation map becomes alpha.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postprocess {
    /// How the map is brought to 0..=1.
    pub range: Range,
    /// How the map is brought to the picture's size.
    pub resize: Resize,
}

/// How a map is brought to 0..=1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Range {
    /// The smallest value becomes 0, the largest 1.
    Minmax,
    /// Values outside are cut off.
    Clip,
    /// The values are logits: `1 / (1 + exp(-value))`.
    Sigmoid,
}

impl PictureInput {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=8192).contains(&self.width) || !(1..=8192).contains(&self.height) {
            return Err(format!(
                "input is {} × {}; each side must be 1 to 8192",
                self.width, self.height
            ));
        }
        check_normalisation(&self.mean, &self.std)
    }
}
