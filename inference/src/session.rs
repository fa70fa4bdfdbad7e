//! One ONNX Runtime session and the device it runs on. Besides `diffusion/net`, the only module that names `ort`.

mod bound_runs;
mod device;
mod engines;
mod error;
mod io_binding;
mod kept;
mod output_reader;
mod picture_net;
mod placement;
mod providers;
mod runtime;
mod settings;
mod values;

use ndarray::Array4;
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions};
use ort::value::{Outlet, ValueType};

pub(crate) use self::bound_runs::{BoundRuns, HeldInputs};
pub(crate) use self::device::{OpenSession, share as share_device};
pub use self::engines::{EngineBuilder, EngineSettings};
pub(crate) use self::error::classify;
pub use self::error::{Full, SessionError};
pub use self::kept::Keeping;
pub(crate) use self::kept::check_same;
pub use self::picture_net::PictureNet;
pub use self::placement::Placement;
pub use self::runtime::{ExtraFile, Runtime};
pub use self::settings::{Batching, DevicePolicy, GpuSettings, PrecisionPolicy, RuntimeSettings};
use self::values::{input_value, read_flat, read_output};
pub use crate::tensor::Port;
use crate::tensor::{Element, Format};

/// One opened model. Its inputs and outputs are f32 here, whatever the graph stores.
pub struct Session(OpenSession);

impl Session {
    pub fn inputs(&self) -> Vec<Port> {
        self.0.inputs().iter().map(port).collect()
    }

    pub fn outputs(&self) -> Vec<Port> {
        self.0.outputs().iter().map(port).collect()
    }

    /// Runs the model on a picture, `[batch, channel, row, column]`, and returns the values of one output in row-major
    /// order, whatever its shape. The output holds f32, f16 or bytes.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses the input or fails.
    pub fn run_flat(
        &mut self,
        (input_name, format): (&str, Format),
        input: &Array4<f32>,
        output_name: &str,
    ) -> Result<Vec<f32>, SessionError> {
        let _device = device::share();
        let mut run = || -> ort::Result<Vec<f32>> {
            let input = input_value(input, format)?;
            let outputs = self.0.run(ort::inputs![input_name => input])?;
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
        let _device = device::share();
        let mut run = || -> ort::Result<Array4<f32>> {
            let options: RunOptions<HasSelectedOutputs> =
                RunOptions::new()?.with_outputs(OutputSelector::no_default().with(output));
            let [(first, a), (second, b)] = inputs;
            let (a, b) = (input_value(a, format)?, input_value(b, format)?);
            let outputs =
                self.0.run_with_options(ort::inputs![first => a, second => b], &options)?;
            read_output(&outputs[output], output, format)
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
            element: ty.to_string(),
            shape: shape.iter().map(|size| u64::try_from(*size).ok()).collect(),
        },
        other => Port {
            name: outlet.name().to_owned(),
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
