//! Content Credentials (C2PA 2.x): signs results, and reads the marks of pictures.
//!
//! A *manifest* is a signed statement of how a picture was made. It names the source pictures, its *ingredients*, and
//! contains their manifests. Only this crate depends on `c2pa`, so that no other crate waits for it to compile. It
//! knows neither jobs nor the database.
//!
//! Everything that parses a caller's bytes runs behind [`guard`]: a fault in a parser becomes an error. [`bounds`]
//! refuses beforehand what no guard can catch.

mod authority;
mod bounds;
mod container;
mod context;
mod error;
mod guard;
mod heif;
mod key;
mod parent;
mod png;
mod policy;
mod report;
mod seal;
mod signer;
mod source_type;
mod statement;
mod timestamps;
mod webp;
mod xmp;

pub use authority::{Authority, AuthorityError, Leaf};
pub use error::{KeyError, SetupError, SignError};
pub use key::{TimestampAuthority, TimestampError};
pub use parent::{MAX_MANIFEST_BYTES, Parent, Provenance};
pub use png::INSERT_AT;
pub use policy::{Coverage, Credentials, CredentialsConfig};
pub use report::{
    Action, Claim, Ingredient, Problem, Report, Signature, State, Verifier, reading_bytes,
};
pub use seal::{CopyMark, PngSeal};
pub use signer::Signer;
pub use source_type::SourceType;
pub use statement::{Model, Statement};

/// The readable formats. Those before HEIC can be signed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Png,
    Jpeg,
    WebP,
    Heic,
    Avif,
}

impl Format {
    /// Recognizes a format by the first bytes of a file.
    pub fn of(file: &[u8]) -> Option<Self> {
        match file {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Self::of_brands(file),
            _ => None,
        }
    }

    /// Recognizes a still picture by the brands in its first box (ISO/IEC 14496-12).
    fn of_brands(file: &[u8]) -> Option<Self> {
        let length = u32::from_be_bytes(*file.first_chunk()?) as usize;
        let brands = file.get(8..length.min(file.len()))?;
        let is = |wanted: &[u8]| brands.chunks_exact(4).any(|brand| brand == wanted);
        if is(b"avif") {
            Some(Self::Avif)
        } else if is(b"heic") || is(b"heix") {
            Some(Self::Heic)
        } else {
            None
        }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
            Self::Heic => "image/heic",
            Self::Avif => "image/avif",
        }
    }
}
