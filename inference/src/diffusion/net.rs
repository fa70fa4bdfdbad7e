//! One net of a pipeline: what it takes and gives, read from its graph, and a run with the casts that needs.
//!
//! With `models/session` the only place that names `ort`.

use std::path::Path;
use std::time::{Duration, Instant};

use half::f16;
use ndarray::{ArrayD, ArrayViewD};
use ort::session::{
    HasSelectedOutputs, OutputSelector, RunOptions, Session as OrtSession, SessionInputValue,
};
use ort::value::{Outlet, Tensor, TensorElementType, ValueType};

use super::error::DiffusionError;
use crate::session::{SessionError, sentence};

/// Opens ONNX files on the device that the process runs models on.
pub trait Opener {
    /// Opens the model in this file, and the files beside it that its graph keeps tensors in.
    ///
    /// # Errors
    /// When the file is no model, or the device refuses it.
    fn open_file(&self, model: &Path) -> Result<OrtSession, SessionError>;
}

/// A tensor's element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// 64-bit integers.
    I64,
    /// 32-bit integers.
    I32,
    /// A type that no pipeline has use for, as ONNX names it.
    Other(String),
}

impl Element {
    /// Whether it is a type of floats.
    pub const fn is_float(&self) -> bool {
        matches!(self, Self::F32 | Self::F16)
    }

    /// Whether it is a type of integers.
    pub const fn is_integer(&self) -> bool {
        matches!(self, Self::I64 | Self::I32)
    }
}

/// A tensor that a net takes or gives, as its graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The tensor's name.
    pub name: String,
    /// Its element type.
    pub element: Element,
    /// Its sizes; `None` is a size that may vary.
    pub shape: Vec<Option<usize>>,
}

impl Port {
    /// How many axes it has.
    pub const fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The size of an axis, where the graph fixes it.
    pub fn size(&self, axis: usize) -> Option<usize> {
        self.shape.get(axis).copied().flatten()
    }
}

/// What goes into a port; it is cast to the port's type on the way.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Floats; towards zero where the port wants integers, as optimum casts timesteps.
    Floats(ArrayViewD<'a, f32>),
    /// Integers.
    Integers(ArrayViewD<'a, i64>),
}

/// One net, opened.
pub struct Net {
    part: &'static str,
    session: OrtSession,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    ran: Duration,
}

impl Net {
    /// Opens `<folder>/<part>/model.onnx`.
    ///
    /// # Errors
    /// [`DiffusionError::File`] when the file is missing, [`DiffusionError::Session`] when it cannot be opened.
    pub fn open(
        folder: &Path,
        part: &'static str,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let file = folder.join(part).join("model.onnx");
        if !file.is_file() {
            return Err(DiffusionError::file(&file, "there is no such file"));
        }
        let session =
            opener.open_file(&file).map_err(|said| DiffusionError::Session { part, said })?;
        let inputs = session.inputs().iter().map(port).collect();
        let outputs = session.outputs().iter().map(port).collect();
        Ok(Self { part, session, inputs, outputs, ran: Duration::ZERO })
    }

    /// The part's folder.
    pub const fn part(&self) -> &'static str {
        self.part
    }

    /// How long ONNX Runtime has run it since it was opened, without what goes in and comes out being copied.
    pub const fn ran(&self) -> Duration {
        self.ran
    }

    /// What the net takes.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// What the net gives.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Runs the net and returns one output as 32-bit floats. No other output is computed into memory.
    ///
    /// # Errors
    /// When ONNX Runtime refuses an input or fails, or a value of the output is not finite.
    pub fn run(
        &mut self,
        inputs: &[(&Port, Input<'_>)],
        output: &Port,
    ) -> Result<ArrayD<f32>, DiffusionError> {
        let part = self.part;
        let given = self
            .run_raw(inputs, output)
            .map_err(|error| DiffusionError::Session { part, said: sentence(&error) })?;
        if given.iter().all(|value| value.is_finite()) {
            Ok(given)
        } else {
            Err(DiffusionError::NotFinite { part })
        }
    }

    fn run_raw(
        &mut self,
        inputs: &[(&Port, Input<'_>)],
        output: &Port,
    ) -> ort::Result<ArrayD<f32>> {
        let mut values = Vec::with_capacity(inputs.len());
        for (port, input) in inputs {
            values.push((port.name.as_str(), cast(input, &port.element)?));
        }
        let name = output.name.as_str();
        let options: RunOptions<HasSelectedOutputs> =
            RunOptions::new()?.with_outputs(OutputSelector::no_default().with(name));
        let started = Instant::now();
        let outputs = self.session.run_with_options(values, &options)?;
        self.ran += started.elapsed();
        match output.element {
            Element::F16 => Ok(outputs[name].try_extract_array::<f16>()?.mapv(f16::to_f32)),
            _ => Ok(outputs[name].try_extract_array::<f32>()?.to_owned()),
        }
    }
}

fn cast(input: &Input<'_>, element: &Element) -> ort::Result<SessionInputValue<'static>> {
    match (input, element) {
        (Input::Floats(floats), Element::F32) => Ok(Tensor::from_array(floats.to_owned())?.into()),
        (Input::Floats(floats), Element::F16) => {
            Ok(Tensor::from_array(floats.mapv(f16::from_f32))?.into())
        }
        (Input::Floats(floats), Element::I64) => {
            Ok(Tensor::from_array(floats.mapv(|value| value as i64))?.into())
        }
        (Input::Floats(floats), Element::I32) => {
            Ok(Tensor::from_array(floats.mapv(|value| value as i32))?.into())
        }
        (Input::Integers(ids), Element::I64) => Ok(Tensor::from_array(ids.to_owned())?.into()),
        (Input::Integers(ids), Element::I32) => {
            Ok(Tensor::from_array(ids.mapv(|id| id as i32))?.into())
        }
        (Input::Integers(ids), Element::F32) => {
            Ok(Tensor::from_array(ids.mapv(|id| id as f32))?.into())
        }
        (Input::Integers(ids), Element::F16) => {
            Ok(Tensor::from_array(ids.mapv(|id| f16::from_f32(id as f32)))?.into())
        }
        (_, Element::Other(name)) => {
            Err(ort::Error::new(format!("no pipeline has values of type {name}")))
        }
    }
}

fn port(outlet: &Outlet) -> Port {
    let (element, shape) = match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => {
            let element = match ty {
                TensorElementType::Float32 => Element::F32,
                TensorElementType::Float16 => Element::F16,
                TensorElementType::Int64 => Element::I64,
                TensorElementType::Int32 => Element::I32,
                other => Element::Other(other.to_string()),
            };
            (element, shape.iter().map(|size| usize::try_from(*size).ok()).collect())
        }
        other => (Element::Other(format!("{other:?}")), Vec::new()),
    };
    Port { name: outlet.name().to_owned(), element, shape }
}
