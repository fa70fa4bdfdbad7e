//! The cumulative alphas of a net's training: how much of the signal's power is left at each timestep.

use super::betas;
use crate::diffusion::scheduler_config::{ConfigError, Prediction, SchedulerConfig};

/// The cumulative alphas, one per timestep of the training.
#[derive(Clone, Debug)]
pub(super) struct Alphas {
    table: Vec<f64>,
}

impl Alphas {
    pub(super) fn new(config: &SchedulerConfig) -> Self {
        let table = betas::cumulative_alphas(&config.betas, config.rescale_betas_zero_snr);
        Self { table: table.into_iter().map(f64::from).collect() }
    }

    /// Returns the alpha of a timestep that has passed [`Self::check`].
    pub(super) fn at(&self, timestep: f64) -> f64 {
        self.table[(timestep as usize).min(self.table.len() - 1)]
    }

    /// Refuses timesteps that the training did not have, and timesteps without signal from which nothing can be
    /// predicted. Checks from step `first` on.
    pub(super) fn check(
        &self,
        timesteps: &[f64],
        first: usize,
        prediction: Prediction,
    ) -> Result<(), ConfigError> {
        let timesteps = &timesteps[first.min(timesteps.len())..];
        let last = (self.table.len() - 1) as f64;
        if let Some(outside) = timesteps.iter().find(|t| **t < 0.0 || **t > last) {
            let text = format!("timestep {outside} is not between 0 and {last}");
            return Err(ConfigError::Steps(text));
        }
        if prediction == Prediction::Epsilon && timesteps.iter().any(|t| self.at(*t) <= 0.0) {
            let text = "`rescale_betas_zero_snr` leaves no signal at the first timestep, which requires a \
                        `prediction_type` other than epsilon";
            return Err(ConfigError::Steps(text.to_owned()));
        }
        Ok(())
    }

    /// Returns the weights of picture and noise in the latents of a timestep.
    pub(super) fn noise_mix(&self, timestep: f64) -> (f64, f64) {
        let alpha = self.at(timestep);
        (alpha.sqrt(), (1.0 - alpha).sqrt())
    }
}
