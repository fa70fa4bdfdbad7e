//! Input and output tensors of picture nets that stay on the device between runs (ONNX Runtime's I/O binding).
//! [`super::bound_runs`] does the same for nets with several inputs.
//!
//! By default, ONNX Runtime allocates the output in every run, on the device and on the host. Here each shape has its input
//! and output on both sides, all allocated once. Because their addresses do not change, CUDA can record the kernels of a
//! run and launch them as one graph.

use std::collections::VecDeque;

use ndarray::Array4;
use ort::session::{IoBinding, RunOptions, Session as OrtSession};
use ort::value::{DynTensor, TensorElementType};

use super::device;
use super::kept::{Keeping, KeptShapes, MAX_SHAPES, check_same_output, on_device, on_host};
use super::output_reader::OutputReader;
use crate::device::Device;
use crate::onnx::pictures::PICTURE;
use crate::output::Output;

/// The kept tensors of a net, by shape.
pub struct ShapeBindings {
    device: Device,
    kept: KeptShapes<ShapeBinding>,
    /// Recent shapes without kept tensors, the newest last.
    seen: VecDeque<[usize; 4]>,
    /// Whether a bound run gave the output of an unbound one.
    is_proven: bool,
}

/// The kept tensors of one shape.
struct ShapeBinding {
    shape: [usize; 4],
    binding: IoBinding,
    options: RunOptions,
    host_input: DynTensor,
    device_input: DynTensor,
    /// In the order of [`OutputReader::names`].
    outputs: Vec<KeptOutput>,
}

struct KeptOutput {
    on_device: DynTensor,
    on_host: DynTensor,
}

impl ShapeBindings {
    /// Creates the empty bindings of a net on `device`; `None` if its session keeps nothing. On a CPU both sides are
    /// host memory: the same steps run, without gain.
    pub fn new(device: Device, keeping: Keeping) -> Option<Self> {
        Some(Self {
            device,
            kept: KeptShapes::new(keeping)?,
            seen: VecDeque::new(),
            is_proven: false,
        })
    }

    /// Returns the number of shapes with kept tensors.
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn unbound_options(&self) -> ort::Result<RunOptions> {
        self.kept.unbound_options()
    }

    /// Runs on the tensors kept for the input's shape; `None` if there are none.
    ///
    /// # Errors
    /// If the device fails. All kept tensors are then released, which leaves more memory for a retry.
    pub fn run(
        &mut self,
        session: &mut OrtSession,
        reader: OutputReader,
        input: &Array4<u8>,
    ) -> ort::Result<Option<Output>> {
        let shape = input.shape();
        let Some(binding) = self.kept.find(|binding| binding.shape == shape) else {
            self.prepare_unbound();
            return Ok(None);
        };
        let output = binding.run(session, reader, input);
        if output.is_err() {
            self.kept.clear();
        }
        output.map(Some)
    }

    /// Prepares for a run that is not bound.
    pub fn prepare_unbound(&mut self) {
        self.kept.prepare_unbound();
    }

    /// Keeps nothing from now on.
    pub fn turn_off(&mut self) {
        self.kept.turn_off();
    }

    /// Allocates kept tensors for the shape of an input that just ran unbound, if the shape has occurred before. Checks that
    /// a bound run gives the same output: for the first shape, and for every graph.
    ///
    /// # Errors
    /// If the outputs differ, or the device fails. The caller then continues without kept tensors.
    pub fn keep(
        &mut self,
        session: &mut OrtSession,
        reader: OutputReader,
        input: &Array4<u8>,
        output: &Output,
    ) -> ort::Result<()> {
        let shape = input.dim().into();
        if !self.is_repeated(shape) {
            return Ok(());
        }
        let records = self.kept.records();
        // While a model loads, nothing is recorded; a later run of this shape tries again.
        let Some(_device) = device::claim(records) else { return Ok(()) };
        self.seen.retain(|seen| *seen != shape);
        let make =
            |options| ShapeBinding::new(session, self.device, reader, (input, output), options);
        let Some(binding) = self.kept.add(make)? else { return Ok(()) };
        // The first run of a graph records it, and the second one replays it.
        let runs = if records { 2 } else { usize::from(!self.is_proven) };
        for _ in 0..runs {
            check_same_output(output, &binding.run(session, reader, input)?)?;
        }
        self.is_proven = true;
        Ok(())
    }

    /// Returns whether a shape is among the recent ones, and adds it to them.
    fn is_repeated(&mut self, shape: [usize; 4]) -> bool {
        let is_known = self.seen.contains(&shape);
        if !is_known {
            self.seen.push_back(shape);
            if self.seen.len() > MAX_SHAPES {
                self.seen.pop_front();
            }
        }
        is_known
    }
}

impl ShapeBinding {
    fn new(
        session: &OrtSession,
        device: Device,
        reader: OutputReader,
        (input, output): (&Array4<u8>, &Output),
        options: RunOptions,
    ) -> ort::Result<Self> {
        const BYTES: TensorElementType = TensorElementType::Uint8;
        const FLOATS: TensorElementType = TensorElementType::Float32;
        let mut binding = session.create_binding()?;
        let shape = || input.shape().to_vec();
        let device_input = on_device(session, device, BYTES, shape())?;
        binding.bind_input(PICTURE, &device_input)?;
        let made = match output {
            Output::Maps(maps) => vec![(FLOATS, maps.shape().to_vec())],
            Output::Pictures { samples, extremes } => {
                vec![(BYTES, samples.shape().to_vec()), (FLOATS, vec![extremes.len(), 3, 1, 1])]
            }
        };
        let mut outputs = Vec::new();
        for (name, (element, shape)) in reader.names().iter().zip(made) {
            let mut bound = on_device(session, device, element, shape.clone())?;
            binding.bind_output(*name, &mut bound)?;
            outputs.push(KeptOutput { on_device: bound, on_host: on_host(element, shape)? });
        }
        Ok(Self {
            shape: input.dim().into(),
            binding,
            options,
            host_input: on_host(BYTES, shape())?,
            device_input,
            outputs,
        })
    }

    fn run(
        &mut self,
        session: &mut OrtSession,
        reader: OutputReader,
        input: &Array4<u8>,
    ) -> ort::Result<Output> {
        self.host_input.try_extract_array_mut::<u8>()?.assign(input);
        self.host_input.copy_into(&mut self.device_input)?;
        // The returned values alias the bound outputs.
        drop(session.run_binding_with_options(&self.binding, &self.options)?);
        for KeptOutput { on_device, on_host } in &mut self.outputs {
            on_device.copy_into(on_host)?;
        }
        let outputs: Vec<_> = self.outputs.iter().map(|output| &output.on_host).collect();
        reader.read(&outputs)
    }
}
