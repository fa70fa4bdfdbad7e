//! The checksum step: every file has the size and SHA-256 of the manifest.
//!
//! The files of one net are read into memory once, hashed there and opened from there; a file opened by its path could
//! be replaced in between. Until the model is open, a load therefore needs memory for the file and for what ONNX
//! Runtime makes of it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::placeholder::{defect, head_of};
use crate::manifest::{Manifest, ModelFile, Task, dead_link};
use crate::registry::kept::{Kept, stamps_of};
use crate::registry::steps::{CheckMode, Outcome};
use crate::registry::version::sha256_of;
use crate::session::ExtraFile;

/// The files of one net, in memory.
pub struct Files {
    pub model: Vec<u8>,
    pub extra: Vec<ExtraFile>,
}

/// Reads every file, or its kept copy, and compares it with the manifest.
pub fn read(manifest: &Manifest, mode: CheckMode, kept: &mut Kept) -> Outcome<Files> {
    let mut reasons = Vec::new();
    let mut contents = Vec::new();
    for stated in &manifest.files {
        let (bytes, found) = read_one(manifest, stated, mode, kept);
        reasons.extend(found);
        contents.extend(bytes.map(|bytes| (stated.file.clone(), bytes)));
        if mode == CheckMode::FailFast && !reasons.is_empty() {
            break;
        }
    }
    let value = (!contents.is_empty() && contents.len() == manifest.files.len()).then(|| {
        let mut contents = contents.into_iter();
        let model = contents.next().map(|(_, bytes)| bytes).unwrap_or_default();
        let extra = contents.map(|(name, bytes)| ExtraFile { name, bytes: bytes.into() });
        Files { model, extra: extra.collect() }
    });
    Outcome { finding: format!("sha256 {}", manifest.sha256()), reasons, value }
}

/// Returns the bytes of a file, if it can be read, and its problems.
fn read_one(
    manifest: &Manifest,
    stated: &ModelFile,
    mode: CheckMode,
    kept: &mut Kept,
) -> (Option<Vec<u8>>, Vec<String>) {
    let size_bytes = stated.size_bytes;
    let path = manifest.folder.join(&stated.file);
    if !kept.holds(&stated.file) {
        if let Some(reason) = absence(manifest, &path) {
            return (None, vec![reason]);
        }
        // The manifest may contain the checksum of a wrong file, such as an HTML page; recognize that too.
        let head = head_of(&path).ok();
        if let Some(reason) = head.and_then(|head| defect(manifest, &stated.file, &head)) {
            return (None, vec![reason]);
        }
    }
    // One byte more than stated shows that the file is too long. The limit also ends the reading of a growing file.
    let limit = if mode == CheckMode::FailFast { size_bytes + 1 } else { u64::MAX };
    let mut bytes = Vec::new();
    let read = kept.open(&path, &stated.file).and_then(|open| {
        let size = open.metadata()?.len();
        if mode == CheckMode::FailFast && size != size_bytes {
            return Ok(size);
        }
        open.take(limit).read_to_end(&mut bytes).map(|read| read as u64)
    });
    match read {
        Err(error) => (None, vec![format!("{}: {error}", path.display())]),
        Ok(size) => {
            let mut reasons = Vec::from_iter(wrong_size(stated, size));
            // In fail-fast mode, a file of the wrong size was not read.
            if reasons.is_empty() || mode != CheckMode::FailFast {
                reasons.extend(wrong_sha256(stated, &hex::encode(Sha256::digest(&bytes))));
            }
            (Some(bytes), reasons)
        }
    }
}

/// Compares every file with the manifest without keeping its content: a pipeline opens its large files by their paths.
pub fn check(manifest: &Manifest, mode: CheckMode, kept: &mut Kept) -> Outcome<()> {
    if kept.has_stamps_of(manifest) {
        return Outcome::passed("the files are those of the first load".to_owned(), ());
    }
    let stamps = stamps_of(manifest);
    let mut reasons = Vec::new();
    for stated in &manifest.files {
        reasons.extend(check_one(manifest, stated, mode));
        if mode == CheckMode::FailFast && !reasons.is_empty() {
            break;
        }
    }
    let value = reasons.is_empty().then(|| kept.keep_stamps(stamps));
    Outcome {
        finding: format!("{} files, sha256 {}", manifest.files.len(), manifest.sha256()),
        reasons,
        value,
    }
}

/// Returns the problems of a file.
fn check_one(manifest: &Manifest, stated: &ModelFile, mode: CheckMode) -> Vec<String> {
    let path = manifest.folder.join(&stated.file);
    if let Some(reason) = absence(manifest, &path) {
        return vec![reason];
    }
    let unreadable = |error: io::Error| vec![format!("{}: {error}", path.display())];
    match head_of(&path) {
        Ok(head) => {
            if let Some(reason) = defect(manifest, &stated.file, &head) {
                return vec![reason];
            }
        }
        Err(error) => return unreadable(error),
    }
    let size = match fs::metadata(&path) {
        Ok(found) => found.len(),
        Err(error) => return unreadable(error),
    };
    let mut reasons = Vec::from_iter(wrong_size(stated, size));
    if reasons.is_empty() || mode != CheckMode::FailFast {
        match sha256_of(&path) {
            Ok(found) => reasons.extend(wrong_sha256(stated, &found)),
            Err(error) => reasons.extend(unreadable(error)),
        }
    }
    reasons
}

/// Returns why there is no file at a path and what to do about it; `None` if there is one. Links are followed wherever
/// they lead: operators link large files, and the checksum decides.
fn absence(manifest: &Manifest, path: &Path) -> Option<String> {
    if path.is_file() {
        return None;
    }
    let shown = path.display();
    if path.exists() {
        return Some(format!("{shown} is not a file"));
    }
    let advice = if manifest.has_source {
        format!("fetch it with `scripts/models fetch {}`", manifest.name)
    } else if matches!(manifest.task, Task::SdInpaint(_) | Task::Flux2Klein(_)) {
        "models/text-guided.md says how to install it".to_owned()
    } else {
        "put the file there".to_owned()
    };
    Some(match dead_link(path) {
        Some(link) => format!("{shown} is missing: {link}; {advice}"),
        None => format!("{shown} is missing; {advice}"),
    })
}

fn wrong_size(stated: &ModelFile, size: u64) -> Option<String> {
    let ModelFile { file, size_bytes, .. } = stated;
    (size != *size_bytes)
        .then(|| format!("{file} has {size} bytes, but the manifest says {size_bytes}"))
}

fn wrong_sha256(stated: &ModelFile, found: &str) -> Option<String> {
    let ModelFile { file, sha256, .. } = stated;
    (found != sha256).then(|| format!("{file} has sha256 {found}, but the manifest says {sha256}"))
}
