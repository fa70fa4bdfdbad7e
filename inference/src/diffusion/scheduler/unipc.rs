//! Multistep UniPC (Zhao et al., arXiv 2302.04867), predicting the picture.
//!
//! From the latents x₀ before a step, its predicted picture m₀ and the pictures mᵢ of other steps, an update over a
//! length h in half log-SNR gives
//!
//! ```text
//! x = (σ / σ₀) x₀ - α (e⁻ʰ - 1) m₀ - α B(-h) Σ ρᵢ (mᵢ - m₀) / rᵢ
//! ```
//!
//! where α and σ are signal and noise after the step, and rᵢ h is the distance from this step to that of mᵢ. With
//! B₁(h) = h or B₂(h) = eʰ - 1, the weights ρ solve Σᵢ ρᵢ rᵢᵏ⁻¹ = k! φₖ₊₁(-h) (-h)ᵏ / B(-h) for k = 1, 2, …, where
//! φ₁(z) = (eᶻ - 1) / z and φₖ₊₁(z) = (φₖ(z) - 1 / k!) / z; a single weight is ½.
//!
//! The predictor (`UniP`) uses the pictures of earlier steps. The corrector (`UniC`) repeats the previous update with the
//! picture that the net predicts at its end, r = 1, which costs no further run of the net.

use std::collections::VecDeque;

use ndarray::Array4;

use super::Scheduler;
use super::mix::{Mix, sum};
use super::solver_steps::{SolverSteps, Spread};
use crate::diffusion::scheduler_config::{
    ConfigError, Prediction, SchedulerConfig, Solver, StepFunction,
};

pub(super) struct UniPc {
    steps: SolverSteps,
    prediction: Prediction,
    order: usize,
    function: StepFunction,
    lower_order_final: bool,
    /// The pictures that the last steps predicted, the newest first; at most `order`.
    pictures: VecDeque<Array4<f32>>,
    /// The latents before the previous step, corrected, and the order of that step.
    previous: Option<(Array4<f32>, usize)>,
}

impl UniPc {
    pub(super) fn new(config: &SchedulerConfig, steps: usize) -> Result<Self, ConfigError> {
        let Solver::UniPc { order, function, lower_order_final, karras, last } = config.solver
        else {
            return Err(ConfigError::Steps("not a UniPC scheduler".to_owned()));
        };
        let lambda_min_clipped = f64::NEG_INFINITY;
        let spread = Spread { karras, round_timesteps: true, last, lambda_min_clipped };
        Ok(Self {
            steps: SolverSteps::new(config, steps, spread)?,
            prediction: config.prediction,
            order,
            function,
            lower_order_final,
            pictures: VecDeque::with_capacity(order),
            previous: None,
        })
    }

    /// Returns the order of step `index`: the first steps have too few pictures for the full order, and the last ones
    /// are more stable with a lower one.
    fn order_of(&self, index: usize) -> usize {
        let left = self.steps.timesteps.len() - index;
        let order = if self.lower_order_final { self.order.min(left) } else { self.order };
        if self.steps.is_empty(index) { 1 } else { order.min(self.pictures.len()) }
    }

    /// Takes the latents over step `index` by an update of this order. `pictures` starts with the picture of the step.
    /// `end` is the picture predicted after the step, which makes the update the corrector.
    fn update(
        &self,
        index: usize,
        latents: &Array4<f32>,
        order: usize,
        end: Option<&Array4<f32>>,
    ) -> Array4<f32> {
        let (_, noise, now) = self.steps.at(index);
        let (next_signal, next_noise, _) = self.steps.at(index + 1);
        let h = self.steps.length(index);
        // If no noise remains after the step, h is infinite, the order 1, and the step ends at the picture.
        let change = (-h).exp_m1();
        let mut others: Vec<(f64, &Array4<f32>)> = (1..order)
            .map(|back| ((self.steps.at(index - back).2 - now) / h, &self.pictures[back]))
            .collect();
        others.extend(end.map(|picture| (1.0, picture)));
        let function = match self.function {
            StepFunction::Bh1 => -h,
            StepFunction::Bh2 => change,
        };
        let ratios: Vec<f64> = others.iter().map(|(ratio, _)| *ratio).collect();
        let mut of_first = -next_signal * change;
        let mut terms = Vec::with_capacity(others.len() + 1);
        for ((ratio, picture), weight) in others.into_iter().zip(weights(&ratios, h, function)) {
            let weight = -next_signal * function * weight / ratio;
            of_first -= weight;
            terms.push((weight, picture.view()));
        }
        terms.push((of_first, self.pictures[0].view()));
        sum((next_noise / noise, latents), &terms)
    }
}

/// Returns the weights ρ of an update of length `h` for the pictures at these ratios.
fn weights(ratios: &[f64], h: f64, function: f64) -> Vec<f64> {
    if ratios.len() < 2 {
        return vec![0.5; ratios.len()];
    }
    let mut remainder = -(-h).exp_m1() / h - 1.0;
    let mut factorial = 1.0;
    let rows = (1..=ratios.len()).map(|k| {
        let mut row: Vec<f64> = ratios.iter().map(|ratio| ratio.powi(k as i32 - 1)).collect();
        row.push(remainder * factorial / function);
        factorial *= (k + 1) as f64;
        remainder = -remainder / h - 1.0 / factorial;
        row
    });
    solved(rows.collect())
}

/// Solves a linear system by elimination. Each row holds the factors of the unknowns, then the right side. The rows of
/// different ratios are independent, and the first row is all ones, so no pivot is zero.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    for pivot in 0..count {
        let from = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = row[pivot] / from[pivot];
            row.iter_mut().zip(&from).for_each(|(value, from)| *value -= factor * from);
        }
    }
    rows.iter().enumerate().map(|(at, row)| row[count] / row[at]).collect()
}

impl Scheduler for UniPc {
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
        let (signal, ..) = self.steps.at(index);
        let mix = Mix::picture(self.prediction, signal * signal);
        let picture = sum((mix.latents, latents), &[(mix.predicted, predicted.view())]);
        let corrected = match self.previous.take() {
            Some((before, order)) => self.update(index - 1, &before, order, Some(&picture)),
            None => latents.clone(),
        };
        self.pictures.truncate(self.order - 1);
        self.pictures.push_front(picture);
        let order = self.order_of(index);
        let made = self.update(index, &corrected, order, None);
        self.previous = Some((corrected, order));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_system_is_solved() {
        let rows =
            vec![vec![1.0, 1.0, 1.0, 6.0], vec![1.0, 2.0, 3.0, 14.0], vec![1.0, 4.0, 9.0, 36.0]];
        let found = solved(rows);
        for (found, expected) in found.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
    }

    /// With B₂, the weights of short steps approach the weights of the polynomial through the pictures.
    #[test]
    fn short_steps_have_the_weights_of_adams_methods() {
        // Adams-Moulton of third order: 5/12, 8/12, -1/12.
        let found = weights(&[-1.0, 1.0], 1e-3, (-1e-3_f64).exp_m1());
        assert!((found[0] - 1.0 / 12.0).abs() < 1e-3, "{found:?}");
        assert!((found[1] - 5.0 / 12.0).abs() < 1e-3, "{found:?}");
    }
}
