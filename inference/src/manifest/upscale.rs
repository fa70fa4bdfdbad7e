//! The contract of an upscaler: its tensors, its scale, and how pictures are tiled (padding and tile overlap).

use retouch_pixels::tensor::{Divisor, Normalization};
use retouch_pixels::tile::{OutputLayout, TileSize};
use serde::Deserialize;

use super::contract::{
    Element, Layout, NetOutput, Precision, check_normalization, check_picture_layout,
};

/// Minimum side of the region that a tile of fixed size leaves, in input pixels.
const SMALLEST_REGION: u32 = 8;

/// The contract of an upscaler: takes an RGB picture and returns it `scale` times as wide and high. With scale 1 it
/// cleans the picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upscale {
    /// How precisely it computes on a GPU.
    #[serde(default)]
    pub precision: Precision,
    /// How pixels become the input tensor, `[1, 3, height, width]` in the order of its layout.
    pub input: TileInput,
    /// The output to fetch: `[1, 3, scale * height, scale * width]` in the order of its layout, R, G and B in
    /// 0..=white. Values outside are clipped.
    pub output: NetOutput,
    pub upscale: Enlargement,
    pub tiling: Tiling,
}

/// How pixels become a tensor: `(sample / divide_by - mean) / std` per channel, for samples in 0..=255.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileInput {
    /// The tensor's name in the graph.
    pub name: String,
    pub layout: Layout,
    pub element: Element,
    /// The only width that the net takes, in pixels; `None` for any.
    pub width: Option<u32>,
    /// The only height that the net takes, in pixels; `None` for any.
    pub height: Option<u32>,
    pub divide_by: f32,
    /// Subtracted after the division, for R, G and B.
    pub mean: [f32; 3],
    /// The final divisor, for R, G and B.
    pub std: [f32; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enlargement {
    /// Output pixels per input pixel, along each side: 1 to 8.
    pub scale: u32,
    /// Whether other factors may be made by resampling the output.
    #[serde(default)]
    pub resample: bool,
}

/// How a picture is split into tiles. All lengths are in input pixels. If the input has a fixed size, so do the tiles,
/// and the manifest omits `largest`, `smallest`, `multiple_of` and `memory_bytes_per_pixel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiling {
    pub mode: TilingMode,
    /// The surroundings of a tile that are computed with it and discarded.
    pub padding: u32,
    /// The tile overlap: the width over which neighboring tiles are blended. 0 for exact tiling.
    pub blend: u32,
    /// The side of the largest tile, with the tile overlap but without padding.
    #[serde(default)]
    pub largest: u32,
    /// The side below which a tile is not halved on running out of memory.
    #[serde(default)]
    pub smallest: u32,
    /// The width and height of every input are multiples of this.
    #[serde(default)]
    pub multiple_of: u32,
    /// The memory that a run needs, in bytes per input pixel. It limits the size of tiles.
    #[serde(default)]
    pub memory_bytes_per_pixel: u32,
}

/// How tiles are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TilingMode {
    /// Tiles share no more than one row or column. The padding is at least the model's receptive radius, so each tile
    /// equals the same part of the whole picture's result.
    Exact,
    /// Tiles overlap and are blended, because the receptive radius is larger than any affordable padding.
    Blend,
}

impl TileInput {
    /// Returns the conversion of 8-bit samples to values of the input.
    pub const fn normalization(&self) -> Normalization {
        let divide_by = Divisor::Constant(self.divide_by);
        Normalization { divide_by, mean: self.mean, std: self.std }
    }
}

impl Upscale {
    /// Input pixels around a tile for bringing its output back to the picture's own size; more than the filter's three.
    pub const MARGIN: u32 = 4;

    /// Maximum side of a tile of an enhanced area, in input pixels.
    pub const LARGEST_AREA: u32 = 256;

    /// Returns the size of every tile with its padding.
    pub const fn tile_size(&self) -> TileSize {
        match (self.input.width, self.input.height) {
            (Some(width), Some(height)) => TileSize::Exactly { width, height },
            _ => TileSize::MultipleOf(self.tiling.multiple_of),
        }
    }

    /// Returns the largest side of a region that fits into a tile with `padding` on every side; `None` if tiles have no
    /// fixed size.
    pub fn fixed_region(&self, padding: u32) -> Option<u32> {
        let side = self.input.width?.min(self.input.height?);
        Some(side.saturating_sub(2 * padding))
    }

    /// Returns the padding of tiles whose output gets the colors of the original and is resampled to `factor`.
    pub const fn padding_for(&self, factor: u32) -> u32 {
        self.tiling.padding + OutputLayout::reach(self.upscale.scale, factor)
    }

    /// Checks that a picture can be made `factor` times as wide and high.
    ///
    /// # Errors
    /// The reason if it cannot.
    pub fn can_make(&self, factor: u32) -> Result<(), String> {
        let Enlargement { scale, resample } = self.upscale;
        // Resampling may enlarge a little, from 3X to 4X, but must not pass for detail.
        let is_near = factor * 2 <= scale * 3;
        match (scale, factor) {
            _ if scale == factor => Ok(()),
            (4, 2) => Ok(()),
            (1, _) => Err("its scale is 1: it cleans a picture without enlarging it; bind it to \
                           enhance or restore of magic-fix"
                .to_owned()),
            (_, 1) => Err(format!("its scale is {scale}, not 1")),
            _ if is_near && resample => Ok(()),
            _ if is_near => Err(format!(
                "its scale is {scale}, not {factor}; with upscale.resample = true its output is \
                 resampled to {factor}X"
            )),
            _ => Err(format!("its scale is {scale}, not {factor}")),
        }
    }

    /// Checks the fields, and fills in those that a fixed size of the input implies.
    pub(super) fn complete(&mut self) -> Result<(), String> {
        let Self { input, output, upscale, tiling, .. } = self;
        check_normalization(input.element, Some(input.divide_by), &input.mean, &input.std)?;
        check_picture_layout("input.layout", input.layout)?;
        check_picture_layout("output.layout", output.layout)?;
        output.check()?;
        if output.width.is_some() || output.height.is_some() {
            return Err(
                "output.width and output.height must be omitted: the output of an upscaler \
                        is upscale.scale times as wide and high as its input"
                    .to_owned(),
            );
        }
        let Enlargement { scale, resample } = *upscale;
        if !(1..=8).contains(&scale) {
            return Err(format!("upscale.scale is {scale}, but must be 1 to 8"));
        }
        if scale == 1 && resample {
            return Err("upscale.resample is true, but a net of scale 1 serves no other factor: \
                        remove it"
                .to_owned());
        }
        match (input.width, input.height) {
            (None, None) => tiling.check()?,
            (Some(width), Some(height)) => {
                tiling.check_fixed((width, height))?;
                let padding = self.largest_padding();
                let region = self.fixed_region(padding).unwrap_or_default();
                if region < SMALLEST_REGION {
                    return Err(format!(
                        "input.width and input.height are {width} × {height}, but a tile needs at \
                         least {}: {SMALLEST_REGION} pixels, and {padding} of padding on each side",
                        SMALLEST_REGION + 2 * padding
                    ));
                }
                self.tiling.smallest = self.fixed_region(self.tiling.padding).unwrap_or_default();
                self.tiling.largest = self.tiling.smallest;
                self.tiling.multiple_of = 1;
            }
            (Some(_), None) | (None, Some(_)) => {
                return Err("input.width and input.height must be given together, for a net of \
                            fixed size, or not at all"
                    .to_owned());
            }
        }
        Ok(())
    }

    /// Returns the largest padding of any use: with resampling, and to bring an enhanced area back to its size.
    fn largest_padding(&self) -> u32 {
        let factors = [2, 4].into_iter().filter(|factor| self.can_make(*factor).is_ok());
        let paddings = factors.map(|factor| self.padding_for(factor));
        paddings.fold(self.tiling.padding.max(Self::MARGIN), u32::max)
    }
}

impl Tiling {
    /// Returns the largest side of a tile, in input pixels and without padding, that fits into memory with `padding` on
    /// every side.
    pub fn side_within(&self, padding: u32, memory_bytes: u64) -> u32 {
        let pixels = memory_bytes / u64::from(self.memory_bytes_per_pixel.max(1));
        let side = pixels.isqrt().saturating_sub(2 * u64::from(padding));
        side.clamp(u64::from(self.smallest), u64::from(self.largest)) as u32
    }

    /// Returns the fields that a net of fixed size omits, by name.
    const fn sizes(&self) -> [(&'static str, u32); 4] {
        [
            ("tiling.largest", self.largest),
            ("tiling.smallest", self.smallest),
            ("tiling.multiple_of", self.multiple_of),
            ("tiling.memory_bytes_per_pixel", self.memory_bytes_per_pixel),
        ]
    }

    fn check(&self) -> Result<(), String> {
        let Self { padding, largest, smallest, multiple_of, .. } = *self;
        if let Some((field, _)) = self.sizes().iter().find(|(_, value)| *value == 0) {
            return Err(format!(
                "{field} must be above 0; it may be omitted only if input.width and input.height \
                 fix the size of tiles"
            ));
        }
        if !(16..=4096).contains(&largest) || !(8..=largest).contains(&smallest) {
            return Err(format!(
                "tiling.largest is {largest} and tiling.smallest {smallest}, but largest must be 16 \
                 to 4096, and smallest 8 to largest"
            ));
        }
        if !(1..=64).contains(&multiple_of) {
            return Err(format!("tiling.multiple_of is {multiple_of}, but must be 1 to 64"));
        }
        self.check_overlap(smallest)?;
        check_padding(padding)
    }

    /// Checks the fields for a net of fixed size (width, height).
    fn check_fixed(&self, (width, height): (u32, u32)) -> Result<(), String> {
        let side = width.min(height);
        if width.max(height) > 4096 {
            return Err(format!(
                "input.width and input.height are {width} × {height}, but must be at most 4096"
            ));
        }
        if let Some((field, value)) = self.sizes().iter().find(|(_, value)| *value != 0) {
            return Err(format!(
                "{field} is {value}, but must be omitted: every tile has the {width} × {height} \
                 pixels of input.width and input.height"
            ));
        }
        check_padding(self.padding)?;
        self.check_overlap(side.saturating_sub(2 * self.padding))
    }

    /// Checks the tile overlap; `smallest` is the smallest side of a tile without padding.
    fn check_overlap(&self, smallest: u32) -> Result<(), String> {
        let blend = self.blend;
        match self.mode {
            TilingMode::Exact if blend != 0 => {
                Err(format!("tiling.blend is {blend}, but must be 0 if tiling.mode is \"exact\""))
            }
            // Both overlaps of a tile must fit into half of it, the smallest size after halving.
            TilingMode::Blend if blend == 0 || !blend.is_multiple_of(2) || smallest / 4 < blend => {
                Err(format!(
                    "tiling.blend is {blend}, but must be even, above 0, and at most a quarter of \
                     the smallest tile, which is {smallest}"
                ))
            }
            TilingMode::Exact | TilingMode::Blend => Ok(()),
        }
    }
}

fn check_padding(padding: u32) -> Result<(), String> {
    if padding <= 512 {
        Ok(())
    } else {
        Err(format!("tiling.padding is {padding}, but must be at most 512"))
    }
}
