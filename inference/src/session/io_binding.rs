//! Input and output tensors that stay on the device between runs (ONNX Runtime's I/O binding), for nets with one input
//! and one output. [`super::bound_runs`] does the same for nets with several inputs.
//!
//! By default, ONNX Runtime allocates the output in every run and copies input and output through pageable host memory.
//! Here each shape has its input and output on the device and staging buffers in pinned host memory, all allocated
//! once. Because their addresses do not change, CUDA can record the kernels of a run and launch them as one graph.

use std::collections::VecDeque;

use ndarray::Array4;
use ort::memory::MemoryType;
use ort::session::{IoBinding, RunOptions, Session as OrtSession};
use ort::value::DynTensor;

use super::kept::{Keeping, KeptShapes, MAX_SHAPES, Memory, check_same};
use super::values::{onnx_type, read_output, write_input};
use crate::device::Device;
use crate::tensor::Tensors;

/// The kept tensors of a net, by shape.
pub struct ShapeBindings {
    memory: Memory,
    kept: KeptShapes<ShapeBinding>,
    /// Recent shapes without kept tensors, the newest last.
    seen: VecDeque<[usize; 4]>,
}

/// The kept tensors of one shape.
struct ShapeBinding {
    shape: [usize; 4],
    input: String,
    output: String,
    binding: IoBinding,
    options: RunOptions,
    host_input: DynTensor,
    device_input: DynTensor,
    device_output: DynTensor,
    host_output: DynTensor,
}

impl ShapeBindings {
    /// Creates the empty bindings of a net on `device`; `None` if its session keeps nothing. On a CPU both sides are
    /// host memory: the same steps run, without gain.
    pub fn new(device: Device, keeping: Keeping) -> Option<Self> {
        Some(Self {
            memory: Memory(device),
            kept: KeptShapes::new(keeping)?,
            seen: VecDeque::new(),
        })
    }

    /// Returns the number of shapes with kept tensors.
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns the options of an unbound run.
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
        tensors: Tensors<'_>,
        input: &Array4<f32>,
    ) -> ort::Result<Option<Array4<f32>>> {
        let Some(binding) = self.kept.find(|binding| binding.fits(tensors, input)) else {
            return Ok(None);
        };
        let output = binding.run(session, tensors, input);
        if output.is_err() {
            self.kept.clear();
        }
        output.map(Some)
    }

    /// Allocates kept tensors for the shape of an input that just ran unbound, if the shape has occurred before, and
    /// checks that the bound run gives the same output.
    ///
    /// # Errors
    /// If the outputs differ, or the device fails. The caller then continues without kept tensors.
    pub fn keep(
        &mut self,
        session: &mut OrtSession,
        tensors: Tensors<'_>,
        input: &Array4<f32>,
        output: &Array4<f32>,
    ) -> ort::Result<()> {
        if !self.is_repeated(input.dim().into()) {
            return Ok(());
        }
        let memory = self.memory;
        let make = |options| ShapeBinding::new(session, memory, tensors, (input, output), options);
        let Some(binding) = self.kept.add(make)? else { return Ok(()) };
        // Twice: with graphs, the first run records and the second one replays.
        for _ in 0..2 {
            check_same(output, &binding.run(session, tensors, input)?)?;
        }
        Ok(())
    }

    /// Returns whether a shape is among the recent ones. Removes it from them if so, because it will get kept tensors;
    /// otherwise adds it.
    fn is_repeated(&mut self, shape: [usize; 4]) -> bool {
        let before = self.seen.iter().position(|seen| *seen == shape);
        if let Some(at) = before {
            self.seen.remove(at);
        } else {
            self.seen.push_back(shape);
            if self.seen.len() > MAX_SHAPES {
                self.seen.pop_front();
            }
        }
        before.is_some()
    }
}

impl ShapeBinding {
    fn new(
        session: &OrtSession,
        memory: Memory,
        tensors: Tensors<'_>,
        (input, output): (&Array4<f32>, &Array4<f32>),
        options: RunOptions,
    ) -> ort::Result<Self> {
        let (from, to) = (tensors.input_format, tensors.output_format);
        let (given, made) = (onnx_type(from.element), onnx_type(to.element));
        let given_shape = || from.layout.arrange(input.dim().into());
        let made_shape = || to.layout.arrange(output.dim().into());
        let device_input = memory.on_device(session, given, given_shape())?;
        let mut device_output = memory.on_device(session, made, made_shape())?;
        let mut binding = session.create_binding()?;
        binding.bind_input(tensors.input, &device_input)?;
        binding.bind_output(tensors.output, &mut device_output)?;
        Ok(Self {
            shape: input.dim().into(),
            input: tensors.input.to_owned(),
            output: tensors.output.to_owned(),
            binding,
            options,
            host_input: memory.on_host(session, MemoryType::CPUInput, given, given_shape())?,
            device_input,
            device_output,
            host_output: memory.on_host(session, MemoryType::CPUOutput, made, made_shape())?,
        })
    }

    fn fits(&self, tensors: Tensors<'_>, input: &Array4<f32>) -> bool {
        self.shape == input.shape() && self.input == tensors.input && self.output == tensors.output
    }

    fn run(
        &mut self,
        session: &mut OrtSession,
        tensors: Tensors<'_>,
        input: &Array4<f32>,
    ) -> ort::Result<Array4<f32>> {
        write_input(input, &tensors, &mut self.host_input)?;
        self.host_input.copy_into(&mut self.device_input)?;
        // The returned values alias the bound output.
        drop(session.run_binding_with_options(&self.binding, &self.options)?);
        self.device_output.copy_into(&mut self.host_output)?;
        read_output(&self.host_output, &tensors)
    }
}
