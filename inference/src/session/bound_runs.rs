//! Bound runs of a net with several inputs; most inputs stay the same for many runs. Used for the denoising net of a
//! pipeline.
//!
//! Each set of shapes has its inputs and its output on the device, allocated once, and host memory to copy the output to.
//! Inputs that stay the same are copied once, when they are new; the others in every run.

use std::time::{Duration, Instant};

use ort::session::{IoBinding, RunOptions, Session as OrtSession};
use ort::value::{DynTensor, TensorElementType};

use super::device;
use super::kept::{Keeping, KeptShapes, on_device, on_host};
use crate::device::Device;

pub type NamedTensor = (String, DynTensor);

#[derive(Debug)]
pub struct HeldInputs {
    /// Unique among all inputs of the same net.
    pub number: u64,
    /// The inputs that stay the same, on the device.
    pub fixed: Vec<NamedTensor>,
    /// The inputs that change, in host memory.
    pub changing: Vec<NamedTensor>,
}

impl HeldInputs {
    pub fn tensors(&self) -> impl Iterator<Item = &NamedTensor> {
        self.fixed.iter().chain(&self.changing)
    }
}

/// The kept tensors of a net, by the shapes of its inputs.
pub struct BoundRuns {
    device: Device,
    kept: KeptShapes<BoundRun>,
}

impl BoundRuns {
    /// Creates the empty bindings of a net on `device`; `None` if its session keeps nothing.
    pub fn new(device: Device, keeping: Keeping) -> Option<Self> {
        Some(Self { device, kept: KeptShapes::new(keeping)? })
    }

    /// Returns the number of sets of shapes with kept tensors.
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    /// Runs on the tensors kept for these shapes. Returns the output, as `read` reads it, and the duration; `None` if there
    /// are none.
    ///
    /// # Errors
    /// If the device fails. All kept tensors are then released, which leaves more memory for a retry.
    pub fn run<T>(
        &mut self,
        session: &mut OrtSession,
        inputs: &HeldInputs,
        output: &str,
        read: impl FnOnce(&DynTensor) -> ort::Result<T>,
    ) -> ort::Result<Option<(T, Duration)>> {
        let Some(run) = self.kept.find(|run| run.fits(inputs, output)) else { return Ok(None) };
        let made = run.run(session, inputs).and_then(|ran| Ok((read(&run.host_output)?, ran)));
        if made.is_err() {
            self.kept.clear();
        }
        made.map(Some)
    }

    /// Keeps nothing from now on.
    pub fn turn_off(&mut self) {
        self.kept.turn_off();
    }

    /// Allocates tensors for the shapes of a run that was not bound, and repeats it on them to prove that they give the same.
    /// The output of the unbound run has this element type and shape; `check` compares.
    ///
    /// # Errors
    /// If `check` fails, or the device does. The caller then continues without kept tensors.
    pub fn keep(
        &mut self,
        session: &mut OrtSession,
        inputs: &HeldInputs,
        output: &str,
        (element, shape): (TensorElementType, &[usize]),
        check: impl FnOnce(&DynTensor) -> ort::Result<()>,
    ) -> ort::Result<()> {
        let _device = device::share();
        let (device, like) = (self.device, (output, element, shape.to_vec()));
        let bind = |options| BoundRun::new(session, device, inputs, like, options);
        let Some(run) = self.kept.add(bind)? else { return Ok(()) };
        run.run(session, inputs)?;
        check(&run.host_output)
    }
}

/// The kept tensors of one set of shapes.
struct BoundRun {
    binding: IoBinding,
    options: RunOptions,
    /// In the order of [`HeldInputs::tensors`].
    device_inputs: Vec<NamedTensor>,
    /// The inputs whose fixed tensors were copied.
    holds: Option<u64>,
    output: String,
    device_output: DynTensor,
    host_output: DynTensor,
}

impl BoundRun {
    fn new(
        session: &OrtSession,
        device: Device,
        inputs: &HeldInputs,
        (output, element, shape): (&str, TensorElementType, Vec<usize>),
        options: RunOptions,
    ) -> ort::Result<Self> {
        let mut binding = session.create_binding()?;
        let mut device_inputs = Vec::new();
        for (name, tensor) in inputs.tensors() {
            let like = tensor.shape().iter().map(|size| *size as usize).collect();
            let kept = on_device(session, device, *tensor.data_type(), like)?;
            binding.bind_input(name, &kept)?;
            device_inputs.push((name.clone(), kept));
        }
        let mut device_output = on_device(session, device, element, shape.clone())?;
        binding.bind_output(output, &mut device_output)?;
        Ok(Self {
            binding,
            options,
            device_inputs,
            holds: None,
            output: output.to_owned(),
            device_output,
            host_output: on_host(element, shape)?,
        })
    }

    fn fits(&self, inputs: &HeldInputs, output: &str) -> bool {
        let shapes = self.device_inputs.iter().map(|(name, tensor)| (name, tensor.shape()));
        self.output == output
            && shapes.eq(inputs.tensors().map(|(name, tensor)| (name, tensor.shape())))
    }

    /// Returns how long ONNX Runtime ran, without the copies.
    fn run(&mut self, session: &mut OrtSession, inputs: &HeldInputs) -> ort::Result<Duration> {
        let (fixed, changing) = self.device_inputs.split_at_mut(inputs.fixed.len());
        if self.holds != Some(inputs.number) {
            self.holds = None;
            copy(&inputs.fixed, fixed)?;
            self.holds = Some(inputs.number);
        }
        copy(&inputs.changing, changing)?;
        let started = Instant::now();
        // The returned values alias the bound output.
        drop(session.run_binding_with_options(&self.binding, &self.options)?);
        let ran = started.elapsed();
        self.device_output.copy_into(&mut self.host_output)?;
        Ok(ran)
    }
}

fn copy(from: &[NamedTensor], to: &mut [NamedTensor]) -> ort::Result<()> {
    for ((_, from), (_, to)) in from.iter().zip(to) {
        from.copy_into(to)?;
    }
    Ok(())
}
