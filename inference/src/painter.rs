//! What repaints a part of a picture, whatever it is made of: one crop in, the same crop with its hole painted
//! out. Each kind of model that `model.toml` knows is one file here.

mod exemplar;
mod fill;
mod inpaint;

pub use exemplar::ExemplarPainter;
pub use fill::FillPainter;
pub use inpaint::InpaintPainter;

use retouch_catalog::{Count, FixMode};
use tokio_util::sync::CancellationToken;

use crate::session::SessionError;

/// A crop to be painted.
#[derive(Clone, Debug)]
pub struct Painting {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// Which pixels are to be painted, one entry each.
    pub hole: Vec<bool>,
    /// What is to happen.
    pub mode: FixMode,
    /// The words as they were written.
    pub prompt: String,
    /// What is to be seen, as a caption.
    pub caption: String,
    /// Where randomness begins: the same seed gives the same bytes on the same device.
    pub seed: u64,
}

/// Who follows a painting while it is made.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Is told after each step how many are done.
    pub progress: &'a (dyn Fn(Count) + Send + Sync),
    /// Ends the work at the next step.
    pub cancel: &'a CancellationToken,
}

/// Why a crop was not painted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PaintError {
    /// What does it failed, or ran out of memory.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The hole covers the whole crop, so nothing is left to fill it from.
    #[error("the mask covers everything")]
    NothingLeft,
    /// Nobody wants the result any more.
    #[error("cancelled")]
    Cancelled,
}

impl PaintError {
    /// A failure in the model's own words.
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Session(SessionError::Failed(error.to_string()))
    }
}

/// Paints crops. It is owned by one thread.
pub trait Painter: Send {
    /// R, G, B of the whole crop with its hole painted. Pixels outside of the hole may come back changed;
    /// whoever asked puts only the hole into the picture.
    ///
    /// # Errors
    /// See [`PaintError`].
    fn paint(&mut self, painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError>;
}
