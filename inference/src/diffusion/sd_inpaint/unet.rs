//! The nine-channel UNet of Stable Diffusion and of SDXL. Its inputs are read from the graph; an unknown one is refused
//! by name.

use std::iter::repeat_n;
use std::path::Path;

use ndarray::{Array, Array4, ArrayD, ArrayView, Axis, IxDyn, RemoveAxis, arr0, concatenate, s};
use serde_json::{Map, Value};

use super::ports::{four_axes, only_output};
use super::text::EmbeddedTexts;
use super::vae::LATENT_CHANNELS;
use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Input, Net, Port, Prepared};
use crate::session::Runtime;

/// The input channels of an inpainting UNet: latents, the mask, and the latents of the unmasked part.
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

/// The guidance of one painting in a batch.
pub(in crate::diffusion) struct Guide<'a> {
    /// The prompt, and before it the negative prompt if there is one.
    pub(in crate::diffusion) texts: &'a EmbeddedTexts,
    pub(in crate::diffusion) guidance: f32,
    /// The channels after the latents, `[1, 5, row, column]`.
    pub(in crate::diffusion) fixed: &'a Array4<f32>,
}

/// What the net takes in every step of a batch.
pub(in crate::diffusion) struct Condition {
    /// The rows and the guidance of each painting: one row per text.
    paintings: Vec<(usize, f32)>,
    inputs: Prepared,
}

impl Unet {
    pub(super) fn open(
        folder: &Path,
        runtime: &Runtime,
        config: &Map<String, Value>,
    ) -> Result<Self, DiffusionError> {
        let net = Net::open_repeated(folder, "unet", runtime)?;
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

    /// Returns whether the net takes texts of several windows.
    pub(super) fn takes_long_texts(&self) -> bool {
        self.states.size(1).is_none()
    }

    /// Returns whether one run can take the rows of several paintings.
    pub(super) fn takes_batches(&self) -> bool {
        let guidance = self.guidance.iter().map(|(port, _)| port);
        let sdxl = self.sdxl.iter().flat_map(|ports| [&ports.text_embeds, &ports.time_ids]);
        let ports = [&self.sample, &self.states, &self.output];
        ports.into_iter().chain(guidance).chain(sdxl).all(|port| port.size(0).is_none())
    }

    /// Returns the condition of a batch of pictures of `size` (height, width in pixels).
    pub(super) fn condition(
        &mut self,
        guides: &[Guide<'_>],
        size: (usize, usize),
    ) -> Result<Condition, DiffusionError> {
        let rows = |guide: &Guide<'_>| guide.texts.states.shape().first().copied().unwrap_or(0);
        let paintings: Vec<_> = guides.iter().map(|guide| (rows(guide), guide.guidance)).collect();
        let all: usize = paintings.iter().map(|(rows, _)| rows).sum();
        let states = stacked(guides.iter().map(|guide| guide.texts.states.view()))?;
        let mut fixed = vec![(&self.states, floats(&states))];
        let numbers = self.guidance.as_ref().map(|(port, size)| {
            let rows = paintings.iter().flat_map(|(rows, guidance)| repeat_n(guidance, *rows));
            let rows: Vec<_> = rows.map(|guidance| guidance_embedding(*guidance, *size)).collect();
            (port, ArrayD::from_shape_fn(IxDyn(&[all, *size]), |at| rows[at[0]][at[1]]))
        });
        if let Some((port, numbers)) = &numbers {
            fixed.push((port, floats(numbers)));
        }
        let sizes = time_ids(size);
        let sizes = ArrayD::from_shape_fn(IxDyn(&[all, TIME_IDS]), |at| sizes[at[1]]);
        let pooled = self.sdxl.as_ref().map(|ports| {
            let each = guides.iter().filter_map(|guide| guide.texts.pooled.as_ref());
            stacked(each.map(|pooled| pooled.view())).map(|pooled| (ports, pooled))
        });
        let pooled = pooled.transpose()?;
        if let Some((ports, pooled)) = &pooled {
            fixed.push((&ports.text_embeds, floats(pooled)));
            fixed.push((&ports.time_ids, floats(&sizes)));
        }
        let sample = first_sample(guides, &paintings);
        let timestep = match self.timestep.rank() {
            0 => ArrayD::zeros(IxDyn(&[])),
            _ => ArrayD::zeros(IxDyn(&[self.timestep.size(0).unwrap_or(1)])),
        };
        let changing = [(&self.sample, floats(&sample)), (&self.timestep, floats(&timestep))];
        let inputs = self.net.prepare(&fixed, &changing)?;
        Ok(Condition { paintings, inputs })
    }

    /// Runs the net on the latents of each painting, `[1, 4, row, column]`. Returns a prediction for each. Where there are
    /// two rows of text, guidance leads away from the negative prompt.
    ///
    /// # Errors
    /// Of one painting: [`DiffusionError::NotFinite`]. Of the batch: if the net cannot run.
    pub(super) fn predict(
        &mut self,
        latents: &[Array4<f32>],
        timestep: f32,
        Condition { paintings, inputs }: &mut Condition,
    ) -> Result<Vec<Result<Array4<f32>, DiffusionError>>, DiffusionError> {
        let rows = latents.iter().zip(&*paintings);
        let sample = stacked(rows.flat_map(|(own, (rows, _))| repeat_n(own.view(), *rows)))?;
        // The other channels stay as they are.
        inputs.write(&self.sample, sample.view().into_dyn())?;
        inputs.write(&self.timestep, arr0(timestep).view().into_dyn())?;
        let made = self.net.run_prepared(inputs, &self.output)?;
        let made = four_axes(made, "unet", sample.shape())?;
        let mut rest = made.view();
        let predictions = paintings.iter().map(|(rows, guidance)| {
            let (own, others) = rest.split_at(Axis(0), *rows);
            rest = others;
            self.net.check_finite(own)?;
            let mut halves = own.axis_iter(Axis(0));
            Ok(match (halves.next(), halves.next()) {
                (Some(negative), Some(prompt)) => {
                    let guided = &negative + &((&prompt - &negative) * *guidance);
                    guided.insert_axis(Axis(0))
                }
                _ => own.to_owned(),
            })
        });
        Ok(predictions.collect())
    }
}

/// Returns the net's sample before the first step: zeros in place of the latents.
fn first_sample(guides: &[Guide<'_>], paintings: &[(usize, f32)]) -> ArrayD<f32> {
    let rows = guides.iter().zip(paintings);
    let rows: Vec<_> = rows.flat_map(|(guide, (rows, _))| repeat_n(guide.fixed, *rows)).collect();
    let (_, _, height, width) = rows.first().map_or((0, 0, 0, 0), |row| row.dim());
    let mut sample = Array4::zeros((rows.len(), UNET_CHANNELS, height, width));
    let mut fixed = sample.slice_mut(s![.., LATENT_CHANNELS.., .., ..]);
    for (mut to, from) in fixed.outer_iter_mut().zip(rows) {
        to.assign(&from.index_axis(Axis(0), 0));
    }
    sample.into_dyn()
}

/// Joins the rows of several paintings.
fn stacked<'a, D: RemoveAxis>(
    rows: impl IntoIterator<Item = ArrayView<'a, f32, D>>,
) -> Result<Array<f32, D>, DiffusionError> {
    let rows: Vec<_> = rows.into_iter().collect();
    concatenate(Axis(0), &rows)
        .map_err(|error| DiffusionError::unsupported("unet", error.to_string()))
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
