//! One ONNX Runtime session and the device it runs on: with `diffusion/net.rs` the only modules that name `ort`.

mod bound;
mod error;
mod runtime;
mod settings;

use ndarray::{Array4, Ix4};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session as OrtSession};
use ort::value::{Outlet, PrimitiveTensorElementType, TensorElementType, TensorRef, ValueType};
use tracing::warn;

use self::bound::{Bound, Names};
pub use self::error::SessionError;
pub(crate) use self::error::sentence;
pub use self::runtime::{ExtraFile, Runtime};
pub use self::settings::{Batching, DevicePolicy, GpuSettings, RuntimeSettings};

/// One model, opened.
pub struct Session {
    inner: OrtSession,
    /// Its tensors that stay on the device, of a net.
    bound: Option<Bound>,
}

/// A tensor that a model takes or gives, as its graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The tensor's name.
    pub name: String,
    /// Whether its elements are 32-bit floats.
    pub is_f32: bool,
    /// Its element type, as ONNX names it.
    pub element: String,
    /// Its sizes; `None` is a size that may vary.
    pub shape: Vec<Option<u64>>,
}

impl Session {
    /// What the model takes.
    pub fn inputs(&self) -> Vec<Port> {
        self.inner.inputs().iter().map(port).collect()
    }

    /// Whether the graph leaves open how many inputs one run takes.
    pub fn takes_batches(&self, input_name: &str) -> bool {
        let inputs = self.inputs();
        inputs.iter().any(|port| port.name == input_name && port.shape.first() == Some(&None))
    }

    /// What the model gives.
    pub fn outputs(&self) -> Vec<Port> {
        self.inner.outputs().iter().map(port).collect()
    }

    /// How many shapes have tensors that stay on the device, at most 8.
    pub fn kept_shapes(&self) -> usize {
        self.bound.as_ref().map_or(0, Bound::shapes)
    }

    /// Runs the model on one input and returns one output. No other output is computed into memory.
    ///
    /// # Errors
    /// When ONNX Runtime refuses the input or fails, with its own words.
    pub fn run(
        &mut self,
        input_name: &str,
        input: &Array4<f32>,
        output_name: &str,
    ) -> Result<Array4<f32>, SessionError> {
        let names = Names { input: input_name, output: output_name };
        let run = self.run_where_kept(names, input);
        if let Some(output) = run.map_err(|error| sentence(&error))? {
            return Ok(output);
        }
        let output = self.run_alone(names, input).map_err(|error| sentence(&error))?;
        if let Some(bound) = &mut self.bound
            && let Err(error) = bound.keep(&mut self.inner, names, input, &output)
        {
            self.bound = None;
            match sentence(&error) {
                lost @ SessionError::DeviceLost(_) => return Err(lost),
                error => warn!(%error, "A model runs without tensors of its own on the device"),
            }
        }
        Ok(output)
    }

    fn run_where_kept(
        &mut self,
        names: Names<'_>,
        input: &Array4<f32>,
    ) -> ort::Result<Option<Array4<f32>>> {
        match &mut self.bound {
            Some(bound) => bound.run(&mut self.inner, names, input),
            None => Ok(None),
        }
    }

    fn run_alone(&mut self, names: Names<'_>, input: &Array4<f32>) -> ort::Result<Array4<f32>> {
        let options = self.bound.as_ref().map_or_else(RunOptions::new, Bound::options_of_others)?;
        let options: RunOptions<HasSelectedOutputs> =
            options.with_outputs(OutputSelector::no_default().with(names.output));
        let input = TensorRef::from_array_view(input.view())?;
        let outputs = self.inner.run_with_options(ort::inputs![names.input => input], &options)?;
        let output = outputs[names.output].try_extract_array::<f32>()?;
        let output = output
            .into_dimensionality::<Ix4>()
            .map_err(|error| ort::Error::new(format!("output {}: {error}", names.output)))?;
        Ok(output.to_owned())
    }
}

impl Session {
    /// Runs the model on one input and returns one output's values in order, whatever its shape.
    ///
    /// # Errors
    /// When ONNX Runtime refuses the input or fails, with its own words.
    pub fn run_flat(
        &mut self,
        input_name: &str,
        input: &Array4<f32>,
        output_name: &str,
    ) -> Result<Vec<f32>, SessionError> {
        let mut only = || -> ort::Result<Vec<f32>> {
            let input = TensorRef::from_array_view(input.view())?;
            let outputs = self.inner.run(ort::inputs![input_name => input])?;
            Ok(outputs[output_name].try_extract_array::<f32>()?.iter().copied().collect())
        };
        only().map_err(|error| sentence(&error))
    }

    /// Runs a model that takes a picture and a mask, of one type, and gives a picture of the same.
    ///
    /// # Errors
    /// When ONNX Runtime refuses an input or fails, with its own words.
    pub fn run_pair<T>(
        &mut self,
        inputs: [(&str, &Array4<T>); 2],
        output_name: &str,
    ) -> Result<Array4<T>, SessionError>
    where
        T: PrimitiveTensorElementType + std::fmt::Debug + Clone + 'static,
    {
        let mut both = || -> ort::Result<Array4<T>> {
            let options: RunOptions<HasSelectedOutputs> =
                RunOptions::new()?.with_outputs(OutputSelector::no_default().with(output_name));
            let [(first, a), (second, b)] = inputs;
            let (a, b) =
                (TensorRef::from_array_view(a.view())?, TensorRef::from_array_view(b.view())?);
            let outputs =
                self.inner.run_with_options(ort::inputs![first => a, second => b], &options)?;
            let output = outputs[output_name].try_extract_array::<T>()?;
            let output = output
                .into_dimensionality::<Ix4>()
                .map_err(|error| ort::Error::new(format!("output {output_name}: {error}")))?;
            Ok(output.to_owned())
        };
        both().map_err(|error| sentence(&error))
    }
}

fn port(outlet: &Outlet) -> Port {
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => Port {
            name: outlet.name().to_owned(),
            is_f32: *ty == TensorElementType::Float32,
            element: ty.to_string(),
            shape: shape.iter().map(|size| u64::try_from(*size).ok()).collect(),
        },
        other => Port {
            name: outlet.name().to_owned(),
            is_f32: false,
            element: format!("{other:?}"),
            shape: Vec::new(),
        },
    }
}
