//! Multistep DPM-Solver++ (arXiv 2211.01095) of first and second order.

use ndarray::Array4;

use super::mix::{Mix, sum};
use super::{Scheduler, betas, spacing};
use crate::diffusion::scheduler_config::{
    ConfigError, Correction, FinalSigma, Prediction, SchedulerConfig, Solver, Spacing,
};

pub(super) struct DpmMultistep {
    timesteps: Vec<f64>,
    sigmas: Vec<f64>,
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
        let table = betas::sigmas(&config.betas, config.rescale_betas_zero_snr);
        let (timesteps, mut sigmas): (Vec<f64>, Vec<f64>) = if karras {
            let sigmas = spacing::karras(table[0], table[table.len() - 1], steps);
            let timesteps = sigmas.iter().map(|sigma| {
                let timestep = spacing::timestep_of(*sigma, &table);
                if round_timesteps { timestep.round_ties_even() } else { timestep.trunc() }
            });
            (timesteps.collect(), sigmas)
        } else {
            let timesteps = spread(config, &table, lambda_min_clipped, steps)?;
            let sigmas = timesteps.iter().map(|t| spacing::interpolate(*t, &table)).collect();
            (timesteps, sigmas)
        };
        sigmas.push(if last == FinalSigma::Zero { 0.0 } else { table[0] });
        let sigmas: Vec<f64> = sigmas.into_iter().map(spacing::rounded).collect();
        let is_last_lower = euler_at_final
            || last == FinalSigma::Zero
            || (lower_order_final && timesteps.len() < 15);
        let prediction = config.prediction;
        Ok(Self { timesteps, sigmas, prediction, correction, order, is_last_lower, previous: None })
    }

    /// Returns signal, noise and half log-SNR at step `index`.
    fn at(&self, index: usize) -> (f64, f64, f64) {
        let sigma = self.sigmas[index];
        let signal = 1.0 / sigma.hypot(1.0);
        (signal, sigma * signal, -sigma.ln())
    }

    /// Returns the weight of the difference from the previous picture; `None` for a first-order step.
    fn second_order(&self, index: usize, h: f64, signal: f64) -> Option<f64> {
        let is_last = index + 1 == self.timesteps.len();
        // If the spacing has already reached the last sigma, the step is empty, and dividing by h would divide by zero.
        let is_empty = h.abs() < f64::EPSILON;
        let is_lower = self.order == 1 || self.previous.is_none() || is_empty;
        if is_lower || (is_last && self.is_last_lower) {
            return None;
        }
        let (_, _, now) = self.at(index);
        let (_, _, before) = self.at(index - 1);
        let ratio = h / (now - before);
        let change = (-h).exp_m1();
        Some(match self.correction {
            Correction::Midpoint => -0.5 * signal * change * ratio,
            Correction::Heun => signal * (change / h + 1.0) * ratio,
        })
    }
}

/// Returns the timesteps of a run without Karras sigmas.
fn spread(
    config: &SchedulerConfig,
    table: &[f64],
    lambda_min_clipped: f64,
    steps: usize,
) -> Result<Vec<f64>, ConfigError> {
    let train_steps = table.len();
    let clipped = table.iter().filter(|sigma| -sigma.ln() < lambda_min_clipped).count();
    let last = train_steps - clipped;
    // Spaces one extra point and drops it, so the steps end above timestep 0.
    let points = steps + 1;
    if last < points {
        let text = format!("{steps} steps are too many for {last} timesteps");
        return Err(ConfigError::Steps(text));
    }
    let mut timesteps = match config.spacing {
        Spacing::Linspace => spacing::linspace((last - 1) as f64, points),
        Spacing::Leading => spacing::leading(last / points, points, config.steps_offset),
        Spacing::Trailing => {
            spacing::trailing(last as f64, train_steps as f64 / steps as f64, steps)
        }
    };
    timesteps.truncate(steps);
    Ok(timesteps.into_iter().map(f64::round_ties_even).collect())
}

impl Scheduler for DpmMultistep {
    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn sigmas(&self) -> &[f64] {
        &self.sigmas
    }

    fn noise_mix(&self, index: usize) -> (f64, f64) {
        let (signal, noise, _) = self.at(index);
        (signal, noise)
    }

    fn step(
        &mut self,
        index: usize,
        latents: &Array4<f32>,
        predicted: &Array4<f32>,
        _noise: Option<&Array4<f32>>,
    ) -> Array4<f32> {
        let (signal, noise, now) = self.at(index);
        let (next_signal, next_noise, next) = self.at(index + 1);
        let mix = Mix::picture(self.prediction, signal * signal);
        let picture = sum((mix.latents, latents), &[(mix.predicted, predicted.view())]);
        let h = next - now;
        // If no noise remains after the step, h is infinite and the step ends at the picture.
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
