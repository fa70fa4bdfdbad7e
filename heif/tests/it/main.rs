//! Tests of decoding with the library itself, in processes of its own: files of several layouts, and hostile ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod layouts;

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use retouch_heif::{Header, Heif, HeifConfig};
use retouch_pixels::{Limits, PixelError};

/// Returns a file beside `make.py`.
fn picture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures").join(name)).unwrap()
}

fn config() -> HeifConfig {
    HeifConfig {
        heif_library: "libheif.so.1".to_owned(),
        picture_decoder: Some(PathBuf::from(env!("CARGO_BIN_EXE_retouch-heif"))),
    }
}

async fn convert(file: &[u8]) -> Result<Bytes, PixelError> {
    let header = Header::read(file, &Limits::default())?;
    Heif::new(&config()).unwrap().convert(Bytes::copy_from_slice(file), &header).await
}
