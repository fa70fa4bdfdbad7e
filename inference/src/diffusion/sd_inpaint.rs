//! Stable Diffusion inpainting: the text encoder, nine-channel `UNet` and autoencoder that diffusers or optimum export,
//! and the denoising loop (`StableDiffusionInpaintPipeline` of diffusers 0.42).
//!
//! SDXL inpainting differs in the inputs of its `UNet` (`StableDiffusionXLInpaintPipeline`): the hidden states of two
//! text encoders, the pooled output of the second, and the sizes of the picture. A model whose `UNet` takes these
//! inputs is one of SDXL.
//!
//! One deliberate difference from diffusers: it uses the mean of the autoencoder's distribution instead of a sample, so
//! that a seed gives the same picture everywhere.

mod config;
mod ports;
mod text;
mod unet;
mod vae;

use std::path::Path;
use std::time::Duration;

use ndarray::{Array3, Array4, Axis, concatenate};
use serde_json::{Map, Value};

use self::config::{config, level_scale, scaling_factor};
pub(super) use self::text::EmbeddedTexts;
use self::text::TextEncoders;
use self::unet::{Condition, Unet};
use self::vae::{LATENT_CHANNELS, VaeDecoder, VaeEncoder};
use super::error::DiffusionError;
use super::json;
use super::net::Opener;
use super::noise::{NoiseSource, draw};
use super::picture;
use super::recent_texts::RecentTexts;
use super::request::{Generated, Request, StepCallback, StepState};
use super::scheduler::{self, Scheduler};
use super::scheduler_config::{ModelScheduler, SchedulerConfig};
use super::tokenizer::Tokens;

/// An opened Stable Diffusion inpainting model.
pub struct SdInpaint {
    texts: TextEncoders,
    recent: RecentTexts<EmbeddedTexts>,
    unet: Unet,
    vae_encoder: VaeEncoder,
    vae_decoder: VaeDecoder,
    scheduler: SchedulerConfig,
    /// Pixels per latent, along each side.
    vae_scale: usize,
    /// The factor that gives latents a variance of about 1.
    scaling_factor: f32,
    size_multiple: usize,
}

impl SdInpaint {
    /// Opens a folder with `model_index.json`, `scheduler/`, `tokenizer/`, and `text_encoder/`, `unet/`, `vae_encoder/`
    /// and `vae_decoder/` with a `model.onnx` each; for SDXL also `tokenizer_2/` and `text_encoder_2/`. The inputs and
    /// outputs are read from the graphs: names, element types (floats of 32 or 16 bits, ids of 64 or 32), `timestep` as
    /// a scalar or an array, and `timestep_cond` if the net was distilled with guidance.
    ///
    /// # Errors
    /// If a file is missing or broken, a scheduler setting is not implemented, or a net is of an unsupported kind: a
    /// `UNet` without nine channels, a refiner, an autoencoder that samples.
    pub fn open(folder: &Path, opener: &(impl Opener + ?Sized)) -> Result<Self, DiffusionError> {
        let scheduler = ModelScheduler::read(folder, None)?.config;
        Self::open_with(folder, scheduler, opener)
    }

    /// Like [`Self::open`], but with this scheduler; that of the folder is not read.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub fn open_with(
        folder: &Path,
        scheduler: SchedulerConfig,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let index = json::read_object(&folder.join("model_index.json"))?;
        let vae_config = config(folder, &["vae_decoder", "vae_encoder", "vae"])?;
        let unet_config = config(folder, &["unet"])?;
        for shift in ["shift_factor", "latents_mean", "latents_std"] {
            if vae_config.get(shift).is_some_and(|value| !value.is_null()) {
                let reason = format!("`{shift}` in config.json is not implemented");
                return Err(DiffusionError::unsupported("vae_decoder", reason));
            }
        }
        let unet = Unet::open(folder, opener, &unet_config)?;
        check_second_encoder(folder, &index, unet.is_sdxl())?;
        let texts = if unet.is_sdxl() {
            TextEncoders::open_sdxl(folder, &index, opener)?
        } else {
            TextEncoders::open(folder, opener)?
        };
        let vae_scale = level_scale(&vae_config).unwrap_or(8);
        Ok(Self {
            texts,
            recent: RecentTexts::new(),
            scaling_factor: scaling_factor(&vae_config, unet.is_sdxl())?,
            unet,
            vae_encoder: VaeEncoder::open(folder, opener)?,
            vae_decoder: VaeDecoder::open(folder, opener)?,
            scheduler,
            vae_scale,
            // Exported graphs do not crop sizes that a deeper level has rounded up.
            size_multiple: vae_scale * level_scale(&unet_config).unwrap_or(8),
        })
    }

    /// Replaces the model's scheduler.
    pub fn set_scheduler(&mut self, scheduler: SchedulerConfig) {
        self.scheduler = scheduler;
    }

    /// Returns the number of pixels that width and height must be multiples of.
    pub const fn size_multiple(&self) -> usize {
        self.size_multiple
    }

    /// Returns the factor that gives latents a variance of about 1.
    pub const fn scaling_factor(&self) -> f32 {
        self.scaling_factor
    }

    /// Returns whether the model is one of SDXL.
    pub const fn is_sdxl(&self) -> bool {
        self.unet.is_sdxl()
    }

    /// Returns how long each net has run since it was opened ([`super::net::Net::run_time`]), starting with the `UNet`.
    /// `text_encoder` counts both encoders of SDXL.
    pub fn run_times(&self) -> [(&'static str, Duration); 4] {
        [
            (self.unet.net.part(), self.unet.net.run_time()),
            ("text_encoder", self.texts.run_time()),
            (self.vae_encoder.net.part(), self.vae_encoder.net.run_time()),
            (self.vae_decoder.net.part(), self.vae_decoder.net.run_time()),
        ]
    }

    /// Returns the number of sets of shapes whose tensors the `UNet` keeps on the device.
    pub fn kept_shapes(&self) -> usize {
        self.unet.net.kept_shapes()
    }

    /// Repaints the masked part of a picture. Draws from `noise` once, and once more per step if the scheduler adds
    /// noise. Calls `on_step` after each step, which may end the run.
    ///
    /// # Errors
    /// [`DiffusionError::Request`] if the request is invalid for this model, [`DiffusionError::Canceled`] if `on_step`
    /// ends the run, others if a net or the noise source fails.
    pub fn inpaint(
        &mut self,
        request: &Request,
        noise: &mut dyn NoiseSource,
        on_step: &mut StepCallback<'_>,
    ) -> Result<Generated, DiffusionError> {
        request.check(self.size_multiple)?;
        let first = scheduler::start_index(request.steps, request.strength);
        let mut schedule = scheduler::schedule(&self.scheduler, request.steps, request.eta, first)?;
        if first >= schedule.timesteps().len() {
            let Request { strength, steps, .. } = request;
            let text = format!("strength {strength} leaves no step of {steps}");
            return Err(DiffusionError::Request(text));
        }
        let is_guided = request.guidance > 1.0 && !self.unet.takes_guidance();
        let negative = is_guided.then(|| request.negative_prompt.clone());
        let embedded = self.recent.get_or_embed(
            (negative, request.prompt.clone()),
            |(negative, prompt)| {
                let embedded = self.texts.embed(negative.as_deref(), prompt)?;
                let bytes = embedded.bytes();
                Ok::<_, DiffusionError>((embedded, bytes))
            },
        )?;
        let fixed = self.fixed_channels(request)?;
        let mut condition =
            self.condition(&embedded, request.mask.dim(), request.guidance, &fixed)?;

        let mut latents = self.first_latents(request, schedule.as_ref(), first, noise)?;
        let total = schedule.timesteps().len() - first;
        for index in first..schedule.timesteps().len() {
            let timestep = schedule.timesteps()[index] as f32;
            let scale = schedule.input_scale(index);
            let scaled = latents.mapv(|value| (f64::from(value) * scale) as f32);
            let predicted = self.predict(&scaled, timestep, &mut condition)?;
            let fresh = if schedule.draws_noise(index) {
                Some(draw(noise, latents.shape())?)
            } else {
                None
            };
            latents = schedule.step(index, &latents, &predicted, fresh.as_ref());
            let state =
                StepState { index: index - first, total, latents: latents.view().into_dyn() };
            if on_step(state).is_break() {
                return Err(DiffusionError::Canceled);
            }
        }
        Ok(Generated {
            image: self.decode(&latents)?,
            prompt_tokens_cut: embedded.cut.last().copied().unwrap_or(0),
            negative_tokens_cut: if is_guided { embedded.cut[0] } else { 0 },
        })
    }

    /// Embeds the negative prompt, if given, and the prompt, one row each.
    pub(super) fn embed(
        &mut self,
        negative: Option<&str>,
        prompt: &str,
    ) -> Result<EmbeddedTexts, DiffusionError> {
        self.texts.embed(negative, prompt)
    }

    /// Returns a text's ids for the first text encoder, and for the second one if there is one.
    pub(super) fn tokens(&self, text: &str) -> Result<Vec<Tokens>, DiffusionError> {
        self.texts.tokens(text)
    }

    /// Returns the five channels that stay the same in every step: the mask, and the latents of the picture without the
    /// masked part.
    pub(super) fn fixed_channels(
        &mut self,
        request: &Request,
    ) -> Result<Array4<f32>, DiffusionError> {
        let mask = picture::mask_to_latents(&request.mask, self.vae_scale, request.mask_to_latents);
        let pixels = picture::to_tensor(&request.image);
        let kept = self.encode(&picture::without_masked(&pixels, &request.mask))?;
        joined(&[&mask, &kept])
    }

    /// Returns the latents of a picture.
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

    /// Returns what the `UNet` takes in every step for a picture of `size` (height, width in pixels).
    pub(super) fn condition(
        &mut self,
        embedded: &EmbeddedTexts,
        size: (usize, usize),
        guidance: f32,
        fixed: &Array4<f32>,
    ) -> Result<Condition, DiffusionError> {
        self.unet.condition(embedded, size, guidance, fixed)
    }

    /// Runs the `UNet` on latents. With two rows of text, applies guidance away from the negative prompt.
    pub(super) fn predict(
        &mut self,
        latents: &Array4<f32>,
        timestep: f32,
        condition: &mut Condition,
    ) -> Result<Array4<f32>, DiffusionError> {
        let made = self.unet.run(latents, timestep, condition)?;
        let mut halves = made.axis_iter(Axis(0));
        match (halves.next(), halves.next()) {
            (Some(negative), Some(prompt)) => {
                let guided = &negative + &((&prompt - &negative) * condition.guidance);
                Ok(guided.insert_axis(Axis(0)))
            }
            _ => Ok(made),
        }
    }
}

/// Refuses a folder with the parts of SDXL but another `UNet`, and the other way around.
fn check_second_encoder(
    folder: &Path,
    index: &Map<String, Value>,
    is_sdxl: bool,
) -> Result<(), DiffusionError> {
    const PART: &str = "text_encoder_2";
    // diffusers writes [null, null] for a part that the model does not have.
    let named = index.get(PART).and_then(Value::as_array);
    let is_named = named.is_some_and(|names| names.iter().any(|name| !name.is_null()));
    let is_there = folder.join(PART).is_dir();
    let reason = if is_sdxl && !is_there {
        "is missing: the UNet takes the `text_embeds` of SDXL, which has two text encoders. Adopt the whole export, \
         with text_encoder_2 and tokenizer_2"
    } else if !is_sdxl && (is_named || is_there) {
        "is not used: the UNet takes no `text_embeds` and `time_ids`, so it is not one of SDXL. Take all parts from the \
         same model"
    } else {
        return Ok(());
    };
    Err(DiffusionError::unsupported(PART, reason))
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
    let reason =
        format!("returned latents of shape {:?} instead of {:?}", image.shape(), noise.shape());
    Err(DiffusionError::unsupported("vae_encoder", reason))
}

/// Concatenates tensors along their channels.
fn joined(tensors: &[&Array4<f32>]) -> Result<Array4<f32>, DiffusionError> {
    let views: Vec<_> = tensors.iter().map(|tensor| tensor.view()).collect();
    concatenate(Axis(1), &views).map_err(|_| {
        let shapes: Vec<_> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
        let reason = format!("returned latents of another size than the mask: {shapes:?}");
        DiffusionError::unsupported("vae_encoder", reason)
    })
}
