//! Reasons not to serve a model.

use std::fmt;

use super::steps::LoadStep;
use crate::bindings::Demand;
use crate::device::Device;
use crate::manifest::ManifestError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// The manifest or `tools.toml` is invalid.
    #[error("{0}")]
    Manifest(String),
    /// No model is bound to this demand on this device.
    #[error("tools.toml binds no model to {demand} on {device}")]
    Unbound { demand: Demand, device: Device },
    #[error("model {model} is refused: {step}: {reason}")]
    Refused {
        model: String,
        step: LoadStep,
        /// One sentence.
        reason: String,
    },
}

impl From<ManifestError> for LoadError {
    fn from(error: ManifestError) -> Self {
        Self::Manifest(error.to_string())
    }
}

/// Why the registry does not serve the model that the files specify. It keeps serving the previous model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The model's name, or `tools.toml`.
    pub model: String,
    pub step: LoadStep,
    /// One sentence.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.model, self.step, self.reason)
    }
}
