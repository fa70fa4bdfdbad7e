//! FLUX.2 \[klein\] inpainting: a transformer over a sequence of latents and reference latents, in a few straight steps
//! (`Flux2KleinInpaintPipeline` of diffusers 0.42).
//!
//! Only distilled models are supported, which use no guidance and no negative prompt. The picture itself is the
//! reference, so a prompt may be an instruction. Unlike in diffusers, another picture may take its place, which hides what
//! is under the mask ([`Request::reference`]).

mod nets;
mod text_encoder;

use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, Array3, Array4, ArrayD};
use serde_json::Value;

use self::nets::{Decoder, Encoder, Transformer};
use self::text_encoder::TextEncoder;
use super::error::DiffusionError;
use super::flow::{self, FlowConfig};
use super::json;
use super::noise::{NoiseSource, draw};
use super::picture;
use super::recent_texts::RecentTexts;
use super::request::{Generated, Request, StepCallback, StepState};
use crate::session::Runtime;

/// Pixels per latent, along each side: eight in the autoencoder, and 2 × 2 of its latents are packed into one.
const PIXELS_PER_LATENT: usize = 16;

/// The timesteps of the training; the model is distilled to four steps.
const MAX_STEPS: usize = 1000;

/// An opened FLUX.2 \[klein\] model.
pub struct Flux2Klein {
    transformer: Transformer,
    encoder: Encoder,
    decoder: Decoder,
    text: Option<TextEncoder>,
    recent: RecentTexts<(ArrayD<f32>, usize)>,
    scheduler: FlowConfig,
}

impl Flux2Klein {
    /// Opens a folder with `scheduler_config.json` (or `scheduler/`), and `transformer/`, `vae_encoder/` and
    /// `vae_decoder/` with a `model.onnx` each. The autoencoder's graphs use the transformer's latents: 2 × 2 packed
    /// into one, and normalized. `text_encoder/` and `tokenizer/` are optional; without them, only
    /// [`Self::inpaint_embedded`] works.
    ///
    /// # Errors
    /// If a file is missing or broken, a scheduler setting is not implemented, a net is of an unsupported kind, or
    /// `model_index.json` exists and does not set `is_distilled`.
    pub fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        check_distilled(folder)?;
        let scheduler = FlowConfig::read(folder)?;
        let text = if folder.join("text_encoder").is_dir() {
            Some(TextEncoder::open(folder, runtime)?)
        } else {
            None
        };
        Ok(Self {
            transformer: Transformer::open(folder, runtime)?,
            encoder: Encoder::open(folder, runtime)?,
            decoder: Decoder::open(folder, runtime)?,
            text,
            recent: RecentTexts::new(),
            scheduler,
        })
    }

    pub const fn scheduler(&self) -> &FlowConfig {
        &self.scheduler
    }

    /// Returns the number of pixels that width and height must be multiples of.
    pub const fn size_multiple(&self) -> usize {
        PIXELS_PER_LATENT
    }

    /// Returns how long each net has run since it was opened ([`super::net::Net::run_time`]), starting with the
    /// transformer.
    pub fn run_times(&self) -> [(&'static str, Duration); 4] {
        let text = self.text.as_ref().map_or(Duration::ZERO, |text| text.net.run_time());
        [
            (self.transformer.net.part(), self.transformer.net.run_time()),
            ("text_encoder", text),
            (self.encoder.net.part(), self.encoder.net.run_time()),
            (self.decoder.net.part(), self.decoder.net.run_time()),
        ]
    }

    /// Returns the number of sets of shapes whose tensors the transformer keeps on the device.
    pub fn kept_shapes(&self) -> usize {
        self.transformer.net.kept_shapes()
    }

    /// Repaints the masked part of a picture. Ignores `negative_prompt`, `guidance`, `eta` and `mask_to_latents` of the
    /// request; the mask has soft edges. Draws from `noise` once.
    ///
    /// # Errors
    /// Same as [`super::SdInpaint::inpaint`], and [`DiffusionError::Unsupported`] if the folder has no text encoder.
    pub fn inpaint(
        &mut self,
        request: &Request,
        noise: &mut dyn NoiseSource,
        on_step: &mut StepCallback<'_>,
    ) -> Result<Generated, DiffusionError> {
        request.check(PIXELS_PER_LATENT)?;
        let Some(text) = &mut self.text else {
            let reason = "the model's folder has no text encoder, which a prompt requires";
            return Err(DiffusionError::unsupported("text_encoder", reason));
        };
        let texts = (None, request.prompt.clone());
        let embedded = self.recent.get_or_embed(texts, |(_, prompt)| {
            let (states, cut) = text.embed(prompt)?;
            let bytes = 4 * states.len();
            Ok::<_, DiffusionError>(((states, cut), bytes))
        })?;
        let (states, cut) = embedded.as_ref();
        let generated = self.inpaint_embedded(request, states, noise, on_step)?;
        Ok(Generated { prompt_tokens_cut: *cut, ..generated })
    }

    /// Like [`Self::inpaint`], but with an embedded prompt, `[1, length, size]`, instead of the request's prompt.
    ///
    /// # Errors
    /// Same as [`Self::inpaint`].
    pub fn inpaint_embedded(
        &mut self,
        request: &Request,
        embedded: &ArrayD<f32>,
        noise: &mut dyn NoiseSource,
        on_step: &mut StepCallback<'_>,
    ) -> Result<Generated, DiffusionError> {
        request.check(PIXELS_PER_LATENT)?;
        if request.steps > MAX_STEPS {
            let text = format!("steps is {}, but must be at most {MAX_STEPS}", request.steps);
            return Err(DiffusionError::Request(text));
        }
        let (rows, columns) = request.mask.dim();
        let (height, width) = (rows / PIXELS_PER_LATENT, columns / PIXELS_PER_LATENT);
        let sigmas = self.scheduler.sigmas(height * width, request.steps);
        let timesteps = self.scheduler.timesteps(&sigmas);
        let first = flow::start_index(request.steps, request.strength);
        if first >= request.steps {
            let Request { strength, steps, .. } = request;
            let text = format!("strength {strength} leaves no step of {steps}");
            return Err(DiffusionError::Request(text));
        }
        let encoded = self.encoder.run(&picture::to_tensor(&request.image), height, width)?;
        let drawn = draw(noise, encoded.shape())?;
        let (clean, noise) = (packed(&encoded), packed(&drawn));
        let reference = match &request.reference {
            Some(other) => packed(&self.encoder.run(&picture::to_tensor(other), height, width)?),
            None => clean.clone(),
        };
        let mut condition = self.transformer.condition(embedded, (height, width), &reference)?;
        let mask = picture::shrink_softly(&request.mask, height, width);

        let mut latents = between(&clean, &noise, sigmas[first]);
        for index in first..request.steps {
            let (sigma, next) = (sigmas[index], sigmas[index + 1]);
            // The net expects a thousandth of the timestep, however many timesteps the training had.
            let time = (timesteps[index] / 1000.0) as f32;
            let velocity = self.transformer.run(&latents, &mut condition, time)?;
            // Outside the mask, the latents are the original picture with the remaining noise.
            let kept = between(&clean, &noise, next);
            step(&mut latents, &velocity, next - sigma, &kept, &mask);
            let (index, total) = (index - first, request.steps - first);
            if on_step(StepState { index, total, latents: latents.view().into_dyn() }).is_break() {
                return Err(DiffusionError::Canceled);
            }
        }
        let image = self.decoder.run(&unpacked(&latents, height, width))?;
        Ok(Generated { image, prompt_tokens_cut: 0 })
    }
}

/// Refuses a model that is not distilled: it needs guidance, which would be missing silently.
fn check_distilled(folder: &Path) -> Result<(), DiffusionError> {
    let index = folder.join("model_index.json");
    if !index.is_file() {
        return Ok(());
    }
    // diffusers' default is false.
    match json::read_object(&index)?.get("is_distilled") {
        Some(Value::Bool(true)) => Ok(()),
        _ => Err(DiffusionError::file(
            &index,
            "`is_distilled` is not true, but only distilled models are supported",
        )),
    }
}

/// Converts `[1, channels, height, width]` to `[1, height * width, channels]`.
fn packed(latents: &Array4<f32>) -> Array3<f32> {
    let (_, channels, height, width) = latents.dim();
    Array3::from_shape_fn((1, height * width, channels), |(_, token, channel)| {
        latents[(0, channel, token / width, token % width)]
    })
}

fn unpacked(latents: &Array3<f32>, height: usize, width: usize) -> Array4<f32> {
    let channels = latents.dim().2;
    Array4::from_shape_fn((1, channels, height, width), |(_, channel, y, x)| {
        latents[(0, y * width + x, channel)]
    })
}

/// Returns the point at `sigma` on the straight line from the picture to the noise.
fn between(clean: &Array3<f32>, noise: &Array3<f32>, sigma: f64) -> Array3<f32> {
    let mut point = clean.clone();
    point.zip_mut_with(noise, |value, noise| {
        *value = ((1.0 - sigma) * f64::from(*value) + sigma * f64::from(*noise)) as f32;
    });
    point
}

/// Takes one step along the velocity inside the mask, and replaces the latents outside it with `kept`.
fn step(
    latents: &mut Array3<f32>,
    velocity: &Array3<f32>,
    length: f64,
    kept: &Array3<f32>,
    mask: &Array2<f32>,
) {
    let width = mask.dim().1;
    for ((batch, token, channel), value) in latents.indexed_iter_mut() {
        let inside = f64::from(mask[(token / width, token % width)]);
        let at = (batch, token, channel);
        let moved = f64::from(*value) + length * f64::from(velocity[at]);
        *value = ((1.0 - inside) * f64::from(kept[at]) + inside * moved) as f32;
    }
}
