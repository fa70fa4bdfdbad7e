//! How an upscale divides a picture into bands and tiles.

use std::ops::Range;

use retouch_inference::manifest::{Tiling, TilingMode, Upscale};
use retouch_pixels::band::{self, BandTile};
use retouch_pixels::encode::Channels;
use retouch_pixels::tile::{self, OutputLayout, TileSize};

use crate::tools::{Settings, ToolError};

/// Maximum size of a band of the result, in bytes.
pub(super) const BAND_BYTES: u64 = 48 << 20;

/// How a picture is divided into bands and tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) size: (u32, u32),
    pub(super) channels: Channels,
    pub(super) layout: OutputLayout,
    pub(super) tile_size: TileSize,
    pub(super) tiling: Tiling,
    /// The side of the first tiles in input pixels; later ones are smaller if the model runs out of memory.
    pub(super) first_side: u32,
    /// Maximum number of input rows per band.
    max_rows: u32,
}

/// The part of a picture that is computed at once: some of its rows, in tiles side by side.
#[derive(Clone, Debug)]
pub(super) struct BandPlan {
    /// The input rows, those shared with the next band included.
    pub(super) y: Range<u32>,
    /// The first row of the next band; the picture's height for the last.
    pub(super) next: u32,
    pub(super) tiles: Vec<BandTile>,
}

impl Plan {
    pub(super) fn new(
        size: (u32, u32),
        channels: Channels,
        factor: u32,
        contract: &Upscale,
        has_few_shapes: bool,
        settings: &Settings,
    ) -> Result<Self, ToolError> {
        contract.can_make(factor).map_err(|reason| {
            ToolError::Model(format!("the model cannot make {factor}X: {reason}"))
        })?;
        let (mut tiling, scale) = (contract.tiling, contract.upscale.scale);
        let padding = contract.padding_for(factor);
        let fixed = contract.fixed_region(padding);
        if let Some(side) = fixed {
            // A net of one size has no smaller tiles to fall back on.
            (tiling.smallest, tiling.largest) = (side, side);
        }
        let row_bytes = u64::from(size.0) * u64::from(factor).pow(2) * channels.count() as u64;
        let max_rows = (BAND_BYTES / row_bytes).clamp(u64::from(tiling.smallest), 1 << 20) as u32;
        let first_side = tiling.side_within(padding, settings.tile_memory_bytes);
        let plan = Self {
            size,
            channels,
            layout: OutputLayout { padding, scale, factor },
            tile_size: contract.tile_size(),
            tiling,
            first_side,
            max_rows,
        };
        Ok(if has_few_shapes && fixed.is_none() { plan.with_few_shapes() } else { plan })
    }

    /// Gives the tiles of all pictures the same few sizes, and this picture the size that needs the fewest pixels.
    fn with_few_shapes(self) -> Self {
        let Tiling { smallest, multiple_of, .. } = self.tiling;
        let around = 2 * self.layout.padding;
        // Rounded down, because the memory of tiles has room for no more.
        let largest = (self.first_side + around) / multiple_of * multiple_of;
        let smallest = smallest + around;
        let tile_size = TileSize::Halving { largest, smallest, multiple_of };
        let plan = Self { tile_size, ..self };
        let sides = tile::halves(largest, multiple_of).filter(|side| *side >= smallest);
        let pixels = |side: &u32| {
            let tiles = plan.tiles_from(0, side - around);
            u64::from(tiles) * u64::from(*side).pow(2)
        };
        // Of several, the first and largest.
        let first_side = sides.min_by_key(pixels).map_or(self.first_side, |side| side - around);
        Self { first_side, ..plan }
    }

    /// Returns the rows and columns of a tile, padding included.
    pub(super) fn shape_of(&self, tile: &BandTile) -> (usize, usize) {
        let (width, height) = self.tile_size.around(&tile.region, self.layout.padding);
        (height as usize, width as usize)
    }

    /// Returns the bands from row `top` on.
    pub(super) fn bands_from(&self, top: u32, side: u32) -> Vec<BandPlan> {
        let ((width, height), overlap) = (self.size, self.overlap());
        let rows = band::pieces(height - top, side.min(self.max_rows), overlap);
        let mut rows = rows.into_iter().map(|y| top + y.start..top + y.end).peekable();
        let mut bands = Vec::new();
        while let Some(y) = rows.next() {
            let next = rows.peek().map_or(height, |next| next.start);
            bands.push(BandPlan { next, tiles: band::tiles(width, &y, side, overlap), y });
        }
        bands
    }

    /// Returns the number of tiles from row `top` on.
    pub(super) fn tiles_from(&self, top: u32, side: u32) -> u32 {
        self.bands_from(top, side).iter().map(|band| band.tiles.len() as u32).sum()
    }

    /// Returns the tile side that a picture continues with when tiles of `side` take too much memory.
    pub(super) fn smaller_side(&self, side: u32) -> u32 {
        self.tile_size.half_as_large(side, self.layout.padding).max(self.tiling.smallest)
    }

    const fn overlap(&self) -> u32 {
        match self.tiling.mode {
            TilingMode::Exact => 0,
            TilingMode::Blend => self.tiling.blend,
        }
    }

    pub(super) const fn out_size(&self) -> (u32, u32) {
        (self.size.0 * self.layout.factor, self.size.1 * self.layout.factor)
    }
}

impl BandPlan {
    /// Returns the longest side of its tiles.
    pub(super) fn longest_side(&self) -> u32 {
        let sides = self.tiles.iter().map(|tile| tile.region.width().max(tile.region.height()));
        sides.max().unwrap_or(0)
    }
}
