//! The tools, one file each.

mod error;
pub mod magic_fix;
pub mod remove_background;
pub mod stage;
pub mod upscale;

use retouch_pixels::Limits;

pub use error::ToolError;

/// The settings of tools.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest picture accepted.
    pub limits: Limits,
    /// The memory that one run of an upscaler may take, in bytes; limits the size of tiles.
    pub tile_memory_bytes: u64,
}
