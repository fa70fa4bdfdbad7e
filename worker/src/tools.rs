//! The tools, one file each.

mod error;
pub mod magic_fix;
pub mod remove_background;
pub mod stage;
pub mod upscale;

pub use error::ToolError;
