//! Crops to paint: crops that line up run as a batch, if the model allows it.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::message::{PaintControl, PaintResult};
use crate::painter::{PaintError, Painter, Painting, Watch};
use crate::runs::Run;
use crate::session::{Full, Runtime};

/// A crop to paint, and the channel for the result.
pub struct Crop {
    pub painting: Box<Painting>,
    /// Observes and cancels the painting.
    pub control: PaintControl,
    pub answer: oneshot::Sender<Result<PaintResult, PaintError>>,
    /// How long the crop waited for the model.
    pub waited: Duration,
}

/// Paints crops together, as one run. Returns the results in the same order, each with its share of the duration.
pub fn paint(
    painter: &mut dyn Painter,
    runtime: &Runtime,
    run: &Run,
    crops: &[Crop],
) -> Vec<Result<PaintResult, PaintError>> {
    let progress: Vec<_> = crops
        .iter()
        .map(|crop| {
            |count| {
                run.heartbeat();
                (crop.control.progress)(count);
            }
        })
        .collect();
    let heartbeat = || run.heartbeat();
    let paintings = crops.iter().zip(&progress).map(|(crop, progress)| {
        let watch = Watch { progress, heartbeat: &heartbeat, cancel: &crop.control.cancel };
        (crop.painting.as_ref(), watch)
    });
    let paintings: Vec<_> = paintings.collect();
    let started = Instant::now();
    let made = match runtime.faults().inject(run.number()) {
        Ok(()) => painter.paint_together(&paintings),
        Err(error) => crops.iter().map(|_| Err(error.clone().into())).collect(),
    };
    let ran = started.elapsed() / crops.len() as u32;
    let results = crops.iter().zip(made).map(|(crop, made)| {
        if let Err(PaintError::Session(error)) = &made {
            runtime.note_loss(error);
        }
        Ok(PaintResult { rgb: made?, waited: crop.waited, ran })
    });
    results.collect()
}

/// Returns which memory ran out, if that is the error.
pub fn full(error: &PaintError) -> Option<Full> {
    let PaintError::Session(error) = error else { return None };
    error.full()
}
