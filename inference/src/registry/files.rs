//! The files of a model. Each is read once into memory, hashed there and opened from there: were it
//! opened by its path, it could have been replaced in between. That costs a load the size of the file in
//! memory beside what ONNX Runtime makes of it, until it is open.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::checks::{How, Outcome};
use crate::external;
use crate::manifest::{Golden, Manifest, ModelFile};
use crate::session::ExtraFile;

/// A model as it was read.
pub struct Files {
    pub model: Vec<u8>,
    pub extra: Vec<ExtraFile>,
}

/// Reads every file and compares it with what the manifest says.
pub fn read(manifest: &Manifest, how: How) -> Outcome<Files> {
    let mut reasons = Vec::new();
    let mut contents = Vec::new();
    for stated in &manifest.files {
        let (bytes, wrong) = read_one(manifest, stated, how);
        reasons.extend(wrong);
        contents.extend(bytes.map(|bytes| (stated.file.clone(), bytes)));
        if how == How::StopAtFirst && !reasons.is_empty() {
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

/// The bytes of a file, as far as they are worth looking at, and what is wrong with them.
fn read_one(manifest: &Manifest, stated: &ModelFile, how: How) -> (Option<Vec<u8>>, Vec<String>) {
    let size_bytes = stated.size_bytes;
    let path = manifest.folder.join(&stated.file);
    if let Some(reason) = absence(manifest, &path) {
        return (None, vec![reason]);
    }
    // One byte more tells that there are too many, and a file that grows is not read for ever.
    let most = if how == How::StopAtFirst { size_bytes + 1 } else { u64::MAX };
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|open| {
        let size = open.metadata()?.len();
        if how == How::StopAtFirst && size != size_bytes {
            return Ok(size);
        }
        open.take(most).read_to_end(&mut bytes).map(|read| read as u64)
    });
    match read {
        Err(error) => (None, vec![format!("{}: {error}", path.display())]),
        Ok(size) => {
            let mut reasons = Vec::from_iter(wrong_size(stated, size));
            // Who stops at the first has not read a file of the wrong size.
            if reasons.is_empty() || how != How::StopAtFirst {
                reasons.extend(wrong_sha256(stated, &hex::encode(Sha256::digest(&bytes))));
            }
            (Some(bytes), reasons)
        }
    }
}

/// Why there is nothing to read at a path, and what to do about it; nothing, when there is a file. A link is followed,
/// wherever it leads: large files are put in place so, and the checksum decides.
fn absence(manifest: &Manifest, path: &Path) -> Option<String> {
    if path.is_file() {
        return None;
    }
    let shown = path.display();
    if path.exists() {
        return Some(format!("{shown} is no file"));
    }
    let advice = if manifest.task.is_pipeline() {
        "models/README.md says how to bring it".to_owned()
    } else if manifest.has_source {
        format!("`scripts/models fetch {}` fetches it", manifest.name)
    } else {
        "bring it: put the file there".to_owned()
    };
    Some(format!("{shown} is missing; {advice}"))
}

fn wrong_size(stated: &ModelFile, size: u64) -> Option<String> {
    let ModelFile { file, size_bytes, .. } = stated;
    (size != *size_bytes)
        .then(|| format!("{file} has {size} bytes, the manifest says {size_bytes}"))
}

fn wrong_sha256(stated: &ModelFile, found: &str) -> Option<String> {
    let ModelFile { file, sha256, .. } = stated;
    (found != sha256).then(|| format!("{file} has sha256 {found}, the manifest says {sha256}"))
}

/// Checks that the graph keeps its tensors in itself and in files that the manifest vouches for.
pub fn stay_inside(manifest: &Manifest, files: &Files) -> Outcome<()> {
    let file = manifest.files.first().map_or("", |own| own.file.as_str());
    let locations = match external::locations(&files.model) {
        Ok(locations) => locations,
        Err(why) => return Outcome::refused(format!("{file} is no ONNX file: {why}")),
    };
    let mut reasons = Vec::new();
    for location in &locations {
        let leaves = Path::new(location)
            .components()
            .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
        if leaves {
            reasons.push(format!(
                "{file} keeps tensors in {location:?}, which lies outside the model's folder"
            ));
        } else if !files.extra.iter().any(|extra| extra.name == *location) {
            reasons.push(format!(
                "{file} keeps tensors in {location:?}, which the manifest does not list as [[extra]]"
            ));
        }
    }
    for extra in &files.extra {
        if !lies_in(&manifest.folder, &extra.name) {
            reasons.push(format!("{} is a link that leaves the model's folder", extra.name));
        }
    }
    let finding = match files.extra.len() {
        0 => "one file, nothing outside".to_owned(),
        extra => format!("{} files, nothing outside", 1 + extra),
    };
    let value = reasons.is_empty().then_some(());
    Outcome { finding, reasons, value }
}

fn lies_in(folder: &Path, file: &str) -> bool {
    let really = |path: PathBuf| path.canonicalize();
    match (really(folder.to_owned()), really(folder.join(file))) {
        (Ok(folder), Ok(file)) => file.starts_with(folder),
        _ => false,
    }
}

/// Compares every file with what the manifest says, without keeping it: a pipeline opens its files by their
/// paths, each of them too large to be held twice.
pub fn compare(manifest: &Manifest, how: How) -> Outcome<()> {
    let mut reasons = Vec::new();
    for stated in &manifest.files {
        reasons.extend(compare_one(manifest, stated, how));
        if how == How::StopAtFirst && !reasons.is_empty() {
            break;
        }
    }
    let value = reasons.is_empty().then_some(());
    Outcome {
        finding: format!("{} files, sha256 {}", manifest.files.len(), manifest.sha256()),
        reasons,
        value,
    }
}

/// What is wrong with a file.
fn compare_one(manifest: &Manifest, stated: &ModelFile, how: How) -> Vec<String> {
    let path = manifest.folder.join(&stated.file);
    if let Some(reason) = absence(manifest, &path) {
        return vec![reason];
    }
    let unreadable = |error: io::Error| vec![format!("{}: {error}", path.display())];
    let size = match fs::metadata(&path) {
        Ok(found) => found.len(),
        Err(error) => return unreadable(error),
    };
    let mut reasons = Vec::from_iter(wrong_size(stated, size));
    if reasons.is_empty() || how != How::StopAtFirst {
        match sha256_of(&path) {
            Ok(found) => reasons.extend(wrong_sha256(stated, &found)),
            Err(error) => reasons.extend(unreadable(error)),
        }
    }
    reasons
}

/// What tells one version of a model from the next, the ONNX files not counted: their checksums are part
/// of the manifest.
pub fn version(manifest: &Manifest) -> String {
    let mut digest = Sha256::new();
    digest.update(&manifest.text);
    for Golden { image, expected, .. } in &manifest.golden {
        for path in [image, expected] {
            // One that cannot be read is as good as none: trying it will say why.
            let bytes = fs::read(manifest.folder.join(path)).unwrap_or_default();
            digest.update(Sha256::digest(bytes));
        }
    }
    hex::encode(digest.finalize())
}

/// Whether every ONNX file is what the manifest says.
pub fn are_as_stated(manifest: &Manifest) -> bool {
    manifest.files.iter().all(|stated| {
        sha256_of(&manifest.folder.join(&stated.file)).is_ok_and(|sha256| sha256 == stated.sha256)
    })
}

fn sha256_of(path: &Path) -> io::Result<String> {
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
