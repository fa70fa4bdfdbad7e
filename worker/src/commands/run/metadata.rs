//! What happens to what a camera wrote into a file.

use clap::ValueEnum;
use retouch_pixels::exif::Exif;

/// What happens to the EXIF of a picture; the turn is always applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Metadata {
    /// The result has none.
    #[default]
    Strip,
    /// The result has that of the picture, with the place.
    Keep,
}

impl Metadata {
    /// Returns what a result gets of a file's.
    pub fn of(self, file: &[u8]) -> Option<Exif> {
        match self {
            Self::Strip => None,
            Self::Keep => retouch_heif::exif(file),
        }
    }
}
