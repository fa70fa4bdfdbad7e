//! Reads the outputs of picture nets.

use ndarray::Array4;
use ort::value::{TensorValueTypeMarker, Value};

use crate::onnx::pictures::{MAGNITUDE, RESULT};
use crate::output::Output;
use crate::tensor::Returns;

/// How the outputs of a net are read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// What the net returns.
    pub returns: Returns,
    /// The value of white that the net computes.
    pub white: f32,
}

impl Reading {
    /// Returns the names of the outputs to read.
    pub const fn names(self) -> &'static [&'static str] {
        match self.returns {
            Returns::Map => &[RESULT],
            Returns::Picture => &[RESULT, MAGNITUDE],
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
            (Returns::Picture, [samples, magnitudes]) => {
                let samples = samples.try_extract_array::<u8>()?.into_dimensionality();
                let samples: Array4<u8> =
                    samples.map_err(|error| wrong(&error.to_string()))?.to_owned();
                let values = samples.len() / samples.dim().0.max(1);
                let mean = |sum: &f32| sum / (values as f32 * self.white);
                let magnitudes = magnitudes.try_extract_array::<f32>()?.iter().map(mean).collect();
                Ok(Output::Pictures { samples, magnitudes })
            }
            _ => Err(wrong("a net has another number of outputs")),
        }
    }
}
