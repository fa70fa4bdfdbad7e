//! The contract of a safety net, which checks whether a picture may be shown.

use serde::Deserialize;

use super::contract::Output;

/// The contract of a safety net: takes a picture and returns one probability per class.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Safety {
    /// How pixels become the input tensor, f32 `[1, crop, crop, 3]`.
    pub input: SafetyInput,
    /// The output to fetch: f32 `[1, classes]`, probabilities.
    pub output: Output,
    /// The index of the unsafe class, from 0.
    pub unsafe_class: usize,
    /// The probability from which a picture is not shown.
    pub threshold: f32,
}

/// How pixels become a tensor: the picture is resized to a square, its center is cropped, and `mean` is subtracted from
/// samples of 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyInput {
    /// The tensor's name in the graph.
    pub name: String,
    /// The order of the channels.
    pub order: ChannelOrder,
    /// The side of the resized square, in pixels.
    pub resize: u32,
    /// The side of the center crop, in pixels.
    pub crop: u32,
    /// The value to subtract, in the order of the channels.
    pub mean: [f32; 3],
}

/// The order of a pixel's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelOrder {
    /// Red first.
    Rgb,
    /// Blue first.
    Bgr,
}

impl Safety {
    pub(super) fn check(&self) -> Result<(), String> {
        let SafetyInput { resize, crop, mean, .. } = &self.input;
        if *crop == 0 || crop > resize || *resize > 4096 {
            return Err(
                "input.crop must be 1 to input.resize, and input.resize at most 4096".to_owned()
            );
        }
        if !mean.iter().all(|mean| mean.is_finite()) {
            return Err("input.mean must hold finite numbers".to_owned());
        }
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return Err("threshold must be above 0 and at most 1".to_owned());
        }
        Ok(())
    }
}
