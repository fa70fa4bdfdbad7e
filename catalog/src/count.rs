//! Countable progress of a run.

use serde::{Deserialize, Serialize};

/// The unit of a [`Count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CountUnit {
    /// Parts of a picture that the model processes separately.
    Tiles,
    /// Diffusion steps.
    Steps,
}

/// The number of finished tiles or steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Count {
    /// The unit.
    pub unit: CountUnit,
    /// The finished ones, from 0 to `total`.
    pub done: u32,
    /// All of them, at least 1. Grows if memory runs short and the tiles become smaller.
    pub total: u32,
}

impl Count {
    /// Returns the finished fraction, from 0 to 1.
    pub fn fraction(self) -> f32 {
        self.done as f32 / self.total as f32
    }

    /// Returns the count over `parts` equal parts, of which this is number `index`, from 0, and all before it are
    /// finished.
    #[must_use]
    pub const fn in_part(self, index: u32, parts: u32) -> Self {
        Self { unit: self.unit, done: index * self.total + self.done, total: parts * self.total }
    }
}
