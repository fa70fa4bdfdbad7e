//! The fill that needs no weights.

use super::{PaintError, Painter, Painting, Watch};
use crate::manifest::Exemplar;
use retouch_pixels::fill::{FillError, Settings, fill};

/// Fills from the crop itself.
pub struct ExemplarPainter {
    search_pixels: usize,
}

impl ExemplarPainter {
    /// As its manifest says.
    pub const fn new(contract: &Exemplar) -> Self {
        Self { search_pixels: contract.search_pixels }
    }
}

impl Painter for ExemplarPainter {
    fn paint(&mut self, painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError> {
        let Painting { width, height, rgb, hole, seed, .. } = painting;
        let settings = Settings { seed: *seed, max_pixels: self.search_pixels };
        fill(rgb, *width, *height, hole, &settings, &|| watch.cancel.is_cancelled()).map_err(
            |error| match error {
                FillError::Cancelled => PaintError::Cancelled,
                FillError::Everything => PaintError::NothingLeft,
                FillError::Sizes { .. } => PaintError::failed(error),
            },
        )
    }
}
