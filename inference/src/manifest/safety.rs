//! The contract of a safety net, which checks whether a picture may be shown.

use serde::Deserialize;

use super::contract::{Element, Layout, Output, check_picture_layout};
use crate::tensor::Format;

/// The contract of a safety net: takes a picture and returns one probability per class.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Safety {
    pub input: SafetyInput,
    /// The output to fetch: f32 or f16 `[1, classes]`, probabilities.
    pub output: Output,
    /// From 0.
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
    #[serde(default)]
    pub element: Element,
    #[serde(default = "rows_first")]
    pub layout: Layout,
    pub order: ChannelOrder,
    /// The side of the resized square, in pixels.
    pub resize: u32,
    /// The side of the center crop, in pixels.
    pub crop: u32,
    /// The value to subtract, in the order of the channels.
    pub mean: [f32; 3],
}

impl SafetyInput {
    /// Returns how the tensor stores a picture.
    pub const fn format(&self) -> Format {
        Format { element: self.element, layout: self.layout }
    }
}

const fn rows_first() -> Layout {
    Layout::Nhwc
}

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
        check_picture_layout("input.layout", self.input.layout)?;
        if !mean.iter().all(|mean| mean.is_finite()) {
            return Err("input.mean must hold finite numbers".to_owned());
        }
        if self.input.element == Element::U8 && mean.iter().any(|mean| *mean != 0.0) {
            return Err("input.element is \"u8\", so the net gets the samples as they are: set \
                        input.mean = [0, 0, 0]"
                .to_owned());
        }
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return Err("threshold must be above 0 and at most 1".to_owned());
        }
        Ok(())
    }
}
