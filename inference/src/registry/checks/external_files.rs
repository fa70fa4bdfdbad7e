//! The files step: graphs keep their tensors only in files that the manifest lists.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::checksum::Files;
use crate::manifest::{Manifest, is_plain_name};
use crate::onnx::external_data::{self, Malformed};
use crate::registry::steps::Outcome;

const HOW_TO_LIST: &str = "add it as [[extra]], with its sha256 and size_bytes";

/// The folders of the nets of pipelines.
const PARTS: [&str; 8] = [
    "encoder",
    "decoder",
    "text_encoder",
    "text_encoder_2",
    "transformer",
    "unet",
    "vae_encoder",
    "vae_decoder",
];

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
        if leaves_folder(location) {
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
                "{file} keeps tensors in {location:?}, which the manifest does not list; {HOW_TO_LIST}"
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

/// Checks that the manifest lists the nets of a pipeline, and the files of their tensors: ONNX Runtime opens nets by their
/// paths, with whatever files they name.
pub fn check_pipeline(manifest: &Manifest) -> Outcome<()> {
    let reasons = unlisted(manifest);
    let value = reasons.is_empty().then_some(());
    let finding = "all nets and their tensors are in listed files".to_owned();
    Outcome { finding, reasons, value }
}

fn unlisted(manifest: &Manifest) -> Vec<String> {
    let lists = |path: &Path| manifest.files.iter().any(|file| Path::new(&file.file) == path);
    let mut reasons = Vec::new();
    for part in PARTS {
        let net = PathBuf::from(part).join("model.onnx");
        // The checksum step says which listed files are missing.
        let Ok(graph) = fs::read(manifest.folder.join(&net)) else { continue };
        let shown = net.display();
        if !lists(&net) {
            reasons
                .push(format!("{shown} is a net that the manifest does not list; {HOW_TO_LIST}"));
        }
        let locations = match external_data::locations(&graph) {
            Ok(locations) => locations,
            // ONNX Runtime cannot open it either, and says so.
            Err(Malformed::Truncated | Malformed::NotProtobuf) => continue,
            Err(error @ (Malformed::TooDeep | Malformed::Nameless)) => {
                reasons.push(format!("{shown} cannot be used: {error}; export it again"));
                continue;
            }
        };
        for location in &locations {
            if leaves_folder(location) {
                reasons.push(format!(
                    "{shown} keeps tensors in {location:?}, which is outside its folder; export it with its data beside it"
                ));
            } else if !lists(&Path::new(part).join(location)) {
                reasons.push(format!(
                    "{shown} keeps tensors in \"{part}/{location}\", which the manifest does not list; {HOW_TO_LIST}"
                ));
            }
        }
    }
    reasons
}

fn leaves_folder(location: &str) -> bool {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !Path::new(location).components().all(is_inside)
}

fn is_inside(folder: &Path, file: &str) -> bool {
    match (folder.canonicalize(), folder.join(file).canonicalize()) {
        (Ok(folder), Ok(file)) => file.starts_with(folder),
        _ => false,
    }
}
