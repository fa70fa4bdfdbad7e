//! What can go wrong while a pipeline is opened or run.

use std::path::{Path, PathBuf};

use super::scheduler_config::ConfigError;
use crate::session::SessionError;

/// A pipeline that could not be opened, or a picture that could not be painted.
#[derive(Debug, thiserror::Error)]
pub enum DiffusionError {
    /// A file is missing, cannot be read, or does not hold what it should.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is the matter with it.
        reason: String,
    },
    /// A part of the model is of a kind that this pipeline cannot run.
    #[error("{part}: {reason}")]
    Unsupported {
        /// The part's folder: `unet`, `vae_encoder` and so on.
        part: &'static str,
        /// Why it cannot be run.
        reason: String,
    },
    /// The scheduler's settings cannot be honoured.
    #[error("scheduler: {0}")]
    Scheduler(ConfigError),
    /// What was asked for makes no sense for this model.
    #[error("{0}")]
    Request(String),
    /// ONNX Runtime refused a part, or failed while it ran it.
    #[error("{part}: {said}")]
    Session {
        /// The part's folder.
        part: &'static str,
        /// What ONNX Runtime said.
        said: SessionError,
    },
    /// A net gave infinities or NaNs, as some do in 16 bits.
    #[error("{part}: gave values that are not finite")]
    NotFinite {
        /// The part's folder.
        part: &'static str,
    },
    /// A noise source could not give what was asked of it.
    #[error("noise: {0}")]
    Noise(String),
    /// Whoever watched the run ended it.
    #[error("cancelled")]
    Cancelled,
}

// The text says it all; a source beside it would be said twice.
impl From<ConfigError> for DiffusionError {
    fn from(error: ConfigError) -> Self {
        Self::Scheduler(error)
    }
}

impl DiffusionError {
    /// An error about a file.
    pub(crate) fn file(path: &Path, reason: &(impl ToString + ?Sized)) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }

    /// An error about a part of the model.
    pub(crate) fn unsupported(part: &'static str, reason: impl Into<String>) -> Self {
        Self::Unsupported { part, reason: reason.into() }
    }
}
