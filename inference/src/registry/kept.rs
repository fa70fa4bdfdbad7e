//! Keeps parts of a model's files, so that the same model can be loaded again after it was unloaded, even if other
//! files have replaced them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

use super::snapshot::{Stamp, Stamps};
use crate::manifest::{Manifest, Precision};

/// The files of one load. Without a limit for the memory of models, nothing is kept.
#[derive(Default)]
pub struct Kept {
    is_needed: bool,
    /// The open files of a net: a file that is replaced stays readable through them.
    files: BTreeMap<String, File>,
    /// The files of a pipeline, which ONNX Runtime opens by their paths, when their checksums were right.
    stamps: Stamps,
    pub rewrites: Rewrites,
}

/// How a net's graph was rewritten after it was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rewrites {
    pub precision: Precision,
    pub batch_axis: BatchAxis,
}

/// How the checks changed the first axis of a net's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchAxis {
    #[default]
    AsInFile,
    /// The file fixes it at 1, and it was opened.
    Opened,
    /// The file leaves it open, but a batch is wrong.
    Unused,
}

impl Kept {
    /// Returns the place for the files of a first load.
    pub fn new(is_needed: bool) -> Self {
        Self { is_needed, ..Self::default() }
    }

    pub fn holds(&self, file: &str) -> bool {
        self.files.contains_key(file)
    }

    /// Opens a file, or returns the kept one, at its start.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&mut self, path: &Path, file: &str) -> io::Result<File> {
        if let Some(kept) = self.files.get_mut(file) {
            kept.rewind()?;
            return kept.try_clone();
        }
        let opened = File::open(path)?;
        if self.is_needed {
            self.files.insert(file.to_owned(), opened.try_clone()?);
        }
        Ok(opened)
    }

    /// Keeps the stamps of a pipeline's files, whose checksums were right. They were taken before the checksums, so that
    /// no later change is missed.
    pub fn keep_stamps(&mut self, stamps: Stamps) {
        if self.is_needed {
            self.stamps = stamps;
        }
    }

    /// Returns whether a pipeline's files are those whose stamps are kept.
    pub fn has_stamps_of(&self, manifest: &Manifest) -> bool {
        !self.stamps.is_empty() && self.stamps == stamps_of(manifest)
    }
}

/// Returns the stamps of a model's files now.
pub fn stamps_of(manifest: &Manifest) -> Stamps {
    let paths = manifest.files.iter().map(|file| manifest.folder.join(&file.file));
    paths.filter_map(|path| Some((path.clone(), Stamp::of(&path.metadata().ok()?)))).collect()
}
