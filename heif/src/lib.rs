//! Turns HEIC and AVIF files into upright JPEGs or PNGs, which the rest of Retouch reads like any other upload.
//!
//! libheif, the C library that decodes them, parses hostile files. So it never runs in the API or in a worker: the
//! program starts itself again for each picture, as a *decoder*, which drops its privileges before it reads the first
//! byte. Its output is as untrusted as the upload itself.
//!
//! | step | where | module |
//! |---|---|---|
//! | read the size from the boxes | the caller, in safe Rust | [`Header`] |
//! | start the decoder, and end it in time | the caller | [`Heif`] |
//! | drop privileges, limit memory and time | the decoder | `sandbox` |
//! | decode, turn, convert colors, encode | the decoder | `decoder`, `library`, `color` |
//!
//! libheif is loaded while the decoder runs, so nothing links it, and an installation without it works for everything
//! else.

mod color;
mod decoder;
mod header;
mod heif;
mod library;
mod sandbox;

pub use decoder::decode_if_asked;
pub use header::{Codec, Header, exif};
pub use heif::{Heif, HeifConfig, Support};
pub use sandbox::enter as give_up_rights;
