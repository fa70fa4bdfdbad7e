//! The net of an upscale.

use ndarray::Array4;
use retouch_inference::manifest::{Task, Upscale};
use retouch_inference::registry::{Announcement, Inference, ModelHandle};
use retouch_inference::session::SessionError;

use crate::tools::ToolError;

/// An upscaling net: a loaded model, or a stand-in in tests.
pub trait Net: Sync {
    fn contract(&self) -> &Upscale;

    /// Announces a tile that is being prepared, so that a batch that is filling waits for it.
    fn announce(&self) -> Option<Announcement> {
        None
    }

    /// Returns whether tiles should have few shapes.
    fn has_few_shapes(&self) -> bool {
        false
    }

    /// Returns how many tiles of `rows` and `columns`, with padding, one run takes at most.
    fn largest_batch(&self, _rows: usize, _columns: usize) -> usize {
        1
    }

    /// Runs the net on bytes `[1, height, width, 3]`.
    fn enlarge(
        &self,
        announcement: Option<Announcement>,
        tile: Array4<u8>,
    ) -> impl Future<Output = Result<Inference, SessionError>> + Send;
}

/// A loaded upscaling model.
#[derive(Clone, Debug)]
pub struct Upscaler {
    model: ModelHandle,
    contract: Upscale,
}

impl Upscaler {
    /// Wraps a model.
    ///
    /// # Errors
    /// [`ToolError::Model`] if its task is not upscaling.
    pub fn new(model: ModelHandle) -> Result<Self, ToolError> {
        match model.task() {
            Task::Upscale(contract) => Ok(Self { contract: contract.clone(), model }),
            _ => Err(ToolError::Model(format!("{} is not an upscaler", model.identity()))),
        }
    }
}

impl Net for Upscaler {
    fn contract(&self) -> &Upscale {
        &self.contract
    }

    fn announce(&self) -> Option<Announcement> {
        Some(self.model.announce())
    }

    fn has_few_shapes(&self) -> bool {
        self.model.has_few_shapes()
    }

    fn largest_batch(&self, rows: usize, columns: usize) -> usize {
        self.model.largest_batch(rows, columns)
    }

    async fn enlarge(
        &self,
        announcement: Option<Announcement>,
        tile: Array4<u8>,
    ) -> Result<Inference, SessionError> {
        match announcement {
            Some(announcement) => self.model.infer_announced(announcement, tile).await,
            None => self.model.infer(tile).await,
        }
    }
}
