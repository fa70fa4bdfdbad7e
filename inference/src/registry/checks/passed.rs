//! Remembers which models have passed the checks that run them, so that a command line need not repeat them for each
//! picture.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};
use tracing::debug;

use crate::manifest::Manifest;
use crate::registry::version;
use crate::session::Runtime;

/// The place of one model's record: a file that exists once the model has passed.
pub struct Passed(Option<PathBuf>);

impl Passed {
    /// Finds the record of a model. Its name is a digest of everything that the checks depend on: manifest, checksums,
    /// golden images, ONNX Runtime library, device, settings, and this program. Without a folder of records, nothing is
    /// remembered.
    pub fn of(manifest: &Manifest, runtime: &Runtime) -> Self {
        Self(runtime.passed_checks().map(|folder| {
            let mut digest = Sha256::new();
            digest.update(version::version(manifest));
            digest.update(runtime.summary());
            digest.update(stamp(runtime.library()));
            digest.update(
                std::env::current_exe().map_or_else(|_| String::new(), |file| stamp(&file)),
            );
            folder.join(hex::encode(digest.finalize()))
        }))
    }

    /// Returns whether the model has passed before.
    pub fn is_known(&self) -> bool {
        self.0.as_ref().is_some_and(|record| record.is_file())
    }

    /// Records that the model has passed. A record that cannot be written only costs time.
    pub fn record(&self) {
        let Some(record) = &self.0 else { return };
        let write = || {
            fs::create_dir_all(record.parent().unwrap_or(record))?;
            fs::write(record, [])
        };
        if let Err(error) = write() {
            debug!(%error, record = %record.display(), "The next run repeats the checks of its model");
        }
    }
}

/// Returns a text that changes when a file is replaced.
fn stamp(file: &Path) -> String {
    let Ok(found) = file.metadata() else { return String::new() };
    let modified = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} {} {modified:?}", file.display(), found.len())
}
