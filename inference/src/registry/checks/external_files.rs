//! The files step: the graph keeps its tensors only in files that the manifest lists.

use std::path::{Component, Path};

use super::checksum::Files;
use crate::manifest::{Manifest, is_plain_name};
use crate::onnx::external_data;
use crate::registry::steps::Outcome;

/// Checks where the graph keeps its tensors.
pub fn check(manifest: &Manifest, files: &Files) -> Outcome<()> {
    let file = manifest.files.first().map_or("", |own| own.file.as_str());
    let locations = match external_data::locations(&files.model) {
        Ok(locations) => locations,
        Err(error) => {
            return Outcome::refused(format!("{file} is not an ONNX file: {error}; get it again"));
        }
    };
    let mut reasons = Vec::new();
    for location in &locations {
        let leaves_folder = Path::new(location)
            .components()
            .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
        if leaves_folder {
            reasons.push(format!(
                "{file} keeps tensors in {location:?}, which is outside the model's folder; export it with its data beside it"
            ));
        } else if !is_plain_name(location) {
            reasons.push(format!(
                "{file} keeps tensors in {location:?}, which is not a plain file name; export it with its data beside it, such \
                 as in \"weights.bin\""
            ));
        } else if !files.extra.iter().any(|extra| extra.name == *location) {
            reasons.push(format!(
                "{file} keeps tensors in {location:?}, which the manifest does not list as [[extra]]; add it there, with \
                 its sha256 and size_bytes"
            ));
        }
    }
    for extra in &files.extra {
        if !is_inside(&manifest.folder, &extra.name) {
            reasons.push(format!("{} is a link that leaves the model's folder", extra.name));
        }
    }
    let finding = match files.extra.len() {
        0 => "one file, no external data".to_owned(),
        extra => format!("{} files, no external data elsewhere", 1 + extra),
    };
    let value = reasons.is_empty().then_some(());
    Outcome { finding, reasons, value }
}

fn is_inside(folder: &Path, file: &str) -> bool {
    match (folder.canonicalize(), folder.join(file).canonicalize()) {
        (Ok(folder), Ok(file)) => file.starts_with(folder),
        _ => false,
    }
}
