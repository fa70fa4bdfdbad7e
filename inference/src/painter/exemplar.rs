//! The fill without weights.

use super::{PaintError, Painter, Painting, Watch};
use crate::manifest::Exemplar;
use retouch_pixels::fill::{Damaged, FillError, Settings, fill};

/// Fills a hole from the rest of the crop.
pub struct ExemplarPainter {
    search_pixels: usize,
}

impl ExemplarPainter {
    pub const fn new(contract: &Exemplar) -> Self {
        Self { search_pixels: contract.search_pixels }
    }
}

impl Painter for ExemplarPainter {
    fn paint(&mut self, painting: &Painting, watch: Watch<'_>) -> Result<Vec<u8>, PaintError> {
        let Painting { width, height, rgb, hole, hidden, seed, .. } = painting;
        let damaged =
            Damaged { rgb, width: *width, height: *height, hole, hidden: hidden.as_deref() };
        let settings = Settings { seed: *seed, max_pixels: self.search_pixels };
        fill(&damaged, &settings, &|| watch.is_canceled()).map_err(|error| match error {
            FillError::Canceled => PaintError::Canceled,
            FillError::NothingToCopy => PaintError::NothingLeft,
            FillError::SizeMismatch { .. } => PaintError::failed(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use retouch_catalog::FixMode;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn a_fill_shows_that_it_is_alive() {
        let side = 64;
        let pixels = 0..side * side;
        let painting = Painting {
            width: side as u32,
            height: side as u32,
            rgb: pixels.clone().flat_map(|at| [(at * 7 % 11 * 23) as u8; 3]).collect(),
            hole: pixels.map(|at| at / side % 8 == 3 && at % 8 == 3).collect(),
            hidden: None,
            mode: FixMode::Restore,
            prompt: String::new(),
            caption: String::new(),
            seed: 1,
        };
        let beats = AtomicUsize::new(0);
        let heartbeat = || {
            beats.fetch_add(1, Ordering::Relaxed);
        };
        let never = CancellationToken::new();
        let watch = Watch { progress: &|_| {}, heartbeat: &heartbeat, cancel: &never };
        let mut painter = ExemplarPainter { search_pixels: 1 << 20 };
        painter.paint(&painting, watch).expect("it is filled");
        assert!(beats.into_inner() > 1);
    }
}
