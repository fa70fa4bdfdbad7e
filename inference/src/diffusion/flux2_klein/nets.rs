//! The nets of FLUX.2 \[klein\], except for the text encoder.

use std::path::Path;

use ndarray::{Array2, Array3, Array4, ArrayD, Axis, Ix3, Ix4, arr0, concatenate, s};

use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Input, Net, Port, Prepared};
use crate::diffusion::picture;
use crate::session::Runtime;

/// The position of the reference picture on the time axis; the latents are at 0.
const REFERENCE_TIME: i64 = 10;

pub(super) struct Transformer {
    pub(super) net: Net,
    sequence: Port,
    texts: Port,
    time: Port,
    image_ids: Port,
    text_ids: Port,
    output: Port,
}

impl Transformer {
    /// The inputs, by diffusers' names.
    const INPUTS: [&'static str; 5] =
        ["hidden_states", "encoder_hidden_states", "timestep", "img_ids", "txt_ids"];

    pub(super) fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let net = Net::open_repeated(folder, "transformer", runtime)?;
        for port in net.inputs() {
            if !Self::INPUTS.contains(&port.name.as_str()) {
                let name = &port.name;
                let reason = format!("requires the unknown input `{name}`");
                return Err(DiffusionError::unsupported("transformer", reason));
            }
        }
        let input = |name: &str| {
            let found = net.inputs().iter().find(|port| port.name == name);
            found.cloned().ok_or_else(|| {
                DiffusionError::unsupported("transformer", format!("has no `{name}` input"))
            })
        };
        let [sequence, texts, time, image_ids, text_ids] = Self::INPUTS.map(input);
        Ok(Self {
            sequence: sequence?,
            texts: texts?,
            time: time?,
            image_ids: image_ids?,
            text_ids: text_ids?,
            output: floats(&net, net.outputs(), 3)?,
            net,
        })
    }

    /// Returns what the net takes in every step of a picture: an embedded prompt, `[1, length, size]`, the clean picture
    /// as reference, `[1, height * width, channels]`, and the positions of all latents and tokens. `size` is height and
    /// width in latents.
    pub(super) fn condition(
        &mut self,
        embedded: &ArrayD<f32>,
        size: (usize, usize),
        reference: &Array3<f32>,
    ) -> Result<Prepared, DiffusionError> {
        let length = embedded.shape().get(1).copied().unwrap_or(0);
        let text_ids =
            Array2::from_shape_fn((length, 4), |(at, axis)| if axis == 3 { at as i64 } else { 0 });
        let ids = |port: &Port, ids: Array2<i64>| {
            let ids = ids.into_dyn();
            // Some exports keep the batch axis of size 1.
            if port.rank() == 3 { ids.insert_axis(Axis(0)) } else { ids }
        };
        let image_ids = ids(&self.image_ids, image_positions(size));
        let text_ids = ids(&self.text_ids, text_ids);
        let fixed = [
            (&self.texts, Input::Floats(embedded.view())),
            (&self.image_ids, Input::Integers(image_ids.view())),
            (&self.text_ids, Input::Integers(text_ids.view())),
        ];
        // In each step, the latents take the place of the first half.
        let sequence = concatenate(Axis(1), &[reference.view(), reference.view()])
            .map_err(|error| DiffusionError::unsupported("vae_encoder", error.to_string()))?
            .into_dyn();
        let time = ArrayD::zeros(vec![1]);
        let changing = [
            (&self.sequence, Input::Floats(sequence.view())),
            (&self.time, Input::Floats(time.view())),
        ];
        self.net.prepare(&fixed, &changing)
    }

    /// Returns the velocity of the latents, `[1, height * width, channels]`, with the clean picture as reference.
    pub(super) fn run(
        &mut self,
        latents: &Array3<f32>,
        condition: &mut Prepared,
        time: f32,
    ) -> Result<Array3<f32>, DiffusionError> {
        let tokens = latents.dim().1;
        condition.write(&self.sequence, latents.view().into_dyn())?;
        condition.write(&self.time, arr0(time).view().into_dyn())?;
        let made = self.net.run_prepared(condition, &self.output)?;
        self.net.check_finite(&made)?;
        let made = three_axes(made, "transformer")?;
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
    pub(super) fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_encoder", runtime)?;
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
    pub(super) fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_decoder", runtime)?;
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
