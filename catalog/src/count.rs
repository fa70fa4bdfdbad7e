//! What of a run can be counted.

use serde::{Deserialize, Serialize};

/// What a run is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CountUnit {
    /// Parts of a picture that the model makes one after the other.
    Tiles,
    /// Steps of diffusion.
    Steps,
}

/// How many of a run's tiles or steps are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// What is counted.
    pub unit: CountUnit,
    /// Those that are done, at most `total`.
    pub done: u32,
    /// All of them, at least one. Memory that runs short makes more of fewer.
    pub total: u32,
}

impl Count {
    /// The share that is done, from 0 to 1.
    pub fn fraction(self) -> f32 {
        self.done as f32 / self.total as f32
    }

    /// The same count as part `index` of `parts` alike.
    #[must_use]
    pub const fn in_part(self, index: u32, parts: u32) -> Self {
        Self { unit: self.unit, done: index * self.total + self.done, total: parts * self.total }
    }
}
