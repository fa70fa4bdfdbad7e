//! Pure functions on pixels: bytes in, pixels or bytes out.
//!
//! The API and the worker share this crate, so both decode, orient, limit and compose pictures the same way. It
//! knows nothing about models, jobs, HTTP or storage; functions take time and memory, so async callers run them on
//! a thread that may block.
//!
//! | to | modules |
//! |---|---|
//! | read a file | [`decode`], [`orientation`], [`upload`] |
//! | feed a model | [`tensor`], [`tile`], [`patch`], [`mask`] |
//! | use its output | [`alpha`], [`foreground`], [`tile`], [`band`], [`patch`] |
//! | fill a hole without a model | [`fill`] |
//! | write a file | [`encode`], [`thumbnail`], [`cutout`] |

pub mod alpha;
pub mod band;
pub mod cutout;
pub mod decode;
pub mod encode;
pub mod error;
pub mod fill;
pub mod foreground;
mod halve;
mod icc;
pub mod mask;
pub mod orientation;
pub mod patch;
pub mod picture;
pub mod resize;
pub mod tensor;
pub mod thumbnail;
pub mod tile;
pub mod upload;

pub use error::PixelError;
pub use picture::{Limits, Picture};
