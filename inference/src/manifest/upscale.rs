//! The contract of an upscaler: its tensors, its scale, and how pictures are tiled (padding and tile overlap).

use retouch_pixels::tensor::Normalization;
use serde::Deserialize;

use super::contract::{Element, Layout, Output, check_normalization};

/// The contract of an upscaler: takes an RGB picture of any size and returns it `scale` times as wide and high.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upscale {
    /// How pixels become the input tensor, f32 `[1, 3, height, width]`.
    pub input: TileInput,
    /// The output to fetch: f32 `[1, 3, scale * height, scale * width]`, R, G and B in 0..=1. Values outside are
    /// clipped.
    pub output: Output,
    /// The enlargement.
    pub upscale: Enlargement,
    /// How a picture is split into tiles and put together again.
    pub tiling: Tiling,
}

/// How pixels become a tensor: `(sample / divide_by - mean) / std` per channel, for samples in 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileInput {
    /// The tensor's name in the graph.
    pub name: String,
    /// The order of the axes.
    pub layout: Layout,
    /// The element type.
    pub element: Element,
    /// The divisor of the samples.
    pub divide_by: f32,
    /// Subtracted after the division, for R, G and B.
    pub mean: [f32; 3],
    /// The final divisor, for R, G and B.
    pub std: [f32; 3],
}

/// The enlargement of an upscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enlargement {
    /// Output pixels per input pixel, along each side.
    pub scale: u32,
}

/// How a picture is split into tiles. All lengths are in input pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiling {
    /// How tiles are put together.
    pub mode: TilingMode,
    /// The surroundings of a tile that are computed with it and discarded.
    pub padding: u32,
    /// The tile overlap: the width over which neighboring tiles are blended. 0 for exact tiling.
    pub blend: u32,
    /// The side of the largest tile, without padding.
    pub largest: u32,
    /// The side below which a tile is not halved on running out of memory.
    pub smallest: u32,
    /// The width and height of every input are multiples of this.
    pub multiple_of: u32,
    /// The memory that a run needs, in bytes per input pixel. It limits the size of tiles.
    pub memory_bytes_per_pixel: u32,
}

/// How tiles are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TilingMode {
    /// Tiles do not overlap. The padding is at least the model's receptive radius, so each tile equals the same part of
    /// the whole picture's result.
    Exact,
    /// Tiles overlap and are blended, because the receptive radius is larger than any affordable padding.
    Blend,
}

impl TileInput {
    /// Returns the conversion of 8-bit samples to tensor values.
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
            return Err(format!("upscale.scale is {}, but must be 2 or 4", self.upscale.scale));
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
                "tiling.largest must be 16 to 4096, and tiling.smallest 8 to tiling.largest"
                    .to_owned(),
            );
        }
        if padding > 512 || !(1..=64).contains(&multiple_of) {
            return Err(
                "tiling.padding must be at most 512, and tiling.multiple_of 1 to 64".to_owned()
            );
        }
        if memory_bytes_per_pixel == 0 {
            return Err("tiling.memory_bytes_per_pixel must be above 0".to_owned());
        }
        match mode {
            TilingMode::Exact if blend != 0 => {
                Err("tiling.blend must be 0 if tiling.mode is \"exact\"".to_owned())
            }
            // Both overlaps of a tile must fit into half of it, the smallest size after halving.
            TilingMode::Blend if blend == 0 || blend % 2 != 0 || smallest < 4 * blend => {
                Err("tiling.blend must be even, above 0 and at most a quarter of tiling.smallest"
                    .to_owned())
            }
            TilingMode::Exact | TilingMode::Blend => Ok(()),
        }
    }
}
