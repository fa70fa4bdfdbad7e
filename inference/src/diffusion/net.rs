//! One net of a pipeline. Reads the inputs and outputs from its graph and casts values to their types.
//!
//! Besides [`crate::session`], the only module that names `ort`.

use std::path::Path;
use std::time::{Duration, Instant};

use half::{bf16, f16};
use ndarray::{ArrayD, ArrayViewD};
use ort::memory::AllocationDevice;
use ort::session::{
    HasSelectedOutputs, OutputSelector, RunOptions, Session as OrtSession, SessionInputValue,
};
use ort::value::{DynTensor, Outlet, Tensor, TensorElementType, ValueType};

use super::error::DiffusionError;
use crate::device::Device;
use crate::session::{SessionError, classify};

/// Opens ONNX files on a device. [`Runtime`](crate::session::Runtime) is the only production implementation.
pub trait Opener {
    /// Opens the model in this file, with the files next to it in which its graph keeps tensors.
    ///
    /// # Errors
    /// If the file is not a model, or the device refuses it.
    fn open_file(&self, model: &Path) -> Result<OrtSession, SessionError>;

    /// Returns the device.
    fn device(&self) -> Device;
}

/// A tensor's element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// 16-bit floats with the exponents of 32-bit ones.
    Bf16,
    /// 64-bit integers.
    I64,
    /// 32-bit integers.
    I32,
    /// A type that no pipeline uses, by its ONNX name.
    Other(String),
}

impl Element {
    /// Returns whether this is a floating-point type.
    pub const fn is_float(&self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Returns whether this is an integer type.
    pub const fn is_integer(&self) -> bool {
        matches!(self, Self::I64 | Self::I32)
    }
}

/// An input or output tensor, as the net's graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The tensor's name.
    pub name: String,
    /// The element type.
    pub element: Element,
    /// The size of each axis; `None` where any size is allowed.
    pub shape: Vec<Option<usize>>,
}

impl Port {
    /// Returns the number of axes.
    pub const fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the size of an axis, if the graph fixes it.
    pub fn size(&self, axis: usize) -> Option<usize> {
        self.shape.get(axis).copied().flatten()
    }
}

/// Values for an input. They are cast to the type of the port.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Floats. For an integer port they are truncated toward zero, as optimum does with timesteps.
    Floats(ArrayViewD<'a, f32>),
    /// Integers.
    Integers(ArrayViewD<'a, i64>),
}

/// The values of an input for several runs: cast to the type of the port and copied to the device once.
#[derive(Debug)]
pub struct Shared {
    port: String,
    tensor: DynTensor,
}

/// One opened net.
pub struct Net {
    part: &'static str,
    session: OrtSession,
    device: Device,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    run_time: Duration,
}

impl Net {
    /// Opens `<folder>/<part>/model.onnx`.
    ///
    /// # Errors
    /// [`DiffusionError::File`] if the file is missing, [`DiffusionError::Session`] if it cannot be opened.
    pub fn open(
        folder: &Path,
        part: &'static str,
        opener: &(impl Opener + ?Sized),
    ) -> Result<Self, DiffusionError> {
        let file = folder.join(part).join("model.onnx");
        if !file.is_file() {
            return Err(DiffusionError::file(&file, "the file is missing"));
        }
        let session =
            opener.open_file(&file).map_err(|error| DiffusionError::Session { part, error })?;
        let inputs = session.inputs().iter().map(port).collect();
        let outputs = session.outputs().iter().map(port).collect();
        Ok(Self {
            part,
            session,
            device: opener.device(),
            inputs,
            outputs,
            run_time: Duration::ZERO,
        })
    }

    /// Returns the name of the net's folder.
    pub const fn part(&self) -> &'static str {
        self.part
    }

    /// Returns how long ONNX Runtime has run the net since it was opened, without copying inputs and outputs.
    pub const fn run_time(&self) -> Duration {
        self.run_time
    }

    /// Returns the inputs.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Casts values and copies them to the device, for several runs.
    ///
    /// # Errors
    /// If ONNX Runtime refuses them, or the device has no memory for them.
    pub fn share(&self, port: &Port, values: &Input<'_>) -> Result<Shared, DiffusionError> {
        let tensor = cast(values, &port.element).and_then(|tensor| match self.device {
            Device::Cpu => Ok(tensor),
            Device::Cuda => tensor.to(AllocationDevice::CUDA, 0),
        });
        let tensor = tensor.map_err(|error| self.failed(&error))?;
        Ok(Shared { port: port.name.clone(), tensor })
    }

    fn failed(&self, error: &ort::Error) -> DiffusionError {
        DiffusionError::Session { part: self.part, error: classify(error) }
    }

    /// Runs the net and returns one output as 32-bit floats. Other outputs are not fetched.
    ///
    /// # Errors
    /// If ONNX Runtime refuses an input or fails, or the output contains values that are not finite.
    pub fn run(
        &mut self,
        inputs: &[(&Port, Input<'_>)],
        output: &Port,
    ) -> Result<ArrayD<f32>, DiffusionError> {
        Ok(self.run_for(&[], inputs, &[output])?.remove(0))
    }

    /// Like [`Self::run`], with shared inputs besides, and for several outputs, which are returned in the same order.
    ///
    /// # Errors
    /// Same as [`Self::run`].
    pub fn run_for(
        &mut self,
        shared: &[Shared],
        inputs: &[(&Port, Input<'_>)],
        outputs: &[&Port],
    ) -> Result<Vec<ArrayD<f32>>, DiffusionError> {
        let made = self.run_raw(shared, inputs, outputs).map_err(|error| self.failed(&error))?;
        if made.iter().flatten().all(|value| value.is_finite()) {
            Ok(made)
        } else {
            Err(DiffusionError::NotFinite { part: self.part })
        }
    }

    fn run_raw(
        &mut self,
        shared: &[Shared],
        inputs: &[(&Port, Input<'_>)],
        wanted: &[&Port],
    ) -> ort::Result<Vec<ArrayD<f32>>> {
        let mut values: Vec<(&str, SessionInputValue<'_>)> =
            shared.iter().map(|Shared { port, tensor }| (port.as_str(), tensor.into())).collect();
        for (port, input) in inputs {
            values.push((port.name.as_str(), cast(input, &port.element)?.into()));
        }
        let mut selected = OutputSelector::no_default();
        for output in wanted {
            selected = selected.with(output.name.as_str());
        }
        let options: RunOptions<HasSelectedOutputs> = RunOptions::new()?.with_outputs(selected);
        let started = Instant::now();
        let outputs = self.session.run_with_options(values, &options)?;
        self.run_time += started.elapsed();
        let made = wanted.iter().map(|port| {
            let value = &outputs[port.name.as_str()];
            Ok(match port.element {
                Element::F16 => value.try_extract_array::<f16>()?.mapv(f16::to_f32),
                Element::Bf16 => value.try_extract_array::<bf16>()?.mapv(bf16::to_f32),
                _ => value.try_extract_array::<f32>()?.to_owned(),
            })
        });
        made.collect()
    }
}

fn cast(input: &Input<'_>, element: &Element) -> ort::Result<DynTensor> {
    Ok(match (input, element) {
        (Input::Floats(floats), Element::F32) => Tensor::from_array(floats.to_owned())?.upcast(),
        (Input::Floats(floats), Element::F16) => {
            Tensor::from_array(floats.mapv(f16::from_f32))?.upcast()
        }
        (Input::Floats(floats), Element::Bf16) => {
            Tensor::from_array(floats.mapv(bf16::from_f32))?.upcast()
        }
        (Input::Floats(floats), Element::I64) => {
            Tensor::from_array(floats.mapv(|value| value as i64))?.upcast()
        }
        (Input::Floats(floats), Element::I32) => {
            Tensor::from_array(floats.mapv(|value| value as i32))?.upcast()
        }
        (Input::Integers(ids), Element::I64) => Tensor::from_array(ids.to_owned())?.upcast(),
        (Input::Integers(ids), Element::I32) => {
            Tensor::from_array(ids.mapv(|id| id as i32))?.upcast()
        }
        (Input::Integers(ids), Element::F32) => {
            Tensor::from_array(ids.mapv(|id| id as f32))?.upcast()
        }
        (Input::Integers(ids), Element::F16) => {
            Tensor::from_array(ids.mapv(|id| f16::from_f32(id as f32)))?.upcast()
        }
        (Input::Integers(ids), Element::Bf16) => {
            Tensor::from_array(ids.mapv(|id| bf16::from_f32(id as f32)))?.upcast()
        }
        (_, Element::Other(name)) => {
            return Err(ort::Error::new(format!("no pipeline supports inputs of type {name}")));
        }
    })
}

fn port(outlet: &Outlet) -> Port {
    let (element, shape) = match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => {
            let element = match ty {
                TensorElementType::Float32 => Element::F32,
                TensorElementType::Float16 => Element::F16,
                TensorElementType::Bfloat16 => Element::Bf16,
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
