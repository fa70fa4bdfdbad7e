//! Painters repaint the hole of a crop. One file per kind of model.

mod exemplar;
mod fill;
mod inpaint;
mod reference_image;

pub use exemplar::ExemplarPainter;
pub use fill::FillPainter;
pub use inpaint::InpaintPainter;

use retouch_catalog::{Count, FixMode};
use tokio_util::sync::CancellationToken;

use crate::session::SessionError;

#[derive(Clone, Debug)]
pub struct Painting {
    pub width: u32,
    pub height: u32,
    /// R, G, B of every pixel.
    pub rgb: Vec<u8>,
    /// Whether to paint each pixel.
    pub hole: Vec<bool>,
    /// Whether each pixel is transparent in the picture, so that its color is invented; `None` if none is.
    pub hidden: Option<Vec<bool>>,
    pub mode: FixMode,
    /// The prompt as the user wrote it.
    pub prompt: String,
    /// The prompt as a caption of the result, for models that follow captions.
    pub caption: String,
    /// The random seed: the same seed gives the same bytes on the same device.
    pub seed: u64,
}

/// Observes a painting and can cancel it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Called after each step with the progress.
    pub progress: &'a (dyn Fn(Count) + Send + Sync),
    /// Called while the painting runs, so that the model does not count as stalled.
    pub heartbeat: &'a (dyn Fn() + Send + Sync),
    /// Cancels the painting at the next step.
    pub cancel: &'a CancellationToken,
}

impl Watch<'_> {
    /// Returns whether the painting is canceled. Work without steps asks several times a second, which counts as a heartbeat.
    pub fn is_canceled(self) -> bool {
        (self.heartbeat)();
        self.cancel.is_cancelled()
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum PaintError {
    /// The model failed or ran out of memory.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The hole covers the whole crop, which leaves nothing to fill it from.
    #[error("the mask covers the whole picture")]
    NothingLeft,
    #[error("canceled")]
    Canceled,
}

impl PaintError {
    /// A failure of the model, with this message.
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Session(SessionError::Failed(error.to_string()))
    }
}

/// Paints crops. One thread owns it.
pub trait Painter: Send {
    /// Paints the hole and returns R, G, B of the whole crop. Pixels outside the hole may change; the caller uses only
    /// the hole.
    fn paint(&mut self, painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError>;

    /// Returns whether it can paint several crops at a time.
    fn takes_batches(&self) -> bool {
        false
    }

    /// Paints one crop at a time from now on.
    fn run_alone(&mut self) {}

    /// Returns whether the two crops line up, so that [`Self::paint_together`] may paint them.
    fn lines_up(&self, _first: &Painting, _other: &Painting) -> bool {
        false
    }

    /// Paints crops that line up. The results have the same order, and each equals the result of [`Self::paint`].
    fn paint_together(
        &mut self,
        paintings: &[(&Painting, Watch<'_>)],
    ) -> Vec<Result<Vec<u8>, PaintError>> {
        let paint = |(painting, watch): &(&Painting, Watch<'_>)| {
            let painted = self.paint(painting, *watch);
            (watch.heartbeat)();
            painted
        };
        paintings.iter().map(paint).collect()
    }
}
