//! Reads the outputs of picture nets.

use ndarray::{ArrayView4, Axis};
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
        Ok(match self.view(outputs)? {
            View::Maps(maps) => Output::Maps(maps.to_owned()),
            View::Pictures { samples, extremes } => {
                Output::Pictures { samples: samples.to_owned(), extremes }
            }
        })
    }

    /// Reads the outputs of the first `count` inputs of a batch, each as a batch of one.
    pub fn read_each<T: TensorValueTypeMarker + ?Sized>(
        self,
        outputs: &[&Value<T>],
        count: usize,
    ) -> ort::Result<Vec<Output>> {
        Ok(match self.view(outputs)? {
            View::Maps(maps) => {
                let each = maps.axis_chunks_iter(Axis(0), 1).take(count);
                each.map(|one| Output::Maps(one.to_owned())).collect()
            }
            View::Pictures { samples, extremes } => {
                let each = samples.axis_chunks_iter(Axis(0), 1).zip(extremes).take(count);
                each.map(|(one, own)| Output::Pictures {
                    samples: one.to_owned(),
                    extremes: vec![own],
                })
                .collect()
            }
        })
    }

    fn view<'v, T: TensorValueTypeMarker + ?Sized>(
        self,
        outputs: &[&'v Value<T>],
    ) -> ort::Result<View<'v>> {
        let wrong = |reason: &str| ort::Error::new(reason.to_owned());
        match (self.returns, outputs) {
            (Returns::Map, [maps]) => {
                let maps = maps.try_extract_array::<f32>()?.into_dimensionality();
                Ok(View::Maps(maps.map_err(|error| wrong(&error.to_string()))?))
            }
            (Returns::Picture, [samples, extremes]) => {
                let samples = samples.try_extract_array::<u8>()?.into_dimensionality();
                let samples = samples.map_err(|error| wrong(&error.to_string()))?;
                let extremes: Vec<_> =
                    extremes.try_extract_array::<f32>()?.iter().copied().collect();
                let of_white = |value: f32| value / self.white;
                let extremes = extremes.as_chunks::<3>().0.iter().map(|[mean, least, largest]| {
                    mean.is_finite()
                        .then(|| Extremes { least: of_white(*least), largest: of_white(*largest) })
                });
                Ok(View::Pictures { samples, extremes: extremes.collect() })
            }
            _ => Err(wrong("a net has another number of outputs")),
        }
    }
}

/// An [`Output`] in ONNX Runtime's memory.
enum View<'v> {
    Maps(ArrayView4<'v, f32>),
    Pictures { samples: ArrayView4<'v, u8>, extremes: Vec<Option<Extremes>> },
}
