//! Reads the outputs of picture nets.

use std::sync::Arc;

use ndarray::Ix4;
use ort::value::{DynTensor, PrimitiveTensorElementType, TensorValueTypeMarker, Value};

use super::kept::HostTensor;
use crate::onnx::pictures::{EXTREMES, RESULT};
use crate::output::{Extremes, Output, Values};
use crate::tensor::Returns;

/// How the outputs of a net are read.
#[derive(Clone, Copy, Debug)]
pub struct OutputReader {
    pub returns: Returns,
    /// The value of white that the net computes.
    pub white: f32,
}

impl OutputReader {
    pub const fn names(self) -> &'static [&'static str] {
        match self.returns {
            Returns::Map => &[RESULT],
            Returns::Picture => &[RESULT, EXTREMES],
        }
    }

    /// Copies outputs, in the order of [`Self::names`].
    pub fn read<T: TensorValueTypeMarker + ?Sized>(
        self,
        outputs: &[&Value<T>],
    ) -> ort::Result<Output> {
        fn copy<E: PrimitiveTensorElementType + Clone + Send + Sync + 'static>(
            values: &Value<impl TensorValueTypeMarker + ?Sized>,
        ) -> ort::Result<Values<E>> {
            let values = values.try_extract_array::<E>()?.into_dimensionality::<Ix4>();
            let values = values.map_err(|error| ort::Error::new(error.to_string()))?;
            Ok(values.to_owned().into())
        }
        match (self.returns, outputs) {
            (Returns::Map, [maps]) => Ok(Output::Maps(copy(maps)?)),
            (Returns::Picture, [samples, extremes]) => {
                Ok(Output::Pictures { samples: copy(samples)?, extremes: self.extremes(extremes)? })
            }
            _ => Err(wrong_count()),
        }
    }

    /// Lends the values of the first output, and copies the second one, if there is one.
    pub fn lend(
        self,
        values: Arc<HostTensor>,
        extremes: Option<&DynTensor>,
    ) -> ort::Result<Output> {
        let shape = values.shape();
        let small = || ort::Error::new(format!("an output is smaller than {shape:?}"));
        match (self.returns, extremes) {
            (Returns::Map, None) => Ok(Output::Maps(Values::new(values, shape).ok_or_else(small)?)),
            (Returns::Picture, Some(extremes)) => Ok(Output::Pictures {
                samples: Values::new(values, shape).ok_or_else(small)?,
                extremes: self.extremes(extremes)?,
            }),
            _ => Err(wrong_count()),
        }
    }

    fn extremes<T: TensorValueTypeMarker + ?Sized>(
        self,
        extremes: &Value<T>,
    ) -> ort::Result<Vec<Option<Extremes>>> {
        let extremes: Vec<_> = extremes.try_extract_array::<f32>()?.iter().copied().collect();
        let of_white = |value: f32| value / self.white;
        let extremes = extremes.as_chunks::<3>().0.iter().map(|[mean, least, largest]| {
            mean.is_finite()
                .then(|| Extremes { least: of_white(*least), largest: of_white(*largest) })
        });
        Ok(extremes.collect())
    }
}

fn wrong_count() -> ort::Error {
    ort::Error::new("a net has another number of outputs")
}
