//! One ONNX Runtime session and the device it runs on. Besides `diffusion/net`, the only module that names `ort`.

mod bound_runs;
mod engines;
mod error;
mod io_binding;
mod kept;
mod runtime;
mod settings;
mod values;

use ndarray::Array4;
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session as OrtSession};
use ort::value::{Outlet, TensorElementType, ValueType};
use tracing::warn;

pub(crate) use self::bound_runs::{BoundRuns, HeldInputs};
pub use self::engines::{EngineBuilder, EngineSettings};
pub use self::error::SessionError;
pub(crate) use self::error::classify;
use self::io_binding::ShapeBindings;
pub use self::kept::Keeping;
pub(crate) use self::kept::check_same;
pub use self::runtime::{ExtraFile, Runtime};
pub use self::settings::{Batching, DevicePolicy, GpuSettings, PrecisionPolicy, RuntimeSettings};
use self::values::{input_value, read_flat, read_output};
use crate::tensor::{Element, Format, Tensors};

/// One opened model.
pub struct Session {
    inner: OrtSession,
    /// Tensors kept on the device; `None` if the session does not keep any.
    bindings: Option<ShapeBindings>,
}

/// An input or output tensor, as the model's graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The tensor's name.
    pub name: String,
    /// Whether its elements are 32-bit floats.
    pub is_f32: bool,
    /// The element type, as ONNX names it.
    pub element: String,
    /// The size of each axis; `None` where any size is allowed.
    pub shape: Vec<Option<u64>>,
}

impl Session {
    /// Returns the model's inputs.
    pub fn inputs(&self) -> Vec<Port> {
        self.inner.inputs().iter().map(port).collect()
    }

    /// Returns whether the input's first axis has an open size, so that one run can take a batch.
    pub fn takes_batches(&self, input_name: &str) -> bool {
        let inputs = self.inputs();
        inputs.iter().any(|port| port.name == input_name && port.shape.first() == Some(&None))
    }

    /// Returns the model's outputs.
    pub fn outputs(&self) -> Vec<Port> {
        self.inner.outputs().iter().map(port).collect()
    }

    /// Returns the number of shapes whose tensors are kept on the device, at most 8.
    pub fn kept_shapes(&self) -> usize {
        self.bindings.as_ref().map_or(0, ShapeBindings::len)
    }

    /// Runs the model on one input, `[batch, channel, row, column]`, and returns one output in the same order. Other
    /// outputs are not fetched.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses the input or fails.
    pub fn run(
        &mut self,
        tensors: Tensors<'_>,
        input: &Array4<f32>,
    ) -> Result<Array4<f32>, SessionError> {
        let run = self.run_bound(tensors, input);
        if let Some(output) = run.map_err(|error| classify(&error))? {
            return Ok(output);
        }
        let output = self.run_unbound(tensors, input).map_err(|error| classify(&error))?;
        if let Some(bindings) = &mut self.bindings
            && let Err(error) = bindings.keep(&mut self.inner, tensors, input, &output)
        {
            self.bindings = None;
            match classify(&error) {
                lost @ SessionError::DeviceLost(_) => return Err(lost),
                error => warn!(%error, "Running a model without tensors kept on the device"),
            }
        }
        Ok(output)
    }

    fn run_bound(
        &mut self,
        tensors: Tensors<'_>,
        input: &Array4<f32>,
    ) -> ort::Result<Option<Array4<f32>>> {
        match &mut self.bindings {
            Some(bindings) => bindings.run(&mut self.inner, tensors, input),
            None => Ok(None),
        }
    }

    fn run_unbound(
        &mut self,
        tensors: Tensors<'_>,
        input: &Array4<f32>,
    ) -> ort::Result<Array4<f32>> {
        let bindings = self.bindings.as_ref();
        let options = bindings.map_or_else(RunOptions::new, ShapeBindings::unbound_options)?;
        let options: RunOptions<HasSelectedOutputs> =
            options.with_outputs(OutputSelector::no_default().with(tensors.output));
        let input = input_value(input, tensors.input_format)?;
        let outputs =
            self.inner.run_with_options(ort::inputs![tensors.input => input], &options)?;
        read_output(&outputs[tensors.output], &tensors)
    }
}

impl Session {
    /// Runs the model on a picture, `[batch, channel, row, column]`, and returns the values of one output in row-major
    /// order, whatever its shape. The output holds f32 or f16.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses the input or fails.
    pub fn run_flat(
        &mut self,
        (input_name, format): (&str, Format),
        input: &Array4<f32>,
        output_name: &str,
    ) -> Result<Vec<f32>, SessionError> {
        let mut run = || -> ort::Result<Vec<f32>> {
            let input = input_value(input, format)?;
            let outputs = self.inner.run(ort::inputs![input_name => input])?;
            read_flat(&outputs[output_name])
        };
        run().map_err(|error| classify(&error))
    }

    /// Runs a model on a picture and a mask and returns a picture. The graph stores all three as `element` `[batch,
    /// channel, row, column]`.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses an input or fails.
    pub fn run_pair(
        &mut self,
        inputs: [(&str, &Array4<f32>); 2],
        output: &str,
        element: Element,
    ) -> Result<Array4<f32>, SessionError> {
        let format = Format { element, ..Format::default() };
        let mut run = || -> ort::Result<Array4<f32>> {
            let options: RunOptions<HasSelectedOutputs> =
                RunOptions::new()?.with_outputs(OutputSelector::no_default().with(output));
            let [(first, a), (second, b)] = inputs;
            let (a, b) = (input_value(a, format)?, input_value(b, format)?);
            let outputs =
                self.inner.run_with_options(ort::inputs![first => a, second => b], &options)?;
            let tensors = Tensors { output_format: format, ..Tensors::plain(first, output) };
            read_output(&outputs[output], &tensors)
        };
        run().map_err(|error| classify(&error))
    }
}

/// Formats a shape such as `[1, 3, ?, ?]`; `?` stands for an open size.
pub(crate) fn shape_text(shape: &[Option<u64>]) -> String {
    let sizes: Vec<_> =
        shape.iter().map(|size| size.map_or("?".to_owned(), |size| size.to_string())).collect();
    format!("[{}]", sizes.join(", "))
}

/// Describes a port that the manifest names and the model lacks. `kind` is "input" or "output".
pub(crate) fn missing_port(kind: &str, name: &str, ports: &[Port]) -> String {
    let names: Vec<_> = ports.iter().map(|port| format!("{:?}", port.name)).collect();
    format!("the model has no {kind} {name:?}; its {kind}s are {}", names.join(", "))
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
            element: match other {
                ValueType::Sequence(_) => "a sequence",
                ValueType::Map { .. } => "a map",
                _ => "no tensor",
            }
            .to_owned(),
            shape: Vec::new(),
        },
    }
}
