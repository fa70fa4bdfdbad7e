//! FLUX.2 \[klein\] inpainting: a transformer over latents and reference latents in one sequence, in a few straight
//! steps (`Flux2KleinInpaintPipeline` of diffusers 0.42).
//!
//! The model is distilled: there is no guidance and no negative prompt, and one that is not is refused. The picture
//! itself goes along as the reference, so a prompt may be an instruction.

mod parts;
mod text;

use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, Array3, Array4, ArrayD, Ix3};
use serde_json::Value;

use self::parts::{Decoder, Encoder, Transformer};
use self::text::TextEncoder;
use super::error::DiffusionError;
use super::flow::{self, FlowConfig};
use super::json;
use super::net::Opener;
use super::noise::{NoiseSource, draw};
use super::picture;
use super::request::{Painted, Request, StepReport, Watch};

/// Pixels a latent, each way: the autoencoder's eight, and two by two of its latents make one.
const PIXELS_PER_LATENT: usize = 16;

/// As many as the training had; it is distilled to four.
const MOST_STEPS: usize = 1000;

/// A FLUX.2 \[klein\] model, opened.
pub struct Flux2Klein {
    transformer: Transformer,
    encoder: Encoder,
    decoder: Decoder,
    text: Option<TextEncoder>,
    scheduler: FlowConfig,
}

impl Flux2Klein {
    /// Opens a folder of `scheduler_config.json` (or `scheduler/`), and `transformer/`, `vae_encoder/`,
    /// `vae_decoder/` with a `model.onnx` each. The autoencoder's graphs give and take latents as the transformer
    /// sees them: two by two in one, and normalised. `text_encoder/` and `tokenizer/` may be absent; then only
    /// [`Self::inpaint_embedded`] works.
    ///
    /// # Errors
    /// When a file is missing or broken, a scheduler's setting is not implemented, a net is of another kind, or
    /// there is a `model_index.json` that does not say `is_distilled`.
    pub fn open(folder: &Path, opener: &(impl Opener + ?Sized)) -> Result<Self, DiffusionError> {
        check_distilled(folder)?;
        let scheduler = FlowConfig::read(folder)?;
        let text = if folder.join("text_encoder").is_dir() {
            Some(TextEncoder::open(folder, opener)?)
        } else {
            None
        };
        Ok(Self {
            transformer: Transformer::open(folder, opener)?,
            encoder: Encoder::open(folder, opener)?,
            decoder: Decoder::open(folder, opener)?,
            text,
            scheduler,
        })
    }

    /// The scheduler's settings.
    pub const fn scheduler(&self) -> &FlowConfig {
        &self.scheduler
    }

    /// What width and height must be multiples of, in pixels.
    pub const fn size_multiple(&self) -> usize {
        PIXELS_PER_LATENT
    }

    /// How long each net has run since it was opened ([`super::net::Net::ran`]), the one that every step runs first.
    pub fn nets_ran(&self) -> [(&'static str, Duration); 4] {
        let text = self.text.as_ref().map_or(Duration::ZERO, |text| text.net.ran());
        [
            (self.transformer.net.part(), self.transformer.net.ran()),
            ("text_encoder", text),
            (self.encoder.net.part(), self.encoder.net.ran()),
            (self.decoder.net.part(), self.decoder.net.ran()),
        ]
    }

    /// Repaints what the mask covers. Of the request, `negative_prompt`, `guidance`, `eta` and
    /// `mask_to_latents` mean nothing to this model: its mask has soft edges. `noise` is drawn from once.
    ///
    /// # Errors
    /// As [`super::SdInpaint::inpaint`]; [`DiffusionError::Unsupported`] when the folder has no text encoder.
    pub fn inpaint(
        &mut self,
        request: &Request,
        noise: &mut dyn NoiseSource,
        watch: &mut Watch<'_>,
    ) -> Result<Painted, DiffusionError> {
        request.check(PIXELS_PER_LATENT)?;
        let Some(text) = &mut self.text else {
            let reason = "the model's folder has none, so a prompt cannot be embedded";
            return Err(DiffusionError::unsupported("text_encoder", reason));
        };
        let (embedded, cut) = text.embed(&request.prompt)?;
        let painted = self.inpaint_embedded(request, &embedded, noise, watch)?;
        Ok(Painted { prompt_tokens_cut: cut, ..painted })
    }

    /// The same with a prompt that is embedded already, `[1, length, size]`; the request's own is not looked at.
    ///
    /// # Errors
    /// As [`Self::inpaint`].
    pub fn inpaint_embedded(
        &mut self,
        request: &Request,
        embedded: &ArrayD<f32>,
        noise: &mut dyn NoiseSource,
        watch: &mut Watch<'_>,
    ) -> Result<Painted, DiffusionError> {
        request.check(PIXELS_PER_LATENT)?;
        if request.steps > MOST_STEPS {
            let text = format!("{} steps are more than {MOST_STEPS}", request.steps);
            return Err(DiffusionError::Request(text));
        }
        let (rows, columns) = request.mask.dim();
        let (height, width) = (rows / PIXELS_PER_LATENT, columns / PIXELS_PER_LATENT);
        let sigmas = self.scheduler.sigmas(height * width, request.steps);
        let timesteps = self.scheduler.timesteps(&sigmas);
        let first = flow::start_index(request.steps, request.strength);
        if first >= request.steps {
            let Request { strength, steps, .. } = request;
            let text = format!("a strength of {strength} leaves none of {steps} steps");
            return Err(DiffusionError::Request(text));
        }
        let encoded = self.encoder.run(&picture::to_tensor(&request.image), height, width)?;
        let drawn = draw(noise, encoded.shape())?;
        let (clean, noise) = (packed(&encoded), packed(&drawn));
        let mask = picture::shrink_softly(&request.mask, height, width);

        let mut latents = between(&clean, &noise, sigmas[first]);
        for index in first..request.steps {
            let (sigma, next) = (sigmas[index], sigmas[index + 1]);
            // However many timesteps the training counted, the net is told a thousandth of them.
            let told = (timesteps[index] / 1000.0) as f32;
            let velocity =
                self.transformer.run(&latents, &clean, (height, width), embedded, told)?;
            // Outside the mask is what the picture would be with the noise that is left.
            let kept = between(&clean, &noise, next);
            step(&mut latents, &velocity, next - sigma, &kept, &mask);
            let (index, of) = (index - first, request.steps - first);
            if watch(StepReport { index, of, latents: latents.view().into_dyn() }).is_break() {
                return Err(DiffusionError::Cancelled);
            }
        }
        let image = self.decoder.run(&unpacked(&latents, height, width))?;
        Ok(Painted { image, prompt_tokens_cut: 0, negative_tokens_cut: 0 })
    }
}

/// A model that is not distilled needs guidance, which would be left out in silence.
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
            "`is_distilled` is not true: the model needs guidance, which is implemented for distilled models only",
        )),
    }
}

/// `[1, channels, height, width]` to `[1, height * width, channels]`.
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

/// The point of the straight line from picture to noise.
fn between(clean: &Array3<f32>, noise: &Array3<f32>, sigma: f64) -> Array3<f32> {
    let mut point = clean.clone();
    point.zip_mut_with(noise, |value, noise| {
        *value = ((1.0 - sigma) * f64::from(*value) + sigma * f64::from(*noise)) as f32;
    });
    point
}

/// One step along the velocity inside the mask, and what is kept outside.
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

/// What a net gave, with three axes.
fn three_axes(made: ArrayD<f32>, part: &'static str) -> Result<Array3<f32>, DiffusionError> {
    made.into_dimensionality::<Ix3>()
        .map_err(|error| DiffusionError::unsupported(part, format!("gives another shape: {error}")))
}
