//! Reads and checks the text of manifests and bindings.

use std::fs;
use std::path::{Path, PathBuf};

/// A manifest or `tools.toml` that is invalid; the message names the file and the problem.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct ManifestError {
    /// The invalid file.
    pub file: PathBuf,
    /// The problem, in one sentence.
    pub problem: String,
}

/// Returns whether a name stays in its folder: no slash, no `..`.
pub(crate) fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|last| last == name)
}

/// Formats a TOML error on one line.
pub(crate) fn readable(error: &toml::de::Error) -> String {
    error.to_string().trim_end().replace('\n', " ")
}

pub(crate) fn read_text(path: &Path) -> Result<String, ManifestError> {
    fs::read_to_string(path)
        .map_err(|error| ManifestError { file: path.to_owned(), problem: error.to_string() })
}

pub(super) fn check_sha256(field: &str, text: &str) -> Result<(), String> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == 64 && text.bytes().all(is_hex) {
        Ok(())
    } else {
        Err(format!("{field} must have 64 lower-case hexadecimal digits"))
    }
}
