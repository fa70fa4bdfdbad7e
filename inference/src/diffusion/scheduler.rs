//! Schedulers turn a net's predictions into a picture, step by step, as diffusers 0.42 computes it.
//!
//! Tables are rounded to 32 bits where diffusers rounds them, so that timesteps come out the same. Everything derived
//! from them is computed in 64 bits, and latents are kept in 32. A step is a weighted sum of latents, prediction, noise
//! and at most three earlier predictions.

mod alphas;
pub mod betas;
mod consistency;
mod ddim;
mod dpm_multistep;
mod euler;
mod mix;
mod schedule;
mod solver_steps;
mod spacing;
mod unipc;

use ndarray::Array4;

pub use self::schedule::schedule;

/// The timesteps of a run, and the arithmetic of its steps.
pub trait Scheduler {
    /// Returns the timesteps of a full run, from the most noise to the least; not always whole numbers.
    fn timesteps(&self) -> &[f64];

    /// Returns the sigmas of a full run and the one after its last step; empty if the scheduler does not use sigmas.
    fn sigmas(&self) -> &[f64] {
        &[]
    }

    /// Returns the factor that turns noise into the initial latents of a run at strength 1.
    fn init_noise_sigma(&self) -> f64 {
        1.0
    }

    /// Returns the factor of latents in the net's input.
    fn input_scale(&self, _index: usize) -> f64 {
        1.0
    }

    /// Returns the weights of picture and noise in the latents before step `index`.
    fn noise_mix(&self, index: usize) -> (f64, f64);

    /// Returns whether step `index` adds noise.
    fn draws_noise(&self, _index: usize) -> bool {
        false
    }

    /// Computes the latents after step `index` from those before it and the net's prediction. `noise` is given if
    /// [`Self::draws_noise`] returns true. Steps are taken in order, starting at any of them.
    fn step(
        &mut self,
        index: usize,
        latents: &Array4<f32>,
        predicted: &Array4<f32>,
        noise: Option<&Array4<f32>>,
    ) -> Array4<f32>;
}

/// Returns the first step of a run of this strength, as diffusers' Stable Diffusion pipelines compute it.
pub fn start_index(steps: usize, strength: f64) -> usize {
    // Python's `int` truncates: 10 * 0.6 is 6, 10 * 0.29 is 2.
    steps - ((steps as f64 * strength) as usize).min(steps)
}

#[cfg(test)]
mod tests;
