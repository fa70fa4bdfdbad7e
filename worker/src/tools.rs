//! The tools, one file each.

mod error;
pub mod magic_fix;
pub mod remove_background;
pub mod stage;
pub mod upscale;

use retouch_pixels::Limits;
use retouch_pixels::copies::EncodedCopies;

pub use error::ToolError;
use stage::StageTimes;

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub limits: Limits,
    /// Maximum memory of one run of an upscaler, in bytes; it limits the size of tiles.
    pub tile_memory_bytes: u64,
}

/// The output of a tool, besides the PNG.
#[derive(Clone, Debug)]
pub struct Made {
    /// The result's copies for lists and screens.
    pub copies: EncodedCopies,
    /// The result's width and height in pixels.
    pub size: (u32, u32),
    pub stages: StageTimes,
}
