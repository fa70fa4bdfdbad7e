//! The output of a picture net for a batch of pictures.

use ndarray::{Array4, Axis};
use retouch_pixels::PixelError;

/// The output of one run of a picture net.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Maps, f32 `[batch, channel, row, column]`, 1 for white.
    Maps(Array4<f32>),
    Pictures {
        /// Bytes `[batch, row, column, 3]`: R, G and B.
        samples: Array4<u8>,
        /// The extremes of each picture; `None` if a value was not finite.
        extremes: Vec<Option<Extremes>>,
    },
}

/// The least and the largest value that a net computed for a picture, before it became bytes; 1 for white.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    pub least: f32,
    pub largest: f32,
}

impl Extremes {
    /// The range of a picture with a value that was not finite.
    pub const UNKNOWN: Self = Self { least: f32::NAN, largest: f32::NAN };
}

impl Output {
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
            Self::Pictures { samples, extremes } => samples
                .axis_chunks_iter(Axis(0), 1)
                .zip(extremes)
                .map(|(one, own)| Self::Pictures { samples: one.to_owned(), extremes: vec![*own] })
                .collect(),
        }
    }

    /// Returns the values, 1 for white, to compare outputs. The values of a picture with values that were not finite
    /// are NaN.
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
            Self::Pictures { extremes, .. } => extremes.iter().all(Option::is_some),
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
                Err(PixelError::InvalidOutput("it contains NaN or infinite values".to_owned()))
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

    const FINITE: Option<Extremes> = Some(Extremes { least: 0.0, largest: 0.2 });

    fn pictures(extremes: &[Option<Extremes>]) -> Output {
        let samples = Array4::from_shape_fn((extremes.len(), 1, 1, 3), |at| at.0 as u8 * 51);
        Output::Pictures { samples, extremes: extremes.to_vec() }
    }

    #[test]
    fn a_batch_is_split_into_its_pictures() {
        let [first, second] = &pictures(&[FINITE, None]).split()[..] else {
            panic!("two pictures")
        };
        assert_eq!(first, &pictures(&[FINITE]));
        let samples = Array4::from_elem((1, 1, 1, 3), 51);
        assert_eq!(second, &Output::Pictures { samples: samples.clone(), extremes: vec![None] });
        let finite = Output::Pictures { samples, extremes: vec![FINITE] };
        assert!((finite.values()[[0, 0, 0, 2]] - 0.2).abs() < 1e-6);
        let maps = Output::Maps(Array4::zeros((3, 2, 4, 4)));
        assert_eq!(maps.split().len(), 3);
        assert_eq!(maps.split()[0].shape(), [1, 2, 4, 4]);
    }

    #[test]
    fn a_picture_of_values_that_were_not_finite_is_an_invalid_output() {
        assert!(pictures(&[FINITE]).into_pictures().is_ok());
        let output = pictures(&[None]);
        assert!(output.values().iter().all(|value| value.is_nan()));
        assert!(matches!(output.into_pictures(), Err(PixelError::InvalidOutput(_))));
        assert!(pictures(&[FINITE]).into_maps().is_err());
        assert!(Output::Maps(Array4::zeros((1, 1, 1, 1))).into_pictures().is_err());
    }
}
