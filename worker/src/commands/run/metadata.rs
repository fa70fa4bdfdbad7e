//! Whether the command line keeps EXIF.

use clap::ValueEnum;
use retouch_pixels::exif::Exif;

/// Whether to keep a picture's EXIF. Its rotation is always applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Metadata {
    /// Drop the picture's EXIF.
    #[default]
    Strip,
    /// Copy the picture's EXIF, including the GPS location.
    Keep,
}

impl Metadata {
    pub fn of(self, file: &[u8]) -> Option<Exif> {
        match self {
            Self::Strip => None,
            Self::Keep => retouch_heif::exif(file),
        }
    }
}
