//! Reads the outputs of picture nets.

use ort::value::{TensorValueTypeMarker, Value};

use crate::onnx::pictures::{EXTREMES, RESULT};
use crate::output::{Extremes, Output};
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

    /// Reads outputs in the order of [`Self::names`].
    pub fn read<T: TensorValueTypeMarker + ?Sized>(
        self,
        outputs: &[&Value<T>],
    ) -> ort::Result<Output> {
        let wrong = |reason: &str| ort::Error::new(reason.to_owned());
        match (self.returns, outputs) {
            (Returns::Map, [maps]) => {
                let maps = maps.try_extract_array::<f32>()?.into_dimensionality();
                Ok(Output::Maps(maps.map_err(|error| wrong(&error.to_string()))?.to_owned()))
            }
            (Returns::Picture, [samples, extremes]) => {
                let samples = samples.try_extract_array::<u8>()?.into_dimensionality();
                let samples = samples.map_err(|error| wrong(&error.to_string()))?.to_owned();
                let extremes: Vec<_> =
                    extremes.try_extract_array::<f32>()?.iter().copied().collect();
                let of_white = |value: f32| value / self.white;
                let extremes = extremes.as_chunks::<3>().0.iter().map(|[mean, least, largest]| {
                    mean.is_finite()
                        .then(|| Extremes { least: of_white(*least), largest: of_white(*largest) })
                });
                Ok(Output::Pictures { samples, extremes: extremes.collect() })
            }
            _ => Err(wrong("a net has another number of outputs")),
        }
    }
}
