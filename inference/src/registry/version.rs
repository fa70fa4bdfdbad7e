//! Model versions: checks whether the files on disk are still the files that a model was loaded from.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::manifest::{Golden, Manifest};

/// Returns a digest of the manifest and its golden images. The ONNX files are covered by the checksums in the manifest.
pub fn version(manifest: &Manifest) -> String {
    let mut digest = Sha256::new();
    digest.update(&manifest.text);
    for Golden { image, expected, .. } in &manifest.golden {
        for path in [image, expected] {
            // An unreadable file counts as empty; the golden step reports the error.
            let bytes = fs::read(manifest.folder.join(path)).unwrap_or_default();
            digest.update(Sha256::digest(bytes));
        }
    }
    hex::encode(digest.finalize())
}

/// Returns whether every file matches its SHA-256 in the manifest.
pub fn files_match(manifest: &Manifest) -> bool {
    manifest.files.iter().all(|stated| {
        sha256_of(&manifest.folder.join(&stated.file)).is_ok_and(|sha256| sha256 == stated.sha256)
    })
}

/// Returns the SHA-256 of a file without keeping its content in memory.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    if !path.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(digest.finalize())),
            read => digest.update(&buffer[..read]),
        }
    }
}
