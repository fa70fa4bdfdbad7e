//! Stable Diffusion inpainting: text encoder, nine-channel `UNet` and autoencoder, as diffusers or optimum export
//! them, and the loop between them (`StableDiffusionInpaintPipeline` of diffusers 0.42).
//!
//! One thing differs from diffusers on purpose: the autoencoder's mean is used, not a sample, so that a seed
//! gives the same picture everywhere.

mod parts;

use std::path::Path;
use std::time::Duration;

use ndarray::{Array3, Array4, ArrayD, Axis, concatenate};
use serde_json::{Map, Value};

use self::parts::{TextEncoder, Unet, VaeDecoder, VaeEncoder};
use super::error::DiffusionError;
use super::json;
use super::net::Opener;
use super::noise::{NoiseSource, draw};
use super::picture;
use super::request::{Painted, Request, StepReport, Watch};
use super::scheduler::{self, Scheduler};
use super::scheduler_config::SchedulerConfig;
use super::tokenizer::{ClipTokenizer, Tokens};

/// How many channels latents have.
const LATENT_CHANNELS: usize = 4;

/// A Stable Diffusion inpainting model, opened.
pub struct SdInpaint {
    tokenizer: ClipTokenizer,
    text_encoder: TextEncoder,
    unet: Unet,
    vae_encoder: VaeEncoder,
    vae_decoder: VaeDecoder,
    scheduler: SchedulerConfig,
    /// Pixels a latent, each way.
    vae_scale: usize,
    /// What latents are multiplied by to have a variance of about 1.
    scaling_factor: f32,
    size_multiple: usize,
}

impl SdInpaint {
    /// Opens a folder of `model_index.json`, `scheduler/`, `tokenizer/`, and `text_encoder/`, `unet/`,
    /// `vae_encoder/`, `vae_decoder/` with a `model.onnx` each. What the nets take and give is read from their
    /// graphs: names, element types (floats of 32 or 16 bits, ids of 64 or 32), `timestep` as scalar or not,
    /// `timestep_cond` where a net was distilled with guidance.
    ///
    /// # Errors
    /// When a file is missing or broken, a scheduler's setting is not implemented, or a net is of another kind:
    /// a `UNet` that does not take nine channels, one of SDXL, an autoencoder that samples.
    pub fn open(folder: &Path, opener: &(impl Opener + ?Sized)) -> Result<Self, DiffusionError> {
        json::read_object(&folder.join("model_index.json"))?;
        let scheduler = SchedulerConfig::read(&folder.join("scheduler/scheduler_config.json"))?;
        let text_config = config(folder, &["text_encoder"])?;
        let vae_config = config(folder, &["vae_decoder", "vae_encoder", "vae"])?;
        let unet_config = config(folder, &["unet"])?;
        let text_encoder = TextEncoder::open(folder, opener)?;
        let positions = text_encoder
            .length()
            .or_else(|| positive(&text_config, "max_position_embeddings"))
            .unwrap_or(77);
        let tokenizer = ClipTokenizer::open(&folder.join("tokenizer"), positions)?;
        for shift in ["shift_factor", "latents_mean", "latents_std"] {
            if vae_config.get(shift).is_some_and(|value| !value.is_null()) {
                let reason = format!("`{shift}` of config.json is not implemented");
                return Err(DiffusionError::unsupported("vae_decoder", reason));
            }
        }
        let vae_scale = halvings(&vae_config).unwrap_or(8);
        Ok(Self {
            tokenizer,
            text_encoder,
            unet: Unet::open(folder, opener, &unet_config)?,
            vae_encoder: VaeEncoder::open(folder, opener)?,
            vae_decoder: VaeDecoder::open(folder, opener)?,
            scheduler,
            vae_scale,
            scaling_factor: vae_config
                .get("scaling_factor")
                .and_then(Value::as_f64)
                .map_or(0.18215, |factor| factor as f32),
            // Exported graphs do not crop what a deeper level rounded up.
            size_multiple: vae_scale * halvings(&unet_config).unwrap_or(8),
        })
    }

    /// Puts another scheduler in place of the model's own.
    pub fn set_scheduler(&mut self, scheduler: SchedulerConfig) {
        self.scheduler = scheduler;
    }

    /// What width and height must be multiples of, in pixels.
    pub const fn size_multiple(&self) -> usize {
        self.size_multiple
    }

    /// What latents are multiplied by to have a variance of about 1.
    pub const fn scaling_factor(&self) -> f32 {
        self.scaling_factor
    }

    /// How long each net has run since it was opened ([`super::net::Net::ran`]), the one that every step runs first.
    pub const fn nets_ran(&self) -> [(&'static str, Duration); 4] {
        [
            (self.unet.net.part(), self.unet.net.ran()),
            (self.text_encoder.net.part(), self.text_encoder.net.ran()),
            (self.vae_encoder.net.part(), self.vae_encoder.net.ran()),
            (self.vae_decoder.net.part(), self.vae_decoder.net.ran()),
        ]
    }

    /// Repaints what the mask covers. `noise` is drawn from once, and once more for each step of a scheduler
    /// that adds noise; `watch` is told after each step and may end the run.
    ///
    /// # Errors
    /// [`DiffusionError::Request`] when the request makes no sense for this model,
    /// [`DiffusionError::Cancelled`] when `watch` said so, others when a net or the noise fails.
    pub fn inpaint(
        &mut self,
        request: &Request,
        noise: &mut dyn NoiseSource,
        watch: &mut Watch<'_>,
    ) -> Result<Painted, DiffusionError> {
        request.check(self.size_multiple)?;
        let first = scheduler::start_index(request.steps, request.strength);
        let mut schedule = scheduler::schedule(&self.scheduler, request.steps, request.eta, first)?;
        if first >= schedule.timesteps().len() {
            let Request { strength, steps, .. } = request;
            let text = format!("a strength of {strength} leaves none of {steps} steps");
            return Err(DiffusionError::Request(text));
        }
        let negative = self.tokenizer.encode(&request.negative_prompt)?;
        let prompt = self.tokenizer.encode(&request.prompt)?;
        let is_guided = request.guidance > 1.0 && !self.unet.knows_guidance();
        let texts: &[&Tokens] = if is_guided { &[&negative, &prompt] } else { &[&prompt] };
        let embedded = self.embed(texts)?;
        let fixed = self.fixed_channels(request)?;

        let mut latents = self.first_latents(request, schedule.as_ref(), first, noise)?;
        let of = schedule.timesteps().len() - first;
        for index in first..schedule.timesteps().len() {
            let timestep = schedule.timesteps()[index] as f32;
            let scale = schedule.input_scale(index);
            let scaled = latents.mapv(|value| (f64::from(value) * scale) as f32);
            let seen = joined(&[&scaled, &fixed])?;
            let predicted = self.predict(&seen, timestep, &embedded, request.guidance)?;
            let fresh = if schedule.draws_noise(index) {
                Some(draw(noise, latents.shape())?)
            } else {
                None
            };
            latents = schedule.step(index, &latents, &predicted, fresh.as_ref());
            let report =
                StepReport { index: index - first, of, latents: latents.view().into_dyn() };
            if watch(report).is_break() {
                return Err(DiffusionError::Cancelled);
            }
        }
        Ok(Painted {
            image: self.decode(&latents)?,
            prompt_tokens_cut: prompt.cut,
            negative_tokens_cut: if is_guided { negative.cut } else { 0 },
        })
    }

    /// The text encoder's hidden states, one row a text.
    pub(super) fn embed(&mut self, texts: &[&Tokens]) -> Result<ArrayD<f32>, DiffusionError> {
        self.text_encoder.run(texts)
    }

    pub(super) fn tokens(&self, text: &str) -> Result<Tokens, DiffusionError> {
        self.tokenizer.encode(text)
    }

    /// The five channels that no step changes: the mask, and the picture without what it covers.
    pub(super) fn fixed_channels(
        &mut self,
        request: &Request,
    ) -> Result<Array4<f32>, DiffusionError> {
        let mask = picture::mask_to_latents(&request.mask, self.vae_scale, request.mask_to_latents);
        let pixels = picture::to_tensor(&request.image);
        let kept = self.encode(&picture::without_masked(&pixels, &request.mask))?;
        joined(&[&mask, &kept])
    }

    /// A picture's latents.
    pub(super) fn encode(&mut self, pixels: &Array4<f32>) -> Result<Array4<f32>, DiffusionError> {
        let factor = self.scaling_factor;
        Ok(self.vae_encoder.run(pixels)?.mapv(|value| value * factor))
    }

    fn decode(&mut self, latents: &Array4<f32>) -> Result<Array3<f32>, DiffusionError> {
        self.vae_decoder.run(&latents.mapv(|value| value / self.scaling_factor))
    }

    fn first_latents(
        &mut self,
        request: &Request,
        schedule: &dyn Scheduler,
        first: usize,
        noise: &mut dyn NoiseSource,
    ) -> Result<Array4<f32>, DiffusionError> {
        let (height, width) = request.mask.dim();
        let shape = [1, LATENT_CHANNELS, height / self.vae_scale, width / self.vae_scale];
        let noise = draw(noise, &shape)?;
        if request.strength < 1.0 {
            let image = self.encode(&picture::to_tensor(&request.image))?;
            same_shape(&image, &noise)?;
            let (of_image, of_noise) = schedule.noise_mix(first);
            Ok(mixed(of_image, &image, of_noise, &noise))
        } else {
            let sigma = schedule.init_noise_sigma();
            Ok(noise.mapv(|value| (f64::from(value) * sigma) as f32))
        }
    }

    /// What the net makes of the nine channels, guided away from the negative prompt where there are two rows of
    /// text.
    pub(super) fn predict(
        &mut self,
        seen: &Array4<f32>,
        timestep: f32,
        embedded: &ArrayD<f32>,
        guidance: f32,
    ) -> Result<Array4<f32>, DiffusionError> {
        let rows = embedded.shape().first().copied().unwrap_or(0);
        let sample = joined_rows(seen, rows)?;
        let made = self.unet.run(sample, timestep, embedded, guidance)?;
        let mut halves = made.axis_iter(Axis(0));
        match (halves.next(), halves.next()) {
            (Some(negative), Some(prompt)) => {
                let guided = &negative + &((&prompt - &negative) * guidance);
                Ok(guided.insert_axis(Axis(0)))
            }
            _ => Ok(made),
        }
    }
}

fn mixed(a: f64, first: &Array4<f32>, b: f64, second: &Array4<f32>) -> Array4<f32> {
    let mut sum = first.clone();
    sum.zip_mut_with(second, |value, other| {
        *value = (a * f64::from(*value) + b * f64::from(*other)) as f32;
    });
    sum
}

fn same_shape(image: &Array4<f32>, noise: &Array4<f32>) -> Result<(), DiffusionError> {
    if image.dim() == noise.dim() {
        return Ok(());
    }
    let reason = format!("gave latents of {:?}, not {:?}", image.shape(), noise.shape());
    Err(DiffusionError::unsupported("vae_encoder", reason))
}

/// Tensors put together along their channels.
fn joined(tensors: &[&Array4<f32>]) -> Result<Array4<f32>, DiffusionError> {
    let views: Vec<_> = tensors.iter().map(|tensor| tensor.view()).collect();
    concatenate(Axis(1), &views).map_err(|_| {
        let shapes: Vec<_> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
        let reason = format!("gave latents of another size than the mask's: {shapes:?}");
        DiffusionError::unsupported("vae_encoder", reason)
    })
}

/// The same tensor `rows` times.
fn joined_rows(tensor: &Array4<f32>, rows: usize) -> Result<Array4<f32>, DiffusionError> {
    concatenate(Axis(0), &vec![tensor.view(); rows])
        .map_err(|error| DiffusionError::unsupported("text_encoder", error.to_string()))
}

/// The `config.json` of the first of these parts that has one; empty where none has.
fn config(folder: &Path, parts: &[&str]) -> Result<Map<String, Value>, DiffusionError> {
    let files = parts.iter().map(|part| folder.join(part).join("config.json"));
    match files.into_iter().find(|file| file.is_file()) {
        Some(file) => json::read_object(&file),
        None => Ok(Map::new()),
    }
}

fn positive(config: &Map<String, Value>, name: &str) -> Option<usize> {
    let number = config.get(name)?.as_u64()?;
    usize::try_from(number).ok().filter(|number| *number > 0)
}

/// How much smaller the innermost level is: each but the last halves.
fn halvings(config: &Map<String, Value>) -> Option<usize> {
    let levels = config.get("block_out_channels")?.as_array()?.len();
    (1..=8).contains(&levels).then(|| 1 << (levels - 1))
}
