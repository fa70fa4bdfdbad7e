//! Euler's method on the probability flow (algorithm 2 of arXiv 2206.00364), plain and ancestral.
//!
//! Steps are computed in 32 bits and in diffusers' order. With zero terminal SNR, latents start in the thousands, so
//! the rounding of their difference to a picture of about 1 is visible.

use ndarray::Array4;

use super::{Scheduler, betas, spacing};
use crate::diffusion::scheduler_config::{
    FinalSigma, Prediction, SchedulerConfig, Solver, Spacing,
};

pub(super) struct Euler {
    timesteps: Vec<f64>,
    sigmas: Vec<f64>,
    spacing: Spacing,
    prediction: Prediction,
    ancestral: bool,
}

impl Euler {
    pub(super) fn new(config: &SchedulerConfig, steps: usize) -> Self {
        let table = betas::sigmas(&config.betas, config.rescale_betas_zero_snr);
        let train_steps = config.betas.len();
        let spaced = match config.spacing {
            Spacing::Linspace => spacing::linspace((train_steps - 1) as f64, steps),
            Spacing::Leading => spacing::leading(train_steps / steps, steps, config.steps_offset),
            Spacing::Trailing => {
                let last = train_steps as f64;
                spacing::trailing(last, last / steps as f64, steps)
            }
        };
        let mut timesteps: Vec<f64> = spaced.into_iter().map(spacing::rounded).collect();
        let mut sigmas: Vec<f64> =
            timesteps.iter().map(|timestep| spacing::interpolate(*timestep, &table)).collect();
        let (karras, last) = match config.solver {
            Solver::Euler { karras, last } => (karras, last),
            _ => (None, FinalSigma::Zero),
        };
        if let Some((smallest, largest)) = karras {
            // By default, the ends are the ends of the spaced sigmas, not of the training's sigmas.
            let smallest = smallest.unwrap_or(sigmas[sigmas.len() - 1]);
            sigmas = spacing::karras(smallest, largest.unwrap_or(sigmas[0]), steps);
            timesteps = sigmas
                .iter()
                .map(|sigma| spacing::rounded(spacing::timestep_of(*sigma, &table)))
                .collect();
        }
        sigmas.push(if last == FinalSigma::Zero { 0.0 } else { table[0] });
        let sigmas: Vec<f64> = sigmas.into_iter().map(spacing::rounded).collect();
        let ancestral = config.solver == Solver::EulerAncestral;
        Self {
            timesteps,
            sigmas,
            spacing: config.spacing,
            prediction: config.prediction,
            ancestral,
        }
    }

    /// Returns the picture without noise.
    fn picture(&self, sigma: f32, latents: f32, predicted: f32) -> f32 {
        let power = sigma * sigma + 1.0;
        match self.prediction {
            Prediction::Epsilon => latents - sigma * predicted,
            Prediction::Velocity => predicted * (-sigma / power.sqrt()) + latents / power,
            Prediction::Sample => predicted,
        }
    }
}

impl Scheduler for Euler {
    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn sigmas(&self) -> &[f64] {
        &self.sigmas
    }

    fn init_noise_sigma(&self) -> f64 {
        let largest = self.sigmas.iter().copied().fold(0.0, f64::max);
        match self.spacing {
            Spacing::Linspace | Spacing::Trailing => largest,
            Spacing::Leading => largest.hypot(1.0),
        }
    }

    fn input_scale(&self, index: usize) -> f64 {
        1.0 / self.sigmas[index].hypot(1.0)
    }

    fn noise_mix(&self, index: usize) -> (f64, f64) {
        (1.0, self.sigmas[index])
    }

    /// True in the last step too, where the noise has weight 0, to draw as many tensors as diffusers.
    fn draws_noise(&self, _index: usize) -> bool {
        self.ancestral
    }

    fn step(
        &mut self,
        index: usize,
        latents: &Array4<f32>,
        predicted: &Array4<f32>,
        noise: Option<&Array4<f32>>,
    ) -> Array4<f32> {
        let (sigma, next) = (self.sigmas[index], self.sigmas[index + 1]);
        let up = if self.ancestral {
            (next * next * (sigma * sigma - next * next) / (sigma * sigma)).max(0.0).sqrt()
        } else {
            0.0
        };
        let down = if self.ancestral { (next * next - up * up).max(0.0).sqrt() } else { next };
        let (sigma, length, up) = (sigma as f32, (down - sigma) as f32, up as f32);
        let mut made = latents.clone();
        made.zip_mut_with(predicted, |value, predicted| {
            let slope = (*value - self.picture(sigma, *value, *predicted)) / sigma;
            *value += slope * length;
        });
        if let Some(noise) = noise {
            made.zip_mut_with(noise, |value, noise| *value += noise * up);
        }
        made
    }
}
