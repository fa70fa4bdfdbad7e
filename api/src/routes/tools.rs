//! The tools, for users and for visitors.

pub mod free;
pub mod magic_fix;
pub mod remove_background;
mod run;
pub mod sample;
pub mod select;
pub mod upscale;
