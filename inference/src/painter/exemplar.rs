//! The fill without weights.

use super::{PaintError, Painter, Painting, Watch};
use crate::manifest::Exemplar;
use retouch_pixels::fill::{FillError, Settings, fill};

/// Fills a hole from the rest of the crop.
pub struct ExemplarPainter {
    search_pixels: usize,
}

impl ExemplarPainter {
    /// Creates the painter of a manifest.
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
                FillError::Canceled => PaintError::Canceled,
                FillError::NothingToCopy => PaintError::NothingLeft,
                FillError::SizeMismatch { .. } => PaintError::failed(error),
            },
        )
    }
}
