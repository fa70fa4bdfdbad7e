//! Multistep DPM-Solver++ (arXiv 2211.01095) of first and second order.

use ndarray::Array4;

use super::Scheduler;
use super::mix::{Mix, sum};
use super::solver_steps::{SolverSteps, Spread};
use crate::diffusion::scheduler_config::{
    ConfigError, Correction, FinalSigma, Prediction, SchedulerConfig, Solver,
};

pub(super) struct DpmMultistep {
    steps: SolverSteps,
    prediction: Prediction,
    correction: Correction,
    order: usize,
    /// Whether the last step is first-order.
    is_last_lower: bool,
    /// The picture that the previous step predicted.
    previous: Option<Array4<f32>>,
}

impl DpmMultistep {
    pub(super) fn new(config: &SchedulerConfig, steps: usize) -> Result<Self, ConfigError> {
        let Solver::DpmMultistep {
            order,
            correction,
            lower_order_final,
            euler_at_final,
            karras,
            round_timesteps,
            last,
            lambda_min_clipped,
        } = config.solver
        else {
            return Err(ConfigError::Steps("not a DPM-Solver++ scheduler".to_owned()));
        };
        let spread = Spread { karras, round_timesteps, last, lambda_min_clipped };
        let steps = SolverSteps::new(config, steps, spread)?;
        let is_last_lower = euler_at_final
            || last == FinalSigma::Zero
            || (lower_order_final && steps.timesteps.len() < 15);
        let prediction = config.prediction;
        Ok(Self { steps, prediction, correction, order, is_last_lower, previous: None })
    }

    /// Returns the weight of the difference from the previous picture; `None` for a first-order step.
    fn second_order(&self, index: usize, h: f64, signal: f64) -> Option<f64> {
        let is_last = index + 1 == self.steps.timesteps.len();
        let is_empty = self.steps.is_empty(index);
        let is_lower = self.order == 1 || self.previous.is_none() || is_empty;
        if is_lower || (is_last && self.is_last_lower) {
            return None;
        }
        let ratio = h / self.steps.length(index - 1);
        let change = (-h).exp_m1();
        Some(match self.correction {
            Correction::Midpoint => -0.5 * signal * change * ratio,
            Correction::Heun => signal * (change / h + 1.0) * ratio,
        })
    }
}

impl Scheduler for DpmMultistep {
    fn timesteps(&self) -> &[f64] {
        &self.steps.timesteps
    }

    fn sigmas(&self) -> &[f64] {
        &self.steps.sigmas
    }

    fn noise_mix(&self, index: usize) -> (f64, f64) {
        let (signal, noise, _) = self.steps.at(index);
        (signal, noise)
    }

    fn step(
        &mut self,
        index: usize,
        latents: &Array4<f32>,
        predicted: &Array4<f32>,
        _noise: Option<&Array4<f32>>,
    ) -> Array4<f32> {
        let (signal, noise, _) = self.steps.at(index);
        let (next_signal, next_noise, _) = self.steps.at(index + 1);
        let mix = Mix::picture(self.prediction, signal * signal);
        let picture = sum((mix.latents, latents), &[(mix.predicted, predicted.view())]);
        // If no noise remains after the step, h is infinite and the step ends at the picture.
        let h = self.steps.length(index);
        let weight = -next_signal * (-h).exp_m1();
        let mut terms = vec![(weight, picture.view())];
        if let (Some(second), Some(previous)) =
            (self.second_order(index, h, next_signal), self.previous.as_ref())
        {
            terms.push((second, picture.view()));
            terms.push((-second, previous.view()));
        }
        let made = sum((next_noise / noise, latents), &terms);
        self.previous = Some(picture);
        made
    }
}
