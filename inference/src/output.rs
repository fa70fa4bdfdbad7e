//! What a picture net returned for a batch of pictures.

use ndarray::{Array4, Axis};
use retouch_pixels::PixelError;

/// The output of one run of a picture net.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Maps, f32 `[batch, channel, row, column]`, 1 for white.
    Maps(Array4<f32>),
    /// Pictures.
    Pictures {
        /// Bytes `[batch, row, column, 3]`: R, G and B.
        samples: Array4<u8>,
        /// The mean absolute value that the net computed for each picture, 1 for white. Not finite if one of them was not.
        magnitudes: Vec<f32>,
    },
}

impl Output {
    /// Returns the sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::Maps(maps) => maps.shape(),
            Self::Pictures { samples, .. } => samples.shape(),
        }
    }

    /// Returns the output of each input, a batch of one.
    pub fn split(&self) -> Vec<Self> {
        match self {
            Self::Maps(maps) => {
                maps.axis_chunks_iter(Axis(0), 1).map(|one| Self::Maps(one.to_owned())).collect()
            }
            Self::Pictures { samples, magnitudes } => samples
                .axis_chunks_iter(Axis(0), 1)
                .zip(magnitudes)
                .map(|(one, magnitude)| Self::Pictures {
                    samples: one.to_owned(),
                    magnitudes: vec![*magnitude],
                })
                .collect(),
        }
    }

    /// Returns the values, 1 for white, to compare outputs. Those of a picture with values that were not finite are NaN.
    pub fn values(&self) -> Array4<f32> {
        match self {
            Self::Maps(maps) => maps.clone(),
            Self::Pictures { samples, .. } if self.is_finite() => {
                samples.mapv(|sample| f32::from(sample) / 255.0)
            }
            Self::Pictures { samples, .. } => Array4::from_elem(samples.raw_dim(), f32::NAN),
        }
    }

    /// Returns whether the net computed only finite values.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Maps(maps) => maps.iter().all(|value| value.is_finite()),
            Self::Pictures { magnitudes, .. } => magnitudes.iter().all(|value| value.is_finite()),
        }
    }

    /// Returns the maps.
    ///
    /// # Errors
    /// [`PixelError::InvalidOutput`] if these are pictures.
    pub fn into_maps(self) -> Result<Array4<f32>, PixelError> {
        match self {
            Self::Maps(maps) => Ok(maps),
            Self::Pictures { .. } => {
                Err(PixelError::InvalidOutput("it is a picture, not a map".to_owned()))
            }
        }
    }

    /// Returns the pictures.
    ///
    /// # Errors
    /// [`PixelError::InvalidOutput`] if these are maps, or the net computed values that were not finite.
    pub fn into_pictures(self) -> Result<Array4<u8>, PixelError> {
        let is_finite = self.is_finite();
        match self {
            Self::Pictures { samples, .. } if is_finite => Ok(samples),
            // Half precision overflows to infinities, which became white.
            Self::Pictures { .. } => {
                Err(PixelError::InvalidOutput("it contained NaN or infinite values".to_owned()))
            }
            Self::Maps(_) => {
                Err(PixelError::InvalidOutput("it is a map, not a picture".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pictures(magnitudes: &[f32]) -> Output {
        let samples = Array4::from_shape_fn((magnitudes.len(), 1, 1, 3), |at| at.0 as u8 * 51);
        Output::Pictures { samples, magnitudes: magnitudes.to_vec() }
    }

    #[test]
    fn a_batch_is_split_into_its_pictures() {
        let [first, second] = &pictures(&[0.1, 0.2]).split()[..] else { panic!("two pictures") };
        assert_eq!(first, &pictures(&[0.1]));
        assert_eq!(
            second,
            &Output::Pictures {
                samples: Array4::from_elem((1, 1, 1, 3), 51),
                magnitudes: vec![0.2],
            }
        );
        assert!((second.values()[[0, 0, 0, 2]] - 0.2).abs() < 1e-6);
        let maps = Output::Maps(Array4::zeros((3, 2, 4, 4)));
        assert_eq!(maps.split().len(), 3);
        assert_eq!(maps.split()[0].shape(), [1, 2, 4, 4]);
    }

    #[test]
    fn a_picture_of_values_that_were_not_finite_is_an_invalid_output() {
        assert!(pictures(&[0.1]).into_pictures().is_ok());
        for magnitude in [f32::NAN, f32::INFINITY] {
            let output = pictures(&[magnitude]);
            assert!(output.values().iter().all(|value| value.is_nan()));
            assert!(matches!(output.into_pictures(), Err(PixelError::InvalidOutput(_))));
        }
        assert!(pictures(&[0.1]).into_maps().is_err());
        assert!(Output::Maps(Array4::zeros((1, 1, 1, 1))).into_pictures().is_err());
    }
}
