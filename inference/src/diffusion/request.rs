//! Requests to a pipeline, and what it reports.

use std::ops::ControlFlow;

use ndarray::{Array2, Array3, ArrayViewD};

use super::error::DiffusionError;

/// How the mask is reduced to the size of the latents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaskToLatents {
    /// Takes every eighth pixel of every eighth row, as diffusers does. Thin strokes may vanish.
    Nearest,
    /// Repaints a latent if any of its pixels is masked.
    #[default]
    MaxPool,
}

/// What to paint.
#[derive(Clone, Debug)]
pub struct Request {
    /// The picture, `[height, width, 3]`, sRGB.
    pub image: Array3<u8>,
    /// The pixels to repaint, `[height, width]`.
    pub mask: Array2<bool>,
    pub prompt: String,
    /// The negative prompt; used only if `guidance` is above 1.
    pub negative_prompt: String,
    /// The steps of a full run; a lower `strength` skips the first ones.
    pub steps: usize,
    /// The weight of the prompt. At 1 or less the negative prompt is not run, which halves the cost.
    pub guidance: f32,
    /// The share of the old content to discard, above 0 and at most 1: 1 starts from pure noise, 0.3 keeps most.
    pub strength: f64,
    /// The noise that DDIM and TCD add in each step, in 0..=1. Other schedulers ignore it.
    pub eta: f64,
    pub mask_to_latents: MaskToLatents,
    /// The picture that FLUX.2 \[klein\] sees as its reference, `[height, width, 3]`, sRGB; `None` means `image`. Stable
    /// Diffusion ignores it.
    pub reference: Option<Array3<u8>>,
}

impl Request {
    /// Checks everything that does not depend on the model, except for the size multiple.
    pub(crate) fn check(&self, size_multiple: usize) -> Result<(), DiffusionError> {
        let (height, width, channels) = self.image.dim();
        let problem = if channels != 3 {
            format!("the picture has {channels} channels, but must have 3")
        } else if self.mask.dim() != (height, width) {
            let (rows, columns) = self.mask.dim();
            format!("the mask is {columns} × {rows} pixels, but the picture is {width} × {height}")
        } else if let Some(other) =
            self.reference.as_ref().filter(|one| one.dim() != self.image.dim())
        {
            let (rows, columns, _) = other.dim();
            format!(
                "the reference is {columns} × {rows} pixels, but the picture is {width} × {height}"
            )
        } else if height == 0
            || width == 0
            || height % size_multiple != 0
            || width % size_multiple != 0
        {
            format!(
                "the picture is {width} × {height} pixels, but both sides must be multiples of {size_multiple}"
            )
        } else if !self.mask.iter().any(|on| *on) {
            "the mask is empty".to_owned()
        } else if self.steps == 0 {
            "steps must be at least 1".to_owned()
        } else if !(self.strength > 0.0 && self.strength <= 1.0) {
            format!("strength is {}, but must be above 0 and at most 1", self.strength)
        } else if !(0.0..=1.0).contains(&self.eta) {
            format!("eta is {}, but must be 0 to 1", self.eta)
        } else if !self.guidance.is_finite() {
            format!("guidance is {}, but must be finite", self.guidance)
        } else {
            return Ok(());
        };
        Err(DiffusionError::Request(problem))
    }
}

/// The state of a run after a step.
#[derive(Clone, Debug)]
pub struct StepState<'a> {
    /// The finished step of this run, from 0.
    pub index: usize,
    /// The number of steps of this run.
    pub total: usize,
    pub latents: ArrayViewD<'a, f32>,
}

/// Called after each step; may end the run.
pub type StepCallback<'a> = dyn FnMut(StepState<'_>) -> ControlFlow<()> + 'a;

#[derive(Clone, Debug)]
pub struct Generated {
    /// The decoded picture, `[height, width, 3]` in 0..=1. Outside the mask it is close to the original, but not equal.
    pub image: Array3<f32>,
    /// Tokens cut from the end of the prompt because the text encoder has no room for them.
    pub prompt_tokens_cut: usize,
}
