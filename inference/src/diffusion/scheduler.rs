//! What turns a net's predictions into a picture, step by step, as diffusers 0.42 computes it.
//!
//! Tables are rounded to 32 bits where diffusers rounds them, so that timesteps come out the same; what follows
//! from them is computed in 64 bits, and latents are kept in 32. A step is a weighted sum of latents, prediction,
//! noise and at most one earlier prediction.

pub mod betas;
mod consistency;
mod ddim;
mod dpm_multistep;
mod euler;
pub mod spacing;

use ndarray::{Array4, ArrayView4};

use super::scheduler_config::{ConfigError, Prediction, SchedulerConfig, Solver};

/// A schedule of so many steps, and the arithmetic of one.
pub trait Scheduler {
    /// The timesteps of a whole run, from the most noise to the least; not always whole numbers.
    fn timesteps(&self) -> &[f64];

    /// The sigmas of a whole run and the one after its last step, for the schedulers that have such.
    fn sigmas(&self) -> &[f64] {
        &[]
    }

    /// What noise is multiplied by to be the latents that a run of full strength begins with.
    fn init_noise_sigma(&self) -> f64 {
        1.0
    }

    /// What latents are multiplied by before the net sees them.
    fn input_scale(&self, _index: usize) -> f64 {
        1.0
    }

    /// The weights of picture and noise in the latents that step `index` begins with.
    fn noise_mix(&self, index: usize) -> (f64, f64);

    /// Whether step `index` adds noise.
    fn draws_noise(&self, _index: usize) -> bool {
        false
    }

    /// Makes the latents after step `index` from those before it and from what the net predicted. `noise` is
    /// given where [`Self::draws_noise`] says so. Steps are made in order; a run may begin at any.
    fn step(
        &mut self,
        index: usize,
        latents: &Array4<f32>,
        predicted: &Array4<f32>,
        noise: Option<&Array4<f32>>,
    ) -> Array4<f32>;
}

/// The schedule of `steps` steps that these settings make. `eta` is how much noise DDIM and TCD add, in 0..=1;
/// the others have none of it, and like diffusers do not look at it. The run will begin at step `first`, as
/// [`start_index`] has it.
///
/// # Errors
/// [`ConfigError::Steps`] when there is no such schedule, or one of the steps that are made cannot be.
pub fn schedule(
    config: &SchedulerConfig,
    steps: usize,
    eta: f64,
    first: usize,
) -> Result<Box<dyn Scheduler + Send>, ConfigError> {
    let train_steps = config.betas.len();
    if steps == 0 || steps > train_steps {
        let text = format!("{steps} steps are not between 1 and the training's {train_steps}");
        return Err(ConfigError::Steps(text));
    }
    Ok(match &config.solver {
        Solver::Ddim { .. } => Box::new(ddim::Ddim::new(config, steps, eta, first)?),
        Solver::DpmMultistep { .. } => Box::new(dpm_multistep::DpmMultistep::new(config, steps)?),
        Solver::Euler { .. } | Solver::EulerAncestral => Box::new(euler::Euler::new(config, steps)),
        Solver::Lcm { .. } | Solver::Tcd { .. } => {
            Box::new(consistency::Consistency::new(config, steps, eta, first)?)
        }
    })
}

/// The step that a run of this strength begins with, as diffusers' Stable Diffusion pipelines compute it.
pub fn start_index(steps: usize, strength: f64) -> usize {
    // Python's `int` cuts: 10 * 0.6 is 6, 10 * 0.29 is 2.
    steps - ((steps as f64 * strength) as usize).min(steps)
}

/// A weighted sum of latents and a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mix {
    latents: f64,
    predicted: f64,
}

impl Mix {
    /// The picture without noise, where `alpha` of the signal's power is left.
    fn picture(prediction: Prediction, alpha: f64) -> Self {
        let (signal, noise) = (alpha.sqrt(), (1.0 - alpha).sqrt());
        match prediction {
            Prediction::Epsilon => Self { latents: 1.0 / signal, predicted: -noise / signal },
            Prediction::Velocity => Self { latents: signal, predicted: -noise },
            Prediction::Sample => Self { latents: 0.0, predicted: 1.0 },
        }
    }

    /// The noise.
    fn noise(prediction: Prediction, alpha: f64) -> Self {
        let (signal, noise) = (alpha.sqrt(), (1.0 - alpha).sqrt());
        match prediction {
            Prediction::Epsilon => Self { latents: 0.0, predicted: 1.0 },
            Prediction::Velocity => Self { latents: noise, predicted: signal },
            Prediction::Sample => Self { latents: 1.0 / noise, predicted: -signal / noise },
        }
    }

    fn plus(self, other: Self) -> Self {
        let (latents, predicted) = (self.latents + other.latents, self.predicted + other.predicted);
        Self { latents, predicted }
    }

    fn times(self, factor: f64) -> Self {
        Self { latents: self.latents * factor, predicted: self.predicted * factor }
    }
}

/// The cumulative alphas of the training, and what is asked of them.
#[derive(Clone, Debug)]
struct Alphas {
    table: Vec<f64>,
}

impl Alphas {
    fn new(config: &SchedulerConfig) -> Self {
        let table = betas::cumulative_alphas(&config.betas, config.rescale_betas_zero_snr);
        Self { table: table.into_iter().map(f64::from).collect() }
    }

    /// The alpha of a timestep, which is in the table: [`Self::check`] has seen to it.
    fn at(&self, timestep: f64) -> f64 {
        self.table[(timestep as usize).min(self.table.len() - 1)]
    }

    /// Refuses timesteps that the training did not have, and those from which nothing can be predicted, from step
    /// `first` on.
    fn check(
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
            let text = "`rescale_betas_zero_snr` leaves nothing at the first timestep to tell noise from, \
                        so `prediction_type` cannot be epsilon";
            return Err(ConfigError::Steps(text.to_owned()));
        }
        Ok(())
    }

    fn noise_mix(&self, timestep: f64) -> (f64, f64) {
        let alpha = self.at(timestep);
        (alpha.sqrt(), (1.0 - alpha).sqrt())
    }
}

/// The sum of `weight * tensor` over the terms, in 64 bits until the end. All tensors have the first one's shape.
fn sum(first: (f64, &Array4<f32>), terms: &[(f64, ArrayView4<'_, f32>)]) -> Array4<f32> {
    let mut total = first.1.mapv(|value| first.0 * f64::from(value));
    for (weight, tensor) in terms {
        // A term without weight is left out, not multiplied: zero times infinity is no zero.
        if *weight != 0.0 {
            total.zip_mut_with(tensor, |total, value| *total += weight * f64::from(*value));
        }
    }
    total.mapv(|value| value as f32)
}

#[cfg(test)]
mod tests;
