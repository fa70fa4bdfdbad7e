//! Errors of opening and running a pipeline.

use std::path::{Path, PathBuf};

use super::scheduler_config::ConfigError;
use crate::session::SessionError;

/// A pipeline could not be opened, or a picture could not be painted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DiffusionError {
    /// A file is missing, unreadable or invalid.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// The pipeline does not support a part of the model.
    #[error("{part}: {reason}")]
    Unsupported {
        /// The part's folder, such as `unet` or `vae_encoder`.
        part: &'static str,
        reason: String,
    },
    #[error("scheduler: {0}")]
    Scheduler(ConfigError),
    /// The request is invalid for this model.
    #[error("{0}")]
    Request(String),
    /// ONNX Runtime could not open or run a part.
    #[error("{part}: {error}")]
    Session { part: &'static str, error: SessionError },
    /// A net returned infinities or NaNs, as some do in half precision.
    #[error(
        "{part}: the output contains values that are not finite. If it was exported in half precision, export this part \
         in 32 bits"
    )]
    NotFinite { part: &'static str },
    #[error("noise: {0}")]
    Noise(String),
    /// The step callback ended the run.
    #[error("canceled")]
    Canceled,
}

// `#[from]` would add the error as a source, but the message already contains it.
impl From<ConfigError> for DiffusionError {
    fn from(error: ConfigError) -> Self {
        Self::Scheduler(error)
    }
}

impl DiffusionError {
    pub(crate) fn file(path: &Path, reason: &(impl ToString + ?Sized)) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(crate) fn unsupported(part: &'static str, reason: impl Into<String>) -> Self {
        Self::Unsupported { part, reason: reason.into() }
    }
}
