//! Reads and checks the text of manifests and bindings.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A manifest or `tools.toml` that is invalid; the message names the file and the problem.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct ManifestError {
    pub file: PathBuf,
    /// One sentence.
    pub problem: String,
}

/// Returns whether a name stays in its folder: no slash, no `..`.
pub(crate) fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|last| last == name)
}

/// Checks that a path stays in the model's folder: relative, without `..`.
pub(super) fn check_path(field: &str, path: &str) -> Result<(), String> {
    let is_inside = |part| matches!(part, Component::Normal(_));
    if !path.is_empty() && Path::new(path).components().all(is_inside) {
        Ok(())
    } else {
        Err(format!("{field} is {path:?}, but must be a relative path without `..`"))
    }
}

/// Formats a TOML error on one line.
pub(crate) fn readable(error: &toml::de::Error) -> String {
    error.to_string().trim_end().replace('\n', " ")
}

pub(crate) fn read_text(path: &Path) -> Result<String, ManifestError> {
    fs::read_to_string(path).map_err(|error| {
        let problem = dead_link(path).unwrap_or_else(|| error.to_string());
        ManifestError { file: path.to_owned(), problem }
    })
}

/// Says that `folder` does not exist, and which models do: a misspelled name is the usual reason. `None` if it exists.
pub(super) fn no_model(folder: &Path) -> Option<String> {
    let models = folder.parent().filter(|_| fs::symlink_metadata(folder).is_err())?;
    let mut names: Vec<_> = fs::read_dir(models)
        .ok()?
        .flatten()
        .filter(|entry| entry.path().join("model.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    let others =
        if names.is_empty() { String::new() } else { format!(", only {}", names.join(", ")) };
    Some(format!("there is no such model{others}"))
}

/// Describes a broken link, with its target; `None` if `path` is not one.
pub fn dead_link(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok().filter(|_| !path.exists())?;
    Some(format!("it is a link to {}, which does not exist", target.display()))
}

pub(super) fn check_sha256(field: &str, text: &str) -> Result<(), String> {
    let advice = "`sha256sum FILE` prints it";
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!(
            "{field} is {text:?}, but must have 64 lower-case hexadecimal digits; {advice}"
        ));
    }
    let lower = text.to_ascii_lowercase();
    if lower == text {
        Ok(())
    } else {
        Err(format!("{field} must be in lower case: write {lower:?}"))
    }
}
