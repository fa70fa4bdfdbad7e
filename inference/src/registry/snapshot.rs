//! Snapshots of the models directory, to notice changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::bindings::Bindings;
use crate::device::Device;

/// Levels of subfolders that are scanned in a model's folder, such as `golden/`.
const MAX_DEPTH: u32 = 2;

/// The metadata of the watched files, enough to notice a change. Snapshots are taken by polling, because inotify does
/// not report what another machine writes to NFS, and not always what changes behind a bind mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The text of `tools.toml`, or why it cannot be read.
    pub tools: Result<String, String>,
    /// The stamps of each bound model, by folder name.
    pub folders: BTreeMap<String, Stamps>,
}

/// The stamps of a model's files, by path.
pub type Stamps = BTreeMap<PathBuf, Stamp>;

/// The metadata of one file. A rewritten file differs in at least one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds and nanoseconds of the modification time.
    modified: (i64, i64),
    size_bytes: u64,
    inode: u64,
}

impl Stamp {
    pub fn of(found: &fs::Metadata) -> Self {
        Self {
            modified: (found.mtime(), found.mtime_nsec()),
            size_bytes: found.len(),
            inode: found.ino(),
        }
    }
}

impl Snapshot {
    /// Scans `tools.toml` and the folders of the models that it binds on `device`. If it is invalid, scans the folders
    /// of the bindings `last`.
    pub fn take(models_dir: &Path, device: Device, last: Option<&Bindings>) -> Self {
        let tools =
            fs::read_to_string(models_dir.join("tools.toml")).map_err(|error| error.to_string());
        let current = tools.as_ref().ok().and_then(|text| Bindings::parse(text).ok());
        let names = current.as_ref().or(last).map(|bindings| bindings.models_on(device));
        let stamps_of = |name: &str| {
            let mut stamps = Stamps::new();
            add_stamps(&models_dir.join(name), MAX_DEPTH, &mut stamps);
            (name.to_owned(), stamps)
        };
        let folders = names.unwrap_or_default().into_iter().map(stamps_of).collect();
        Self { tools, folders }
    }

    /// Returns the stamps of a model's files.
    pub fn stamps(&self, model: &str) -> Stamps {
        self.folders.get(model).cloned().unwrap_or_default()
    }
}

fn add_stamps(folder: &Path, depth: u32, stamps: &mut Stamps) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        // Follows links: the content counts.
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                if depth > 0 {
                    add_stamps(&path, depth - 1, stamps);
                }
            }
            Ok(found) => {
                stamps.insert(path, Stamp::of(&found));
            }
            Err(_) => {}
        }
    }
}
