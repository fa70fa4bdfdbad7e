//! Recognizes files that were saved in place of a model, and says how to get the model.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::manifest::Manifest;

/// Bytes from the start of a file that are enough to recognize it.
const HEAD_BYTES: u64 = 64;

/// Reads the start of a file.
pub fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Explains, by the first bytes of `file`, that it is a wrong file; `None` if it may be right.
pub fn defect(manifest: &Manifest, file: &str, head: &[u8]) -> Option<String> {
    let fetch = if manifest.has_source {
        format!("run `scripts/models fetch {}`", manifest.name)
    } else {
        format!("download it from {}", manifest.homepage)
    };
    if head.is_empty() && Path::new(file).extension().is_some_and(|kind| kind == "onnx") {
        return Some(format!("{file} is empty: its download or copy did not finish; {fetch}"));
    }
    if head.starts_with(b"version https://git-lfs") {
        return Some(format!(
            "{file} is a Git LFS pointer, a text of three lines in place of the model; run `git lfs pull` in the \
             repository it came from and copy it again, or {fetch}"
        ));
    }
    let text = head.trim_ascii_start().to_ascii_lowercase();
    if text.starts_with(b"<!doctype html") || text.starts_with(b"<html") {
        return Some(format!(
            "{file} is a web page: the download saved an error or a sign-in page; {fetch}"
        ));
    }
    None
}
