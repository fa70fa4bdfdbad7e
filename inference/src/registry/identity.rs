//! The identity of a loaded model.

use std::fmt;

use serde::Serialize;

use crate::device::Device;

/// The weights that run, and the device. Every result records the identity of its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelIdentity {
    pub name: String,
    /// The SHA-256 of the loaded weights; see [`Manifest::sha256`](crate::manifest::Manifest::sha256).
    pub sha256: String,
    pub device: Device,
}

impl ModelIdentity {
    /// Returns the identity of two models that made one picture on the same device: names and checksums joined by a
    /// plus sign.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let joined = |one: &str, two: &str| format!("{one} + {two}");
        Self {
            name: joined(&self.name, &other.name),
            sha256: joined(&self.sha256, &other.sha256),
            device: self.device,
        }
    }
}

impl fmt::Display for ModelIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}) on {}",
            self.name,
            &self.sha256[..12.min(self.sha256.len())],
            self.device
        )
    }
}
