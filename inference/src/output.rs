//! The output of a picture net for a batch of pictures.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use ndarray::{Array4, ArrayView4};
use retouch_pixels::PixelError;

/// The output of one run of a picture net.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Maps, f32 `[batch, channel, row, column]`, 1 for white.
    Maps(Values<f32>),
    Pictures {
        /// Bytes `[batch, row, column, 3]`: R, G and B.
        samples: Values<u8>,
        /// The extremes of each picture; `None` if a value was not finite.
        extremes: Vec<Option<Extremes>>,
    },
}

/// The values of an output, in row-major order. Cheap to clone. They may be in the memory of a net, which writes there again
/// when the last clone is dropped.
#[derive(Clone)]
pub struct Values<T> {
    shape: [usize; 4],
    /// The values, after some that belong to other outputs.
    memory: Arc<dyn AsRef<[T]> + Send + Sync>,
    first: usize,
}

impl<T> Values<T> {
    /// Returns the values at the start of some memory; `None` if it holds fewer than the shape needs.
    pub fn new(memory: Arc<dyn AsRef<[T]> + Send + Sync>, shape: [usize; 4]) -> Option<Self> {
        let is_large_enough = (*memory).as_ref().len() >= shape.iter().product();
        is_large_enough.then_some(Self { shape, memory, first: 0 })
    }

    pub const fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn view(&self) -> ArrayView4<'_, T> {
        let values = &(*self.memory).as_ref()[self.first..];
        let values = &values[..self.shape.iter().product()];
        ArrayView4::from_shape(self.shape, values).expect("there are as many as the shape needs")
    }

    /// Returns the values of each input of a batch, as a batch of one.
    fn split(&self) -> impl Iterator<Item = Self> {
        let [batch, rest @ ..] = self.shape;
        let length: usize = rest.iter().product();
        let shape = [1, rest[0], rest[1], rest[2]];
        (0..batch).map(move |at| Self {
            shape,
            memory: self.memory.clone(),
            first: self.first + at * length,
        })
    }
}

impl<T: Clone + Send + Sync + 'static> From<Array4<T>> for Values<T> {
    fn from(array: Array4<T>) -> Self {
        let shape = array.dim().into();
        let array = if array.is_standard_layout() {
            array
        } else {
            array.as_standard_layout().into_owned()
        };
        let (values, offset) = array.into_raw_vec_and_offset();
        Self { shape, memory: Arc::new(values), first: offset.unwrap_or(0) }
    }
}

impl<T> Debug for Values<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Values").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl<T: PartialEq> PartialEq for Values<T> {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
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
            Self::Maps(maps) => maps.split().map(Self::Maps).collect(),
            Self::Pictures { samples, extremes } => samples
                .split()
                .zip(extremes)
                .map(|(samples, own)| Self::Pictures { samples, extremes: vec![*own] })
                .collect(),
        }
    }

    /// Returns the values, 1 for white, to compare outputs. The values of a picture with values that were not finite
    /// are NaN.
    pub fn values(&self) -> Array4<f32> {
        match self {
            Self::Maps(maps) => maps.view().to_owned(),
            Self::Pictures { samples, .. } if self.is_finite() => {
                samples.view().mapv(|sample| f32::from(sample) / 255.0)
            }
            Self::Pictures { samples, .. } => Array4::from_elem(samples.view().raw_dim(), f32::NAN),
        }
    }

    /// Returns whether the net computed only finite values.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Maps(maps) => maps.view().iter().all(|value| value.is_finite()),
            Self::Pictures { extremes, .. } => extremes.iter().all(Option::is_some),
        }
    }

    /// Returns the maps.
    ///
    /// # Errors
    /// [`PixelError::InvalidOutput`] if these are pictures.
    pub fn into_maps(self) -> Result<Values<f32>, PixelError> {
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
    pub fn into_pictures(self) -> Result<Values<u8>, PixelError> {
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
        Output::Pictures { samples: samples.into(), extremes: extremes.to_vec() }
    }

    #[test]
    fn a_batch_is_split_into_its_pictures() {
        let [first, second] = &pictures(&[FINITE, None]).split()[..] else {
            panic!("two pictures")
        };
        assert_eq!(first, &pictures(&[FINITE]));
        let samples = Array4::from_elem((1, 1, 1, 3), 51);
        let of = |extremes| Output::Pictures { samples: samples.clone().into(), extremes };
        assert_eq!(second, &of(vec![None]));
        let finite = of(vec![FINITE]);
        assert!((finite.values()[[0, 0, 0, 2]] - 0.2).abs() < 1e-6);
        let maps = Output::Maps(Array4::zeros((3, 2, 4, 4)).into());
        assert_eq!(maps.split().len(), 3);
        assert_eq!(maps.split()[0].shape(), [1, 2, 4, 4]);
    }

    #[test]
    fn values_are_lent_until_the_last_clone_is_dropped() {
        let memory = Arc::new((0..30).map(|value| value as f32).collect::<Vec<_>>());
        assert!(Values::<f32>::new(memory.clone(), [2, 1, 4, 4]).is_none());
        let maps = Output::Maps(Values::new(memory.clone(), [2, 1, 3, 4]).unwrap());
        let mut each = maps.split();
        let last = |output: &Output| output.values().iter().copied().last();
        assert_eq!([last(&each[0]), last(&each[1])], [Some(11.0), Some(23.0)]);
        let is_lent = || Arc::strong_count(&memory) > 1;
        let kept = each.pop();
        drop((maps, each));
        assert!(is_lent());
        drop(kept);
        assert!(!is_lent());
    }

    #[test]
    fn a_picture_of_values_that_were_not_finite_is_an_invalid_output() {
        assert!(pictures(&[FINITE]).into_pictures().is_ok());
        let output = pictures(&[None]);
        assert!(output.values().iter().all(|value| value.is_nan()));
        assert!(matches!(output.into_pictures(), Err(PixelError::InvalidOutput(_))));
        assert!(pictures(&[FINITE]).into_maps().is_err());
        assert!(Output::Maps(Array4::zeros((1, 1, 1, 1)).into()).into_pictures().is_err());
    }
}
