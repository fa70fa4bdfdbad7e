//! The autoencoder of Stable Diffusion.

use std::path::Path;

use ndarray::{Array3, Array4, Ix4, s};

use super::ports::{only_input, only_output};
use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Input, Net, Port};
use crate::diffusion::picture;
use crate::session::Runtime;

pub(super) const LATENT_CHANNELS: usize = 4;

pub(super) struct VaeEncoder {
    pub(super) net: Net,
    pixels: Port,
    output: Port,
}

impl VaeEncoder {
    pub(super) fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_encoder", runtime)?;
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
         twice. Convert it to `latent_parameters`, mean and variance: models/convert/moments.py does, as does \
         `convert = \"moments\"` in [[source.files]] of a manifest that `scripts/models fetch` installs"
    );
    DiffusionError::unsupported("vae_encoder", reason)
}

pub(super) struct VaeDecoder {
    pub(super) net: Net,
    latents: Port,
    output: Port,
}

impl VaeDecoder {
    pub(super) fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, "vae_decoder", runtime)?;
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
