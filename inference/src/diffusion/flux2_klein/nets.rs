//! The nets of FLUX.2 \[klein\], except for the text encoder.

use std::path::Path;

use ndarray::{Array2, Array3, Array4, ArrayD, Axis, Ix3, Ix4, concatenate, s};

use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Input, Net, Opener, Port};
use crate::diffusion::picture;

/// The position of the reference picture on the time axis; the latents are at 0.
const REFERENCE_TIME: i64 = 10;

pub(super) struct Transformer {
    pub(super) net: Net,
    output: Port,
}

impl Transformer {
    /// The inputs, by diffusers' names.
    const INPUTS: [&'static str; 5] =
        ["hidden_states", "encoder_hidden_states", "timestep", "img_ids", "txt_ids"];

    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "transformer", opener)?;
        for port in net.inputs() {
            if !Self::INPUTS.contains(&port.name.as_str()) {
                let name = &port.name;
                let reason = format!("requires the unknown input `{name}`");
                return Err(DiffusionError::unsupported("transformer", reason));
            }
        }
        for name in Self::INPUTS {
            if !net.inputs().iter().any(|port| port.name == name) {
                let reason = format!("has no `{name}` input");
                return Err(DiffusionError::unsupported("transformer", reason));
            }
        }
        let output = floats(&net, net.outputs(), 3)?;
        Ok(Self { net, output })
    }

    /// Returns the velocity of the latents, `[1, height * width, channels]`, with the clean picture as reference.
    pub(super) fn run(
        &mut self,
        latents: &Array3<f32>,
        reference: &Array3<f32>,
        size: (usize, usize),
        embedded: &ArrayD<f32>,
        time: f32,
    ) -> Result<Array3<f32>, DiffusionError> {
        let tokens = latents.dim().1;
        let sequence = concatenate(Axis(1), &[latents.view(), reference.view()])
            .map_err(|error| DiffusionError::unsupported("vae_encoder", error.to_string()))?;
        let length = embedded.shape().get(1).copied().unwrap_or(0);
        let image_ids = image_positions(size);
        let text_ids =
            Array2::from_shape_fn((length, 4), |(at, axis)| if axis == 3 { at as i64 } else { 0 });
        let time = ArrayD::from_elem(vec![1], time);
        let sequence = sequence.into_dyn();

        let ports = self.net.inputs().to_vec();
        let mut inputs = Vec::with_capacity(ports.len());
        let (image_ids, text_ids) = (image_ids.into_dyn(), text_ids.into_dyn());
        for port in &ports {
            let input = match port.name.as_str() {
                "hidden_states" => Input::Floats(sequence.view()),
                "encoder_hidden_states" => Input::Floats(embedded.view()),
                "timestep" => Input::Floats(time.view()),
                ids => {
                    let ids = if ids == "img_ids" { &image_ids } else { &text_ids };
                    // Some exports keep the batch axis of size 1.
                    let view = ids.view();
                    Input::Integers(if port.rank() == 3 { view.insert_axis(Axis(0)) } else { view })
                }
            };
            inputs.push((port, input));
        }
        let made = three_axes(self.net.run(&inputs, &self.output)?, "transformer")?;
        if made.dim().1 < tokens || made.dim().2 != latents.dim().2 {
            let reason = format!(
                "returned shape {:?} for latents of shape {:?}",
                made.shape(),
                latents.shape()
            );
            return Err(DiffusionError::unsupported("transformer", reason));
        }
        Ok(made.slice(s![.., ..tokens, ..]).to_owned())
    }
}

/// Returns time, row, column and 0 of each latent, then of each latent of the reference.
fn image_positions((height, width): (usize, usize)) -> Array2<i64> {
    let tokens = height * width;
    Array2::from_shape_fn((2 * tokens, 4), |(at, axis)| {
        let token = at % tokens;
        match axis {
            0 if at >= tokens => REFERENCE_TIME,
            1 => (token / width) as i64,
            2 => (token % width) as i64,
            _ => 0,
        }
    })
}

pub(super) struct Encoder {
    pub(super) net: Net,
    pixels: Port,
    output: Port,
}

impl Encoder {
    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_encoder", opener)?;
        let (pixels, output) = (floats(&net, net.inputs(), 4)?, floats(&net, net.outputs(), 4)?);
        Ok(Self { net, pixels, output })
    }

    pub(super) fn run(
        &mut self,
        pixels: &Array4<f32>,
        height: usize,
        width: usize,
    ) -> Result<Array4<f32>, DiffusionError> {
        let given = Input::Floats(pixels.view().into_dyn());
        let made = self.net.run(&[(&self.pixels, given)], &self.output)?;
        let shape = made.shape().to_vec();
        made.into_dimensionality::<Ix4>()
            .ok()
            .filter(|latents| (latents.dim().2, latents.dim().3) == (height, width))
            .ok_or_else(|| {
                let reason = format!(
                    "returned shape {shape:?} instead of latents of {height} × {width}: the graph must pack \
                     2 × 2 latents into one and normalize them"
                );
                DiffusionError::unsupported("vae_encoder", reason)
            })
    }
}

pub(super) struct Decoder {
    pub(super) net: Net,
    latents: Port,
    output: Port,
}

impl Decoder {
    pub(super) fn open(
        folder: &Path,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_decoder", opener)?;
        let (latents, output) = (floats(&net, net.inputs(), 4)?, floats(&net, net.outputs(), 4)?);
        Ok(Self { net, latents, output })
    }

    pub(super) fn run(&mut self, latents: &Array4<f32>) -> Result<Array3<f32>, DiffusionError> {
        picture::decode(&mut self.net, &self.latents, &self.output, latents)
    }
}

/// Returns the only port, which must have floats and `rank` axes.
fn floats(net: &Net, ports: &[Port], rank: usize) -> Result<Port, DiffusionError> {
    match ports {
        [port] if port.element.is_float() && port.rank() == rank => Ok(port.clone()),
        others => {
            let names: Vec<_> = others.iter().map(|port| format!("`{}`", port.name)).collect();
            let reason = format!(
                "has {}, but must have only one floating-point tensor of {rank} axes",
                names.join(", ")
            );
            Err(DiffusionError::unsupported(net.part(), reason))
        }
    }
}

/// Converts a net's output to three axes.
fn three_axes(made: ArrayD<f32>, part: &'static str) -> Result<Array3<f32>, DiffusionError> {
    made.into_dimensionality::<Ix3>().map_err(|error| {
        DiffusionError::unsupported(part, format!("returned another shape: {error}"))
    })
}
