//! The paintings of a batch. Those whose steps line up run through the UNet together; each has its own texts, guidance,
//! noise and scheduler, and may leave the batch when it fails or is canceled.
//!
//! The arithmetic of the schedulers stays on the CPU, in 64 bits as in diffusers. In each step, the UNet's sample goes up
//! and its prediction comes down: of 512 × 512 pixels with two texts, 288 and 128 KiB in 32 bits. Both are small beside
//! a run of the net.

use std::sync::Arc;

use ndarray::Array4;

use super::text::EmbeddedTexts;
use super::unet::Guide;
use crate::diffusion::error::DiffusionError;
use crate::diffusion::noise::{NoiseSource, draw};
use crate::diffusion::request::{Request, StepCallback, StepState};
use crate::diffusion::scheduler::{self, Scheduler};

pub struct BatchItem<'a> {
    pub request: &'a Request,
    pub noise: &'a mut dyn NoiseSource,
    /// Called after each of its steps.
    pub on_step: &'a mut StepCallback<'a>,
}

/// What lines up in a batch: height and width in pixels, the number of steps, and the first of them.
pub(super) type Line = ((usize, usize), usize, usize);

/// A painting between two steps.
pub(super) struct Begun<'a> {
    pub(super) place: usize,
    pub(super) item: BatchItem<'a>,
    pub(super) first: usize,
    pub(super) schedule: Box<dyn Scheduler + Send>,
    pub(super) texts: Arc<EmbeddedTexts>,
    /// The channels after the latents in the net's input.
    pub(super) fixed: Array4<f32>,
    pub(super) latents: Array4<f32>,
}

impl Begun<'_> {
    pub(super) fn guide(&self) -> Guide<'_> {
        Guide { texts: &self.texts, guidance: self.item.request.guidance, fixed: &self.fixed }
    }

    /// Returns the latents as the net takes them in this step.
    pub(super) fn scaled(&self, index: usize) -> Array4<f32> {
        let scale = self.schedule.input_scale(index);
        self.latents.mapv(|value| (f64::from(value) * scale) as f32)
    }

    /// Takes one step, and calls back.
    pub(super) fn step(
        &mut self,
        index: usize,
        predicted: &Array4<f32>,
    ) -> Result<(), DiffusionError> {
        let fresh = if self.schedule.draws_noise(index) {
            Some(draw(self.item.noise, self.latents.shape())?)
        } else {
            None
        };
        self.latents = self.schedule.step(index, &self.latents, predicted, fresh.as_ref());
        let state = StepState {
            index: index - self.first,
            total: self.schedule.timesteps().len() - self.first,
            latents: self.latents.view().into_dyn(),
        };
        if (self.item.on_step)(state).is_break() {
            return Err(DiffusionError::Canceled);
        }
        Ok(())
    }
}

/// Returns what must be equal in a batch.
pub(super) fn line(request: &Request) -> Line {
    let first = scheduler::start_index(request.steps, request.strength);
    (request.mask.dim(), request.steps, first)
}
