//! The four nets of Stable Diffusion inpainting. Inputs and outputs are read from the graphs; an unsupported input is
//! refused by name.

use std::path::Path;

use ndarray::{Array2, Array3, Array4, ArrayD, Ix4, IxDyn, s};
use serde_json::{Map, Value};

use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Input, Net, Opener, Port};
use crate::diffusion::picture;
use crate::diffusion::tokenizer::Tokens;

/// The channels of latents.
pub(super) const LATENT_CHANNELS: usize = 4;

/// The input channels of an inpainting `UNet`: latents, the mask, and the latents of the unmasked part.
const UNET_CHANNELS: usize = LATENT_CHANNELS + 1 + LATENT_CHANNELS;

pub(super) struct TextEncoder {
    pub(super) net: Net,
    ids: Port,
    states: Port,
}

impl TextEncoder {
    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "text_encoder", opener)?;
        let ids = only_input(&net, "integer ids [texts, length]", |port| {
            port.element.is_integer() && port.rank() == 2
        })?;
        let is_states = |port: &&Port| port.element.is_float() && port.rank() == 3;
        let states = net
            .outputs()
            .iter()
            .filter(is_states)
            .find(|port| port.name == "last_hidden_state")
            .or_else(|| net.outputs().iter().find(is_states))
            .cloned()
            .ok_or_else(|| {
                let reason = "returns no hidden states: no output has three axes";
                DiffusionError::unsupported("text_encoder", reason)
            })?;
        Ok(Self { net, ids, states })
    }

    /// Returns the number of ids per text, if the graph fixes it.
    pub(super) fn length(&self) -> Option<usize> {
        self.ids.size(1)
    }

    pub(super) fn run(&mut self, texts: &[&Tokens]) -> Result<ArrayD<f32>, DiffusionError> {
        let length = texts.first().map_or(0, |tokens| tokens.ids.len());
        let ids = Array2::from_shape_fn((texts.len(), length), |(text, at)| texts[text].ids[at]);
        self.net.run(&[(&self.ids, Input::Integers(ids.view().into_dyn()))], &self.states)
    }
}

pub(super) struct Unet {
    pub(super) net: Net,
    sample: Port,
    timestep: Port,
    states: Port,
    /// The input for guidance and its length, if the net was distilled with guidance.
    guidance: Option<(Port, usize)>,
    output: Port,
}

impl Unet {
    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
        config: &Map<String, Value>,
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "unet", opener)?;
        let (mut sample, mut timestep, mut states, mut guidance) = (None, None, None, None);
        for port in net.inputs().iter().cloned() {
            let slot = match (port.name.as_str(), port.rank()) {
                ("timestep_cond", _) => &mut guidance,
                ("timestep" | "t", _) => &mut timestep,
                ("encoder_hidden_states", _) => &mut states,
                ("text_embeds" | "time_ids", _) => {
                    let reason = format!(
                        "requires the input `{}` of SDXL, which this pipeline does not support",
                        port.name
                    );
                    return Err(DiffusionError::unsupported("unet", reason));
                }
                (_, 4) if sample.is_none() => &mut sample,
                (name, _) => {
                    let reason = format!("requires the unknown input `{name}`");
                    return Err(DiffusionError::unsupported("unet", reason));
                }
            };
            *slot = Some(port);
        }
        let sample = required(sample, "four-axis sample")?;
        check_channels(&sample, config)?;
        let guidance = guidance.map(|port| guidance_port(port, config)).transpose()?;
        let output = only_output(&net)?;
        Ok(Self {
            net,
            sample,
            timestep: required(timestep, "`timestep`")?,
            states: required(states, "`encoder_hidden_states`")?,
            guidance,
            output,
        })
    }

    /// Returns whether guidance is an input of the net, which saves the run of the negative prompt.
    pub(super) const fn takes_guidance(&self) -> bool {
        self.guidance.is_some()
    }

    pub(super) fn run(
        &mut self,
        sample: Array4<f32>,
        timestep: f32,
        states: &ArrayD<f32>,
        guidance: f32,
    ) -> Result<Array4<f32>, DiffusionError> {
        let rows = sample.dim().0;
        let shape: &[usize] = match self.timestep.rank() {
            0 => &[],
            _ => &[self.timestep.size(0).unwrap_or(1)],
        };
        let timestep = ArrayD::from_elem(IxDyn(shape), timestep);
        let sample = sample.into_dyn();
        let embedding = self.guidance.as_ref().map(|(port, size)| {
            let numbers = guidance_embedding(guidance, *size);
            (port, ArrayD::from_shape_fn(IxDyn(&[rows, *size]), |at| numbers[at[1]]))
        });
        let mut inputs = vec![
            (&self.sample, Input::Floats(sample.view())),
            (&self.timestep, Input::Floats(timestep.view())),
            (&self.states, Input::Floats(states.view())),
        ];
        if let Some((port, numbers)) = &embedding {
            inputs.push((*port, Input::Floats(numbers.view())));
        }
        let made = self.net.run(&inputs, &self.output)?;
        let expected = [rows, LATENT_CHANNELS, sample.shape()[2], sample.shape()[3]];
        four_axes(made, "unet", &expected)
    }
}

fn check_channels(sample: &Port, config: &Map<String, Value>) -> Result<(), DiffusionError> {
    let declared = config.get("in_channels").and_then(Value::as_u64).map(|count| count as usize);
    let reason = match sample.size(1).or(declared) {
        Some(UNET_CHANNELS) | None => return Ok(()),
        Some(4) => {
            "takes 4 channels, so it was not trained with a mask; an inpainting UNet takes 9"
                .to_owned()
        }
        Some(other) => format!("takes {other} channels; an inpainting UNet takes 9"),
    };
    Err(DiffusionError::unsupported("unet", reason))
}

fn guidance_port(port: Port, config: &Map<String, Value>) -> Result<(Port, usize), DiffusionError> {
    let declared =
        config.get("time_cond_proj_dim").and_then(Value::as_u64).map(|size| size as usize);
    match port.size(1).or(declared) {
        Some(size) if size >= 4 => Ok((port, size)),
        _ => {
            let reason = "requires `timestep_cond`, but its length is missing: the graph leaves it open, and \
                          config.json has no `time_cond_proj_dim`";
            Err(DiffusionError::unsupported("unet", reason))
        }
    }
}

/// Embeds guidance in sines and cosines for a net that was distilled with guidance (diffusers'
/// `get_guidance_scale_embedding`).
fn guidance_embedding(guidance: f32, size: usize) -> Vec<f32> {
    let half = size / 2;
    let slope = 10_000.0_f32.ln() / (half - 1) as f32;
    let wave = |index: usize| (guidance - 1.0) * 1000.0 * (-(index as f32) * slope).exp();
    let sines = (0..half).map(|index| wave(index).sin());
    let cosines = (0..half).map(|index| wave(index).cos());
    let mut numbers: Vec<f32> = sines.chain(cosines).collect();
    numbers.resize(size, 0.0);
    numbers
}

pub(super) struct VaeEncoder {
    pub(super) net: Net,
    pixels: Port,
    output: Port,
}

impl VaeEncoder {
    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_encoder", opener)?;
        let pixels = only_input(&net, "a picture with four axes", |port| port.rank() == 4)?;
        let output = only_output(&net)?;
        let is_sampled = match output.size(1) {
            Some(channels) => channels == LATENT_CHANNELS,
            None => output.name == "latent_sample",
        };
        if is_sampled {
            return Err(sampled(&output.name));
        }
        Ok(Self { net, pixels, output })
    }

    /// Returns the mean of the latents.
    pub(super) fn run(&mut self, pixels: &Array4<f32>) -> Result<Array4<f32>, DiffusionError> {
        let given = Input::Floats(pixels.view().into_dyn());
        let made = self.net.run(&[(&self.pixels, given)], &self.output)?;
        let parameters = made.into_dimensionality::<Ix4>().map_err(|error| {
            DiffusionError::unsupported("vae_encoder", format!("returned another shape: {error}"))
        })?;
        match parameters.dim().1 {
            // The mean, then the logarithm of the variance.
            channels if channels == 2 * LATENT_CHANNELS => {
                Ok(parameters.slice(s![.., ..LATENT_CHANNELS, .., ..]).to_owned())
            }
            LATENT_CHANNELS => Err(sampled(&self.output.name)),
            other => {
                let reason =
                    format!("returned {other} channels instead of {}", 2 * LATENT_CHANNELS);
                Err(DiffusionError::unsupported("vae_encoder", reason))
            }
        }
    }
}

fn sampled(name: &str) -> DiffusionError {
    let reason = format!(
        "returns `{name}`, latents that the graph samples itself, so that a seed would not give the same picture \
         twice; export it with optimum, which returns `latent_parameters`"
    );
    DiffusionError::unsupported("vae_encoder", reason)
}

pub(super) struct VaeDecoder {
    pub(super) net: Net,
    latents: Port,
    output: Port,
}

impl VaeDecoder {
    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_decoder", opener)?;
        let is_latents = |port: &Port| {
            port.rank() == 4 && port.size(1).is_none_or(|size| size == LATENT_CHANNELS)
        };
        let latents = only_input(&net, "latents with four channels", is_latents)?;
        let output = only_output(&net)?;
        Ok(Self { net, latents, output })
    }

    pub(super) fn run(&mut self, latents: &Array4<f32>) -> Result<Array3<f32>, DiffusionError> {
        picture::decode(&mut self.net, &self.latents, &self.output, latents)
    }
}

fn required(port: Option<Port>, what: &str) -> Result<Port, DiffusionError> {
    port.ok_or_else(|| DiffusionError::unsupported("unet", format!("has no {what} input")))
}

/// Returns the only input of a net.
fn only_input(
    net: &Net,
    what: &str,
    is_right: impl Fn(&Port) -> bool,
) -> Result<Port, DiffusionError> {
    match net.inputs() {
        [port] if is_right(port) => Ok(port.clone()),
        others => {
            let names: Vec<_> = others.iter().map(|port| format!("`{}`", port.name)).collect();
            let reason = format!("takes {}, but must take only {what}", names.join(", "));
            Err(DiffusionError::unsupported(net.part(), reason))
        }
    }
}

/// Returns the first output with floats and four axes.
fn only_output(net: &Net) -> Result<Port, DiffusionError> {
    let output = net.outputs().iter().find(|port| port.element.is_float() && port.rank() == 4);
    output.cloned().ok_or_else(|| {
        DiffusionError::unsupported(net.part(), "has no floating-point output with four axes")
    })
}

fn four_axes(
    made: ArrayD<f32>,
    part: &'static str,
    expected: &[usize],
) -> Result<Array4<f32>, DiffusionError> {
    if made.shape() != expected {
        let reason = format!("returned shape {:?} instead of {expected:?}", made.shape());
        return Err(DiffusionError::unsupported(part, reason));
    }
    made.into_dimensionality::<Ix4>()
        .map_err(|error| DiffusionError::unsupported(part, error.to_string()))
}
