//! Stable Diffusion inpainting: the text encoder, nine-channel UNet and autoencoder that diffusers or optimum export,
//! and the denoising loop (`StableDiffusionInpaintPipeline` of diffusers 0.42).
//!
//! SDXL inpainting differs in the inputs of its UNet (`StableDiffusionXLInpaintPipeline`): the hidden states of two
//! text encoders, the pooled output of the second, and the sizes of the picture. A model whose UNet takes these
//! inputs is one of SDXL.
//!
//! One deliberate difference from diffusers: it uses the mean of the autoencoder's distribution instead of a sample, so
//! that a seed gives the same picture everywhere.

mod batch;
mod config;
mod ports;
mod text;
mod unet;
mod vae;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ndarray::{Array3, Array4, Axis, concatenate};
use serde_json::{Map, Value};

pub use self::batch::BatchItem;
use self::batch::{Begun, Line, line};
use self::config::{config, level_scale, scaling_factor};
pub(super) use self::text::EmbeddedTexts;
use self::text::TextEncoders;
pub(super) use self::unet::Guide;
use self::unet::{Condition, Unet};
use self::vae::{LATENT_CHANNELS, VaeDecoder, VaeEncoder};
use super::error::DiffusionError;
use super::json;
use super::noise::{NoiseSource, draw};
use super::picture;
use super::recent_texts::RecentTexts;
use super::request::{Generated, Request, StepCallback};
use super::scheduler::{self, Scheduler};
use super::scheduler_config::{ModelScheduler, SchedulerConfig};
use crate::session::Runtime;

/// Maximum number of windows per text. A prompt of 500 characters has about 120 tokens in English; in other scripts a
/// character may take several.
const MAX_WINDOWS: usize = 4;

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
    /// UNet without nine channels, a refiner, an autoencoder that samples.
    pub fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let scheduler = ModelScheduler::read(folder, None)?.config;
        Self::open_with(folder, scheduler, runtime)
    }

    /// Like [`Self::open`], but with this scheduler; the folder's scheduler is not read.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub fn open_with(
        folder: &Path,
        scheduler: SchedulerConfig,
        runtime: &Runtime,
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
        let unet = Unet::open(folder, runtime, &unet_config)?;
        check_second_encoder(folder, &index, unet.is_sdxl())?;
        let texts = if unet.is_sdxl() {
            TextEncoders::open_sdxl(folder, &index, runtime)?
        } else {
            TextEncoders::open(folder, runtime)?
        };
        let vae_scale = level_scale(&vae_config).unwrap_or(8);
        Ok(Self {
            texts,
            recent: RecentTexts::new(),
            scaling_factor: scaling_factor(&vae_config, unet.is_sdxl())?,
            unet,
            vae_encoder: VaeEncoder::open(folder, runtime)?,
            vae_decoder: VaeDecoder::open(folder, runtime)?,
            scheduler,
            vae_scale,
            // Exported graphs do not crop sizes that a deeper level has rounded up.
            size_multiple: vae_scale * level_scale(&unet_config).unwrap_or(8),
        })
    }

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

    pub const fn is_sdxl(&self) -> bool {
        self.unet.is_sdxl()
    }

    /// Returns how long each net has run since it was opened ([`super::net::Net::run_time`]), starting with the UNet.
    /// `text_encoder` counts both encoders of SDXL.
    pub fn run_times(&self) -> [(&'static str, Duration); 4] {
        [
            (self.unet.net.part(), self.unet.net.run_time()),
            ("text_encoder", self.texts.run_time()),
            (self.vae_encoder.net.part(), self.vae_encoder.net.run_time()),
            (self.vae_decoder.net.part(), self.vae_decoder.net.run_time()),
        ]
    }

    /// Returns the number of sets of shapes whose tensors the UNet keeps on the device.
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
        self.inpaint_together(vec![BatchItem { request, noise, on_step }], &|| {}).remove(0)
    }

    /// Returns whether several pictures can go through the UNet together.
    pub fn takes_batches(&self) -> bool {
        self.unet.takes_batches()
    }

    /// Repaints the masked parts of several pictures, as [`Self::inpaint`] does with each. The results have the same order.
    /// All must have the same size, number of steps, first step, and number of [windows](Self::windows). Calls `heartbeat`
    /// after the encoding and the decoding of each picture: for a large batch, these take longer than a step.
    pub fn inpaint_together(
        &mut self,
        items: Vec<BatchItem<'_>>,
        heartbeat: &dyn Fn(),
    ) -> Vec<Result<Generated, DiffusionError>> {
        let mut ended = BTreeMap::new();
        let mut going = Vec::new();
        let line = items.first().map(|item| line(item.request));
        for (place, item) in items.into_iter().enumerate() {
            match self.begin(place, item, line) {
                Ok(begun) => going.push(begun),
                Err(error) => drop(ended.insert(place, Err(error))),
            }
            heartbeat();
        }
        let denoised = self.denoise(&mut going, &mut ended);
        for begun in going {
            let made = denoised.clone().and_then(|()| self.finish(&begun));
            ended.insert(begun.place, made);
            heartbeat();
        }
        ended.into_values().collect()
    }

    fn begin<'a>(
        &mut self,
        place: usize,
        item: BatchItem<'a>,
        expected: Option<Line>,
    ) -> Result<Begun<'a>, DiffusionError> {
        let request = item.request;
        request.check(self.size_multiple)?;
        let line = line(request);
        if expected != Some(line) {
            let text = format!("a painting of {line:?} is not in line with the first of its batch");
            return Err(DiffusionError::Request(text));
        }
        let (_, steps, first) = line;
        let schedule = scheduler::schedule(&self.scheduler, steps, request.eta, first)?;
        if first >= schedule.timesteps().len() {
            let text = format!("strength {} leaves no step of {steps}", request.strength);
            return Err(DiffusionError::Request(text));
        }
        let is_guided = self.is_guided(request.guidance);
        let negative = is_guided.then(|| request.negative_prompt.clone());
        let most = self.most_windows();
        let texts = self.recent.get_or_embed(
            (negative, request.prompt.clone()),
            |(negative, prompt)| {
                let embedded = self.texts.embed(negative.as_deref(), prompt, most)?;
                let bytes = embedded.bytes();
                Ok::<_, DiffusionError>((embedded, bytes))
            },
        )?;
        let fixed = self.fixed_channels(request)?;
        let latents = self.first_latents(request, schedule.as_ref(), first, item.noise)?;
        Ok(Begun { place, item, first, schedule, texts, fixed, latents })
    }

    /// Takes all steps. A painting that fails or is canceled moves from `going` to `ended`.
    ///
    /// # Errors
    /// If the net fails for the whole batch.
    fn denoise(
        &mut self,
        going: &mut Vec<Begun<'_>>,
        ended: &mut BTreeMap<usize, Result<Generated, DiffusionError>>,
    ) -> Result<(), DiffusionError> {
        let Some(Begun { first, schedule, item, .. }) = going.first() else { return Ok(()) };
        let size = item.request.mask.dim();
        let timesteps: Vec<_> = schedule.timesteps().iter().copied().enumerate().collect();
        let mut left = timesteps.into_iter().skip(*first).peekable();
        while left.peek().is_some() && !going.is_empty() {
            let guides: Vec<_> = going.iter().map(Begun::guide).collect();
            let mut condition = self.condition(&guides, size)?;
            let together = going.len();
            while going.len() == together
                && let Some((index, timestep)) = left.next()
            {
                let scaled: Vec<_> = going.iter().map(|begun| begun.scaled(index)).collect();
                let made = self.predict(&scaled, timestep as f32, &mut condition)?;
                let mut made = made.into_iter();
                going.retain_mut(|begun| {
                    let predicted = made.next().expect("each painting gets its prediction");
                    match predicted.and_then(|predicted| begun.step(index, &predicted)) {
                        Ok(()) => true,
                        Err(error) => {
                            ended.insert(begun.place, Err(error));
                            false
                        }
                    }
                });
            }
        }
        Ok(())
    }

    fn finish(&mut self, begun: &Begun<'_>) -> Result<Generated, DiffusionError> {
        let image = self.decode(&begun.latents)?;
        Ok(Generated { image, prompt_tokens_cut: begun.texts.cut })
    }

    /// Returns how many windows a text may have.
    fn most_windows(&self) -> usize {
        if self.unet.takes_long_texts() { MAX_WINDOWS } else { 1 }
    }

    /// Returns whether the net is also run with the negative prompt.
    const fn is_guided(&self, guidance: f32) -> bool {
        guidance > 1.0 && !self.unet.takes_guidance()
    }

    /// Returns how many windows of the text encoder a request takes. In a batch, all must take the same.
    ///
    /// # Errors
    /// [`DiffusionError::Request`] if a text cannot be encoded.
    pub fn windows(
        &self,
        negative: &str,
        prompt: &str,
        guidance: f32,
    ) -> Result<usize, DiffusionError> {
        let negative = self.is_guided(guidance).then_some(negative);
        self.texts.windows(negative, prompt, self.most_windows())
    }

    /// Embeds the negative prompt, if given, and the prompt, one row of one window each.
    pub(super) fn embed(
        &mut self,
        negative: Option<&str>,
        prompt: &str,
    ) -> Result<EmbeddedTexts, DiffusionError> {
        self.texts.embed(negative, prompt, 1)
    }

    /// Returns the ids of a text's first window for the first text encoder, and for the second one if there is one.
    pub(super) fn tokens(&self, text: &str) -> Result<Vec<Vec<i64>>, DiffusionError> {
        let tokens = self.texts.tokens(text, 1)?;
        Ok(tokens.into_iter().flat_map(|tokens| tokens.windows).collect())
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

    /// Returns the inputs of the UNet that are the same in every step, for pictures of `size` (height, width in
    /// pixels).
    pub(super) fn condition(
        &mut self,
        guides: &[Guide<'_>],
        size: (usize, usize),
    ) -> Result<Condition, DiffusionError> {
        self.unet.condition(guides, size)
    }

    /// Returns the prediction of the UNet for the latents of each painting ([`Unet::predict`]).
    pub(super) fn predict(
        &mut self,
        latents: &[Array4<f32>],
        timestep: f32,
        condition: &mut Condition,
    ) -> Result<Vec<Result<Array4<f32>, DiffusionError>>, DiffusionError> {
        self.unet.predict(latents, timestep, condition)
    }
}

/// Refuses a folder with the parts of SDXL but another UNet, and the other way around.
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
