//! The nine-channel `UNet` of Stable Diffusion and of SDXL. Its inputs are read from the graph; an unknown one is refused
//! by name.

use std::path::Path;

use ndarray::{Array4, ArrayD, IxDyn, arr0, s};
use serde_json::{Map, Value};

use super::ports::{four_axes, only_output};
use super::text::EmbeddedTexts;
use super::vae::LATENT_CHANNELS;
use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Input, Net, Opener, Port, Prepared};

/// The input channels of an inpainting `UNet`: latents, the mask, and the latents of the unmasked part.
const UNET_CHANNELS: usize = LATENT_CHANNELS + 1 + LATENT_CHANNELS;

/// The sizes that an SDXL net takes as inputs: height and width of the original, top and left of the crop, height and
/// width of the target.
const TIME_IDS: usize = 6;

pub(super) struct Unet {
    pub(super) net: Net,
    sample: Port,
    timestep: Port,
    states: Port,
    /// The input for guidance and its length, if the net was distilled with guidance.
    guidance: Option<(Port, usize)>,
    /// The inputs for the pooled text and the sizes, if the net is one of SDXL.
    sdxl: Option<SdxlPorts>,
    output: Port,
}

/// The inputs that only nets of SDXL have.
struct SdxlPorts {
    text_embeds: Port,
    time_ids: Port,
}

/// What the net takes in every step of a picture.
pub(in crate::diffusion) struct Condition {
    /// One row per text.
    rows: usize,
    pub(super) guidance: f32,
    inputs: Prepared,
}

impl Unet {
    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
        config: &Map<String, Value>,
    ) -> Result<Self, DiffusionError> {
        let net = Net::open_repeated(folder, "unet", opener)?;
        let (mut sample, mut timestep, mut states, mut guidance) = (None, None, None, None);
        let (mut text_embeds, mut time_ids) = (None, None);
        for port in net.inputs().iter().cloned() {
            let slot = match (port.name.as_str(), port.rank()) {
                ("timestep_cond", _) => &mut guidance,
                ("timestep" | "t", _) => &mut timestep,
                ("encoder_hidden_states", _) => &mut states,
                ("text_embeds", _) => &mut text_embeds,
                ("time_ids", _) => &mut time_ids,
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
        let sdxl = match (text_embeds, time_ids) {
            (Some(text_embeds), Some(time_ids)) => Some(SdxlPorts { text_embeds, time_ids }),
            (None, None) => None,
            (Some(_), None) => return Err(missing("`time_ids`, which goes with `text_embeds`,")),
            (None, Some(_)) => return Err(missing("`text_embeds`, which goes with `time_ids`,")),
        };
        if let Some(count) = sdxl.as_ref().and_then(|ports| ports.time_ids.size(1))
            && count != TIME_IDS
        {
            let reason = format!(
                "takes {count} `time_ids`, but SDXL's base and inpainting nets take {TIME_IDS}; a refiner is not supported"
            );
            return Err(DiffusionError::unsupported("unet", reason));
        }
        let output = only_output(&net)?;
        Ok(Self {
            net,
            sample,
            timestep: required(timestep, "`timestep`")?,
            states: required(states, "`encoder_hidden_states`")?,
            guidance,
            sdxl,
            output,
        })
    }

    /// Returns whether the net is one of SDXL, which takes pooled texts and sizes.
    pub(super) const fn is_sdxl(&self) -> bool {
        self.sdxl.is_some()
    }

    /// Returns whether guidance is an input of the net, which saves the run of the negative prompt.
    pub(super) const fn takes_guidance(&self) -> bool {
        self.guidance.is_some()
    }

    /// Returns the condition of texts, guidance, and a picture of `size` (height, width in pixels). `fixed` are the
    /// channels after the latents, `[1, 5, row, column]`.
    pub(super) fn condition(
        &mut self,
        texts: &EmbeddedTexts,
        size: (usize, usize),
        guidance: f32,
        fixed: &Array4<f32>,
    ) -> Result<Condition, DiffusionError> {
        let rows = texts.states.shape().first().copied().unwrap_or(0);
        let mut inputs = vec![(&self.states, floats(&texts.states))];
        let numbers = self.guidance.as_ref().map(|(port, size)| {
            let numbers = guidance_embedding(guidance, *size);
            (port, ArrayD::from_shape_fn(IxDyn(&[rows, *size]), |at| numbers[at[1]]))
        });
        if let Some((port, numbers)) = &numbers {
            inputs.push((port, floats(numbers)));
        }
        let sizes = time_ids(size);
        let sizes = ArrayD::from_shape_fn(IxDyn(&[rows, TIME_IDS]), |at| sizes[at[1]]);
        if let (Some(ports), Some(pooled)) = (&self.sdxl, &texts.pooled) {
            inputs.push((&ports.text_embeds, floats(pooled)));
            inputs.push((&ports.time_ids, floats(&sizes)));
        }
        let (_, _, height, width) = fixed.dim();
        let mut sample = Array4::zeros((rows, UNET_CHANNELS, height, width));
        sample.slice_mut(s![.., LATENT_CHANNELS.., .., ..]).assign(fixed);
        let sample = sample.into_dyn();
        let timestep = match self.timestep.rank() {
            0 => ArrayD::zeros(IxDyn(&[])),
            _ => ArrayD::zeros(IxDyn(&[self.timestep.size(0).unwrap_or(1)])),
        };
        let changing = [(&self.sample, floats(&sample)), (&self.timestep, floats(&timestep))];
        let inputs = self.net.prepare(&inputs, &changing)?;
        Ok(Condition { rows, guidance, inputs })
    }

    /// Runs the net on latents, `[1, 4, row, column]`. Returns one row per text.
    pub(super) fn run(
        &mut self,
        latents: &Array4<f32>,
        timestep: f32,
        Condition { rows, inputs, .. }: &mut Condition,
    ) -> Result<Array4<f32>, DiffusionError> {
        // The other channels stay as they are.
        inputs.write(&self.sample, latents.view().into_dyn())?;
        inputs.write(&self.timestep, arr0(timestep).view().into_dyn())?;
        let made = self.net.run_prepared(inputs, &self.output)?;
        let (_, channels, height, width) = latents.dim();
        four_axes(made, "unet", &[*rows, channels, height, width])
    }
}

fn floats(values: &ArrayD<f32>) -> Input<'_> {
    Input::Floats(values.view())
}

/// Returns the sizes of a picture that is neither enlarged nor cropped, diffusers' default.
const fn time_ids((height, width): (usize, usize)) -> [f32; TIME_IDS] {
    let (height, width) = (height as f32, width as f32);
    [height, width, 0.0, 0.0, height, width]
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

fn required(port: Option<Port>, what: &str) -> Result<Port, DiffusionError> {
    port.ok_or_else(|| missing(what))
}

fn missing(what: &str) -> DiffusionError {
    DiffusionError::unsupported("unet", format!("has no {what} input"))
}
