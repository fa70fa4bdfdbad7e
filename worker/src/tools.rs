//! The tools a person can run, one file each, each readable from its first step to its last.

mod error;
pub mod magic_fix;
pub mod remove_background;
pub mod stage;
pub mod upscale;

pub use error::ToolError;
