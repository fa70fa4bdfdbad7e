//! What a manifest says about a model that judges whether a picture may be shown.

use serde::Deserialize;

use super::contract::Output;

/// The contract of a judge: a picture in, one probability for each class out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Safety {
    /// How pixels become the input tensor, f32 `[1, crop, crop, 3]`.
    pub input: SafetyInput,
    /// The output to ask for: f32 `[1, classes]`, probabilities.
    pub output: Output,
    /// Which class is the unsafe one, from 0.
    pub unsafe_class: usize,
    /// From which probability on a picture is not shown.
    pub threshold: f32,
}

/// How pixels become a tensor: the picture is resized to a square, the middle of it is cut out, and `mean` is
/// subtracted from samples of 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyInput {
    /// The tensor's name in the graph.
    pub name: String,
    /// The order of its channels.
    pub order: ChannelOrder,
    /// The side of the square that a picture is resized to.
    pub resize: u32,
    /// The side of what is cut out of its middle.
    pub crop: u32,
    /// What is subtracted, in the order of the channels.
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
            return Err("input.crop must be 1 to input.resize, which is at most 4096".to_owned());
        }
        if !mean.iter().all(|mean| mean.is_finite()) {
            return Err("input.mean must be finite".to_owned());
        }
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return Err("threshold must be above 0 and at most 1".to_owned());
        }
        Ok(())
    }
}
