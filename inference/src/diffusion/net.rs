//! One net of a pipeline. Reads the inputs and outputs from its graph and casts values to their types.
//!
//! Besides [`crate::session`], the only module that names `ort`.

mod cast;

use std::path::Path;
use std::time::{Duration, Instant};

use ndarray::{ArrayD, ArrayViewD};
use ort::memory::AllocationDevice;
use ort::session::{
    HasSelectedOutputs, OutputSelector, RunOptions, Session as OrtSession, SessionInputValue,
};
use ort::value::{DynTensor, Outlet, TensorElementType, ValueType};
use tracing::warn;

pub use self::cast::{Element, Input};
use self::cast::{cast, fill, onnx_type, read};
use super::error::DiffusionError;
use crate::device::Device;
use crate::session::{
    BoundRuns, HeldInputs, Keeping, OpenSession, Runtime, SessionError, check_same, classify,
    share_device,
};

/// An input or output tensor, as the net's graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    pub element: Element,
    /// The size of each axis; `None` where any size is allowed.
    pub shape: Vec<Option<usize>>,
}

impl Port {
    pub const fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the size of an axis, if the graph fixes it.
    pub fn size(&self, axis: usize) -> Option<usize> {
        self.shape.get(axis).copied().flatten()
    }
}

/// The inputs of several runs, cast to the types of their ports. Those that stay the same are copied to the device once.
#[derive(Debug)]
pub struct Prepared {
    part: &'static str,
    held: HeldInputs,
}

impl Prepared {
    /// Writes values into an input that changes: to all of its rows if there is only one, and to the start of its second
    /// axis if the values are fewer there. The rest of the input stays as it is.
    ///
    /// # Errors
    /// If the input has another shape, or was not prepared as a changing input.
    pub fn write(
        &mut self,
        port: &Port,
        values: ArrayViewD<'_, f32>,
    ) -> Result<(), DiffusionError> {
        let changing = &mut self.held.changing;
        let found = changing.iter_mut().find(|(name, _)| *name == port.name);
        let written = match found {
            Some((_, tensor)) => fill(tensor, &Input::Floats(values), &port.element),
            None => Err(ort::Error::new(format!("input {:?} does not change", port.name))),
        };
        written.map_err(|error| failed(self.part, &error))
    }
}

pub struct Net {
    part: &'static str,
    device: Device,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    run_time: Duration,
    /// Tensors kept on the device; `None` if the net does not keep any.
    bound: Option<BoundRuns>,
    /// How many inputs were prepared.
    prepared: u64,
    session: OpenSession,
}

impl Net {
    /// Opens `<folder>/<part>/model.onnx`.
    ///
    /// # Errors
    /// [`DiffusionError::File`] if the file is missing, [`DiffusionError::Session`] if it cannot be opened.
    pub fn open(
        folder: &Path,
        part: &'static str,
        runtime: &Runtime,
    ) -> Result<Self, DiffusionError> {
        Self::open_keeping(folder, part, runtime, Keeping::Nothing)
    }

    /// Same, for a net that runs many times with inputs of the same shapes, which may keep its tensors on the device.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub fn open_repeated(
        folder: &Path,
        part: &'static str,
        runtime: &Runtime,
    ) -> Result<Self, DiffusionError> {
        // No CUDA graphs: up to ONNX Runtime 1.30, recorded kernels of `Concat` and `Split` read addresses from host memory
        // that was freed after the recording. Whether 1.31 keeps it for all of them has not been tried on a card.
        Self::open_keeping(folder, part, runtime, runtime.keeping())
    }

    fn open_keeping(
        folder: &Path,
        part: &'static str,
        runtime: &Runtime,
        keeping: Keeping,
    ) -> Result<Self, DiffusionError> {
        let file = folder.join(part).join("model.onnx");
        if !file.is_file() {
            return Err(DiffusionError::file(&file, "the file is missing"));
        }
        let session =
            runtime.open_file(&file).map_err(|error| DiffusionError::Session { part, error })?;
        let inputs = session.inputs().iter().map(port).collect();
        let outputs = session.outputs().iter().map(port).collect();
        let device = runtime.device();
        Ok(Self {
            part,
            device,
            inputs,
            outputs,
            run_time: Duration::ZERO,
            bound: BoundRuns::new(device, keeping),
            prepared: 0,
            session: session.into(),
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

    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Returns the number of sets of shapes whose tensors are kept on the device.
    pub fn kept_shapes(&self) -> usize {
        self.bound.as_ref().map_or(0, BoundRuns::len)
    }

    /// Prepares the inputs of several runs: `fixed` stay the same, and `changing` have these values at first.
    ///
    /// # Errors
    /// If ONNX Runtime refuses them, or the device has no memory for them.
    pub fn prepare(
        &mut self,
        fixed: &[(&Port, Input<'_>)],
        changing: &[(&Port, Input<'_>)],
    ) -> Result<Prepared, DiffusionError> {
        self.prepared += 1;
        let _device = share_device();
        let fixed = fixed.iter().map(|(port, values)| {
            let tensor = cast(values, &port.element)?;
            let tensor = match self.device {
                Device::Cpu => tensor,
                Device::Cuda => tensor.to(AllocationDevice::CUDA, 0)?,
            };
            Ok((port.name.clone(), tensor))
        });
        let changing = changing
            .iter()
            .map(|(port, values)| Ok((port.name.clone(), cast(values, &port.element)?)));
        let held = fixed.collect::<ort::Result<_>>().and_then(|fixed| {
            Ok(HeldInputs {
                number: self.prepared,
                fixed,
                changing: changing.collect::<ort::Result<_>>()?,
            })
        });
        let held = held.map_err(|error| failed(self.part, &error))?;
        Ok(Prepared { part: self.part, held })
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
        Ok(self.run_for(inputs, &[output])?.remove(0))
    }

    /// Like [`Self::run`], for several outputs, which are returned in the same order.
    ///
    /// # Errors
    /// Same as [`Self::run`].
    pub fn run_for(
        &mut self,
        inputs: &[(&Port, Input<'_>)],
        outputs: &[&Port],
    ) -> Result<Vec<ArrayD<f32>>, DiffusionError> {
        let _device = share_device();
        let cast = inputs.iter().map(|(port, input)| {
            Ok((port.name.as_str(), SessionInputValue::from(cast(input, &port.element)?)))
        });
        let made =
            cast.collect::<ort::Result<_>>().and_then(|values| self.run_raw(values, outputs));
        let made = made.map_err(|error| failed(self.part, &error))?;
        for output in &made {
            self.check_finite(output)?;
        }
        Ok(made)
    }

    /// Like [`Self::run`], with prepared inputs, and without checking that the output is finite. Where the net keeps
    /// tensors, the first run with inputs of these shapes is repeated with kept ones; if the outputs differ, the net
    /// continues without (logged).
    ///
    /// # Errors
    /// If ONNX Runtime refuses an input or fails.
    pub fn run_prepared(
        &mut self,
        Prepared { held, .. }: &Prepared,
        output: &Port,
    ) -> Result<ArrayD<f32>, DiffusionError> {
        let device = share_device();
        if let Some(bound) = &mut self.bound {
            let read = |made: &DynTensor| read(made, &output.element);
            let made = bound.run(&mut self.session, held, &output.name, read);
            if let Some((made, ran)) = made.map_err(|error| failed(self.part, &error))? {
                self.run_time += ran;
                return Ok(made);
            }
        }
        let values = held.tensors().map(|(name, tensor)| (name.as_str(), tensor.into())).collect();
        let made = self.run_raw(values, &[output]);
        let made = made.map_err(|error| failed(self.part, &error))?.remove(0);
        drop(device);
        // NaN differs from itself.
        if made.iter().all(|value| value.is_finite())
            && let Some(bound) = &mut self.bound
            && let Err(error) = keep(bound, &mut self.session, held, output, &made)
        {
            let shared = share_device();
            bound.turn_off();
            drop(shared);
            match classify(&error) {
                error @ SessionError::DeviceLost(_) => {
                    return Err(DiffusionError::Session { part: self.part, error });
                }
                error => {
                    let part = self.part;
                    warn!(%error, "Running the {part} without tensors kept on the device");
                }
            }
        }
        Ok(made)
    }

    /// Checks values that the net returned.
    ///
    /// # Errors
    /// [`DiffusionError::NotFinite`] if one of them is NaN or infinite.
    pub fn check_finite<'a>(
        &self,
        made: impl IntoIterator<Item = &'a f32>,
    ) -> Result<(), DiffusionError> {
        if made.into_iter().all(|value| value.is_finite()) {
            Ok(())
        } else {
            Err(DiffusionError::NotFinite { part: self.part })
        }
    }

    fn run_raw(
        &mut self,
        values: Vec<(&str, SessionInputValue<'_>)>,
        wanted: &[&Port],
    ) -> ort::Result<Vec<ArrayD<f32>>> {
        let mut selected = OutputSelector::no_default();
        for output in wanted {
            selected = selected.with(output.name.as_str());
        }
        let options: RunOptions<HasSelectedOutputs> = RunOptions::new()?.with_outputs(selected);
        let started = Instant::now();
        let outputs = self.session.run_with_options(values, &options)?;
        self.run_time += started.elapsed();
        wanted.iter().map(|port| read(&outputs[port.name.as_str()], &port.element)).collect()
    }
}

fn failed(part: &'static str, error: &ort::Error) -> DiffusionError {
    DiffusionError::Session { part, error: classify(error) }
}

/// Allocates kept tensors with the shapes of an unbound run, and compares a bound run with its output.
fn keep(
    bound: &mut BoundRuns,
    session: &mut OrtSession,
    inputs: &HeldInputs,
    output: &Port,
    made: &ArrayD<f32>,
) -> ort::Result<()> {
    let like = (onnx_type(&output.element)?, made.shape());
    bound.keep(session, inputs, &output.name, like, |again| {
        check_same(made, &read(again, &output.element)?)
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
