//! Pure functions on pixels: bytes in, pixels or bytes out.
//!
//! The API and the worker share this crate, so both decode, orient, limit and compose pictures the same way. It
//! knows nothing about models, jobs, HTTP or storage. The functions are slow and use a lot of memory: async callers
//! run them on a thread that may block.
//!
//! | task | modules |
//! |---|---|
//! | read a file | [`decode`], [`orientation`], [`exif`], [`upload`] |
//! | feed a model | [`framing`] (letterbox), [`levels`], [`tensor`], [`tile`] (padding), [`patch`], [`mask`] |
//! | use its output | [`alpha`] (edges at full size), [`foreground`], [`tile`], [`band`] (tile overlap), [`patch`] |
//! | fill a hole without a model | [`fill`] |
//! | select the clicked object | [`select`] |
//! | write a file | [`encode`], [`thumbnail`], [`preview`], [`result`], [`cutout`], [`finish`] |
//!
//! Buffers hold rows from the top, without padding. Samples are 8-bit, 0 to 255, unless a function says otherwise.

pub mod alpha;
pub mod band;
mod bounds;
pub mod copies;
pub mod cutout;
pub mod decode;
mod edges;
pub mod encode;
mod error;
pub mod exif;
pub mod fill;
pub mod finish;
pub mod foreground;
pub mod framing;
pub mod icc;
mod lanczos;
pub mod levels;
mod limits;
pub mod mask;
mod orientation;
mod over;
pub mod patch;
mod picture;
pub mod preview;
pub mod resize;
pub mod result;
mod rounding;
pub mod select;
mod span;
mod stored;
pub mod tensor;
pub mod thumbnail;
pub mod tile;
pub mod upload;

pub use error::PixelError;
pub use limits::Limits;
pub use picture::Picture;
