//! Weighted sums of tensors; schedulers express their steps as such sums.

use ndarray::{Array4, ArrayView4};

use crate::diffusion::scheduler_config::Prediction;

/// The weights of latents and prediction in a sum of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mix {
    pub(super) latents: f64,
    pub(super) predicted: f64,
}

impl Mix {
    /// Returns the weights that give the picture without noise. `alpha` is the cumulative alpha of the timestep.
    pub(super) fn picture(prediction: Prediction, alpha: f64) -> Self {
        let (signal, noise) = (alpha.sqrt(), (1.0 - alpha).sqrt());
        match prediction {
            Prediction::Epsilon => Self { latents: 1.0 / signal, predicted: -noise / signal },
            Prediction::Velocity => Self { latents: signal, predicted: -noise },
            Prediction::Sample => Self { latents: 0.0, predicted: 1.0 },
        }
    }

    /// Returns the weights that give the noise.
    pub(super) fn noise(prediction: Prediction, alpha: f64) -> Self {
        let (signal, noise) = (alpha.sqrt(), (1.0 - alpha).sqrt());
        match prediction {
            Prediction::Epsilon => Self { latents: 0.0, predicted: 1.0 },
            Prediction::Velocity => Self { latents: noise, predicted: signal },
            Prediction::Sample => Self { latents: 1.0 / noise, predicted: -signal / noise },
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let (latents, predicted) = (self.latents + other.latents, self.predicted + other.predicted);
        Self { latents, predicted }
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Self { latents: self.latents * factor, predicted: self.predicted * factor }
    }
}

/// Returns the sum of `weight * tensor` over the terms, computed in 64 bits. All tensors have the shape of the first.
pub(super) fn sum(first: (f64, &Array4<f32>), terms: &[(f64, ArrayView4<'_, f32>)]) -> Array4<f32> {
    let mut total = first.1.mapv(|value| first.0 * f64::from(value));
    for (weight, tensor) in terms {
        // A term of weight 0 is skipped, because zero times infinity is not zero.
        if *weight != 0.0 {
            total.zip_mut_with(tensor, |total, value| *total += weight * f64::from(*value));
        }
    }
    total.mapv(|value| value as f32)
}
