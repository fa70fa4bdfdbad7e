//! Where noise comes from: a seed, or a recording.

use ndarray::{Array4, ArrayD, Ix4, IxDyn};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};

use super::error::DiffusionError;

/// Gives standard normal noise, one tensor a draw. A run draws the noise that it starts from first, then one
/// tensor for every step of a scheduler that adds noise.
pub trait NoiseSource {
    /// The next tensor of this shape.
    ///
    /// # Errors
    /// [`DiffusionError::Noise`] when there is none.
    fn draw(&mut self, shape: &[usize]) -> Result<ArrayD<f32>, DiffusionError>;
}

/// A draw of four axes, whose shape is made sure of: a source may be anyone's.
pub(super) fn draw(
    noise: &mut dyn NoiseSource,
    shape: &[usize],
) -> Result<Array4<f32>, DiffusionError> {
    let drawn = noise.draw(shape)?;
    if drawn.shape() != shape {
        let text = format!("{:?} was drawn, not {shape:?}", drawn.shape());
        return Err(DiffusionError::Noise(text));
    }
    drawn.into_dimensionality::<Ix4>().map_err(|error| DiffusionError::Noise(error.to_string()))
}

/// Noise from a seed, drawn on the processor: the same on every device and machine.
#[derive(Clone, Debug)]
pub struct SeededNoise {
    generator: ChaCha12Rng,
}

impl SeededNoise {
    /// The stream of this seed.
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

/// Noise that was recorded, for comparing with what another implementation made of it.
#[derive(Clone, Debug)]
pub struct RecordedNoise {
    draws: std::vec::IntoIter<ArrayD<f32>>,
}

impl RecordedNoise {
    /// These tensors, in the order in which they are drawn.
    pub fn new(draws: Vec<ArrayD<f32>>) -> Self {
        Self { draws: draws.into_iter() }
    }
}

impl NoiseSource for RecordedNoise {
    fn draw(&mut self, shape: &[usize]) -> Result<ArrayD<f32>, DiffusionError> {
        let draw = self
            .draws
            .next()
            .ok_or_else(|| DiffusionError::Noise("the recording is at its end".to_owned()))?;
        if draw.shape() == shape {
            Ok(draw)
        } else {
            let text = format!("the recording holds {:?}, not {shape:?}", draw.shape());
            Err(DiffusionError::Noise(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_noise_every_time_and_another_seed_other_noise() {
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
    fn a_recording_ends_and_has_its_own_shape() {
        let mut noise = RecordedNoise::new(vec![ArrayD::zeros(IxDyn(&[2]))]);
        assert!(noise.clone().draw(&[3]).unwrap_err().to_string().contains("[2], not [3]"));
        assert!(noise.draw(&[2]).is_ok());
        assert!(noise.draw(&[2]).unwrap_err().to_string().contains("at its end"));
    }
}
