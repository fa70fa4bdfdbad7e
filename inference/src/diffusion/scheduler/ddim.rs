//! DDIM (arXiv 2010.02502).

use ndarray::Array4;

use super::alphas::Alphas;
use super::mix::{Mix, sum};
use super::{Scheduler, spacing};
use crate::diffusion::scheduler_config::{
    ConfigError, Prediction, SchedulerConfig, Solver, Spacing,
};

pub(super) struct Ddim {
    alphas: Alphas,
    timesteps: Vec<f64>,
    /// The distance from a timestep to the next one in the formulas, whatever the spacing.
    stride: f64,
    /// The alpha below timestep 0.
    last_alpha: f64,
    prediction: Prediction,
    eta: f64,
}

impl Ddim {
    pub(super) fn new(
        config: &SchedulerConfig,
        steps: usize,
        eta: f64,
        first: usize,
    ) -> Result<Self, ConfigError> {
        let alphas = Alphas::new(config);
        let train_steps = config.betas.len();
        let timesteps = match config.spacing {
            Spacing::Linspace => spacing::linspace((train_steps - 1) as f64, steps)
                .into_iter()
                .map(f64::round_ties_even)
                .collect(),
            Spacing::Leading => spacing::leading(train_steps / steps, steps, config.steps_offset),
            Spacing::Trailing => {
                let last = train_steps as f64;
                spacing::trailing(last, last / steps as f64, steps)
            }
        };
        alphas.check(&timesteps, first, config.prediction)?;
        let ends_clean = matches!(config.solver, Solver::Ddim { set_alpha_to_one: true });
        Ok(Self {
            last_alpha: if ends_clean { 1.0 } else { alphas.at(0.0) },
            alphas,
            timesteps,
            stride: (train_steps / steps) as f64,
            prediction: config.prediction,
            eta,
        })
    }
}

impl Scheduler for Ddim {
    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn noise_mix(&self, index: usize) -> (f64, f64) {
        self.alphas.noise_mix(self.timesteps[index])
    }

    fn draws_noise(&self, _index: usize) -> bool {
        self.eta > 0.0
    }

    fn step(
        &mut self,
        index: usize,
        latents: &Array4<f32>,
        predicted: &Array4<f32>,
        noise: Option<&Array4<f32>>,
    ) -> Array4<f32> {
        let timestep = self.timesteps[index];
        let alpha = self.alphas.at(timestep);
        let before = timestep - self.stride;
        let next = if before >= 0.0 { self.alphas.at(before) } else { self.last_alpha };
        // Equation 16: the share of the remaining noise that is replaced by fresh noise.
        let variance = (1.0 - next) / (1.0 - alpha) * (1.0 - alpha / next);
        let deviation = self.eta * variance.max(0.0).sqrt();
        let direction = (1.0 - next - deviation * deviation).max(0.0).sqrt();
        let mix = Mix::picture(self.prediction, alpha)
            .times(next.sqrt())
            .plus(Mix::noise(self.prediction, alpha).times(direction));
        let mut terms = vec![(mix.predicted, predicted.view())];
        terms.extend(noise.map(|noise| (deviation, noise.view())));
        sum((mix.latents, latents), &terms)
    }
}
