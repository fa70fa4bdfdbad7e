//! Noise sources: a seed, or a recording.

use ndarray::{Array4, ArrayD, Ix4, IxDyn};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};

use super::error::DiffusionError;

/// A source of standard normal noise. A run draws its initial noise first, then one tensor per step if the scheduler
/// adds noise.
pub trait NoiseSource {
    /// Draws the next tensor.
    ///
    /// # Errors
    /// [`DiffusionError::Noise`] if the source has none of this shape.
    fn draw(&mut self, shape: &[usize]) -> Result<ArrayD<f32>, DiffusionError>;
}

/// Draws a tensor of four axes and checks its shape.
pub(super) fn draw(
    noise: &mut dyn NoiseSource,
    shape: &[usize],
) -> Result<Array4<f32>, DiffusionError> {
    let drawn = noise.draw(shape)?;
    if drawn.shape() != shape {
        let text = format!("the source gave shape {:?} instead of {shape:?}", drawn.shape());
        return Err(DiffusionError::Noise(text));
    }
    drawn.into_dimensionality::<Ix4>().map_err(|error| DiffusionError::Noise(error.to_string()))
}

/// Noise from a seed. Drawn on the CPU, so it is the same for every device and machine.
#[derive(Clone, Debug)]
pub struct SeededNoise {
    generator: ChaCha12Rng,
}

impl SeededNoise {
    pub fn new(seed: u64) -> Self {
        Self { generator: ChaCha12Rng::seed_from_u64(seed) }
    }
}

impl NoiseSource for SeededNoise {
    fn draw(&mut self, shape: &[usize]) -> Result<ArrayD<f32>, DiffusionError> {
        Ok(ArrayD::from_shape_simple_fn(IxDyn(shape), || {
            StandardNormal.sample(&mut self.generator)
        }))
    }
}

/// Recorded noise, to compare with results of another implementation.
#[derive(Clone, Debug)]
pub struct RecordedNoise {
    draws: std::vec::IntoIter<ArrayD<f32>>,
}

impl RecordedNoise {
    /// Creates a source that gives these tensors in order.
    pub fn new(draws: Vec<ArrayD<f32>>) -> Self {
        Self { draws: draws.into_iter() }
    }
}

impl NoiseSource for RecordedNoise {
    fn draw(&mut self, shape: &[usize]) -> Result<ArrayD<f32>, DiffusionError> {
        let draw = self
            .draws
            .next()
            .ok_or_else(|| DiffusionError::Noise("the recording has no more draws".to_owned()))?;
        if draw.shape() == shape {
            Ok(draw)
        } else {
            let text = format!("the recording has shape {:?} instead of {shape:?}", draw.shape());
            Err(DiffusionError::Noise(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_noise_and_other_seeds_other_noise() {
        let draw = |seed| SeededNoise::new(seed).draw(&[1, 4, 8, 8]).unwrap();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn seeded_noise_is_standard_normal() {
        let noise = SeededNoise::new(1).draw(&[100, 100]).unwrap();
        let mean = noise.mean().unwrap();
        let deviation = noise.std(0.0);
        assert!(mean.abs() < 0.03, "mean {mean}");
        assert!((deviation - 1.0).abs() < 0.03, "deviation {deviation}");
    }

    #[test]
    fn a_recording_refuses_other_shapes_and_further_draws() {
        let mut noise = RecordedNoise::new(vec![ArrayD::zeros(IxDyn(&[2]))]);
        assert!(noise.clone().draw(&[3]).unwrap_err().to_string().contains("[2] instead of [3]"));
        assert!(noise.draw(&[2]).is_ok());
        assert!(noise.draw(&[2]).unwrap_err().to_string().contains("no more draws"));
    }
}
