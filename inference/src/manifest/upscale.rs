//! What a manifest says about a model that makes pictures larger.

use retouch_pixels::tensor::Normalization;
use serde::Deserialize;

use super::contract::{Element, Layout, Output, check_normalization};

/// The contract of an upscaler: an RGB picture of any size in, the same `scale` times as wide and high out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upscale {
    /// How pixels become the input tensor, f32 `[1, 3, height, width]`.
    pub input: TileInput,
    /// The output to ask for: f32 `[1, 3, scale * height, scale * width]`, R, G and B as 0..=1. Values
    /// outside are cut off.
    pub output: Output,
    /// How much larger.
    pub upscale: Enlargement,
    /// How pictures that are larger than a tile are taken apart and put together.
    pub tiling: Tiling,
}

/// How pixels become a tensor: `(sample / divide_by - mean) / std` for each channel, samples being 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileInput {
    /// The tensor's name in the graph.
    pub name: String,
    /// The order of its axes.
    pub layout: Layout,
    /// The type of its elements.
    pub element: Element,
    /// What samples are divided by.
    pub divide_by: f32,
    /// Subtracted after the division, for R, G and B.
    pub mean: [f32; 3],
    /// Divided by at last, for R, G and B.
    pub std: [f32; 3],
}

/// How much larger a model makes a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enlargement {
    /// Output pixels a side for each input pixel.
    pub scale: u32,
}

/// How a picture is taken apart. All lengths are in input pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiling {
    /// How tiles fit together.
    pub mode: TilingMode,
    /// What is computed around a tile and thrown away.
    pub padding: u32,
    /// Over how much neighbouring tiles fade into each other; 0 for exact tiling.
    pub blend: u32,
    /// The side of the largest tile, padding not counted.
    pub largest: u32,
    /// The side below which a tile is not halved when memory runs out.
    pub smallest: u32,
    /// The sides of what the model is given are multiples of this.
    pub multiple_of: u32,
    /// What a run takes, for each pixel it is given, in bytes: tiles are made no larger than memory
    /// allows.
    pub memory_bytes_per_pixel: u32,
}

/// How tiles fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TilingMode {
    /// The padding is at least the model's receptive radius: tiles are what they would be in the whole.
    Exact,
    /// The model looks further than any padding that could be afforded: tiles overlap and fade.
    Blend,
}

impl TileInput {
    /// How 8-bit samples become the tensor's values.
    pub const fn normalization(&self) -> Normalization {
        Normalization { divide_by: self.divide_by, mean: self.mean, std: self.std }
    }
}

impl Upscale {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(self.input.divide_by.is_finite() && self.input.divide_by > 0.0) {
            return Err("input.divide_by must be above 0".to_owned());
        }
        check_normalization(&self.input.mean, &self.input.std)?;
        if ![2, 4].contains(&self.upscale.scale) {
            return Err(format!("upscale.scale is {}; it must be 2 or 4", self.upscale.scale));
        }
        self.tiling.check()
    }
}

impl Tiling {
    fn check(&self) -> Result<(), String> {
        let Self { mode, padding, blend, largest, smallest, multiple_of, memory_bytes_per_pixel } =
            *self;
        if !(16..=4096).contains(&largest) || !(8..=largest).contains(&smallest) {
            return Err(
                "tiling.largest must be 16 to 4096, tiling.smallest 8 to largest".to_owned()
            );
        }
        if padding > 512 || !(1..=64).contains(&multiple_of) {
            return Err("tiling.padding is at most 512, tiling.multiple_of 1 to 64".to_owned());
        }
        if memory_bytes_per_pixel == 0 {
            return Err("tiling.memory_bytes_per_pixel must be above 0".to_owned());
        }
        match mode {
            TilingMode::Exact if blend != 0 => {
                Err("tiling.blend must be 0 where tiles are exact".to_owned())
            }
            // Two bands of blending must fit into half of a tile, which is as small as they get.
            TilingMode::Blend if blend == 0 || blend % 2 != 0 || smallest < 4 * blend => {
                Err("tiling.blend must be even, above 0 and at most a quarter of tiling.smallest"
                    .to_owned())
            }
            TilingMode::Exact | TilingMode::Blend => Ok(()),
        }
    }
}
