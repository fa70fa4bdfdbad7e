//! What a pipeline is asked to paint, and what it says while it does.

use std::ops::ControlFlow;

use ndarray::{Array2, Array3, ArrayViewD};

use super::error::DiffusionError;

/// How the mask gets to the size of the latents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaskToLatents {
    /// Every eighth pixel of every eighth row, as diffusers does it: thin strokes may vanish.
    Nearest,
    /// A latent is repainted where any of its pixels is.
    #[default]
    MaxPool,
}

/// What to paint.
#[derive(Clone, Debug)]
pub struct Request {
    /// The picture, `[height, width, 3]`, sRGB.
    pub image: Array3<u8>,
    /// Where to repaint, `[height, width]`.
    pub mask: Array2<bool>,
    /// What shall be seen there.
    pub prompt: String,
    /// What shall not; only looked at where `guidance` is above 1.
    pub negative_prompt: String,
    /// How many steps a whole run has; `strength` may leave the first ones out.
    pub steps: usize,
    /// How much the prompt counts; 1 and less runs the net without the negative prompt, at half the cost.
    pub guidance: f32,
    /// How much of what was there is forgotten: 1 begins with nothing but noise, 0.3 keeps most. In 0..=1.
    pub strength: f64,
    /// How much noise DDIM and TCD add at each step, in 0..=1; the others have no such thing.
    pub eta: f64,
    /// How the mask gets to the size of the latents.
    pub mask_to_latents: MaskToLatents,
}

impl Request {
    /// Checks what does not depend on the model.
    pub(crate) fn check(&self, size_multiple: usize) -> Result<(), DiffusionError> {
        let (height, width, channels) = self.image.dim();
        let complaint = if channels != 3 {
            format!("the picture has {channels} channels, not 3")
        } else if self.mask.dim() != (height, width) {
            let (rows, columns) = self.mask.dim();
            format!("the mask is {columns} by {rows}, the picture {width} by {height} pixels")
        } else if height == 0
            || width == 0
            || height % size_multiple != 0
            || width % size_multiple != 0
        {
            format!(
                "{width} by {height} pixels is no multiple of {size_multiple} by {size_multiple}"
            )
        } else if !self.mask.iter().any(|on| *on) {
            "the mask is empty".to_owned()
        } else if self.steps == 0 {
            "there must be at least one step".to_owned()
        } else if !(self.strength > 0.0 && self.strength <= 1.0) {
            format!("a strength of {} is not above 0 and at most 1", self.strength)
        } else if !(0.0..=1.0).contains(&self.eta) {
            format!("an eta of {} is not between 0 and 1", self.eta)
        } else if !self.guidance.is_finite() {
            format!("a guidance of {} is no number to multiply with", self.guidance)
        } else {
            return Ok(());
        };
        Err(DiffusionError::Request(complaint))
    }
}

/// How far a run is.
#[derive(Clone, Debug)]
pub struct StepReport<'a> {
    /// Which of this run's steps is done, from 0.
    pub index: usize,
    /// How many steps this run has.
    pub of: usize,
    /// The latents after this step.
    pub latents: ArrayViewD<'a, f32>,
}

/// Is told about each step after it, and may end the run.
pub type Watch<'a> = dyn FnMut(StepReport<'_>) -> ControlFlow<()> + 'a;

/// What was painted.
#[derive(Clone, Debug)]
pub struct Painted {
    /// The whole picture as the decoder gives it, `[height, width, 3]` in 0..=1; outside the mask it is close
    /// to the picture that came in, but not the same.
    pub image: Array3<f32>,
    /// How many tokens at the prompt's end did not fit the text encoder.
    pub prompt_tokens_cut: usize,
    /// How many tokens at the negative prompt's end did not fit the text encoder.
    pub negative_tokens_cut: usize,
}
