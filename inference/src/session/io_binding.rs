//! Input and output tensors that stay on the device between runs (ONNX Runtime's I/O binding).
//!
//! By default, ONNX Runtime allocates the output in every run and copies input and output through pageable host memory.
//! Here each shape has its input and output on the device and staging buffers in pinned host memory, all allocated
//! once. Because their addresses do not change, CUDA can record the kernels of a run and launch them as one graph.

use std::collections::VecDeque;

use ndarray::Array4;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, RunOptions, Session as OrtSession};
use ort::value::DynTensor;

use super::values::{onnx_type, read_output, write_input};
use crate::device::Device;
use crate::tensor::{Format, Tensors, relative_difference};

/// Shapes whose tensors are kept: one per batch size.
const MAX_SHAPES: usize = 8;

/// The largest accepted difference between a bound run and an unbound one, relative to the largest value. Another order
/// of summation causes less, an input that never reached the device far more.
const TOLERANCE: f32 = 0.01;

/// The run option that names a CUDA graph; -1 runs without one.
const GRAPH_OPTION: &str = "gpu_graph_id";

/// The kept tensors of a net, by shape.
pub struct ShapeBindings {
    memory: Memory,
    has_graphs: bool,
    /// Recorded CUDA graphs. An id is never reused: CUDA would replay the first recording.
    graphs: i32,
    bindings: Vec<ShapeBinding>,
    /// Recent shapes without kept tensors, the newest last.
    seen: VecDeque<[usize; 4]>,
    runs: u64,
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
    last_used: u64,
}

impl ShapeBindings {
    /// Creates the empty bindings of a net on `device`. On a CPU both sides are host memory: the same steps run,
    /// without gain.
    pub fn new(device: Device, has_graphs: bool) -> Self {
        let (bindings, seen) = (Vec::new(), VecDeque::new());
        Self { memory: Memory(device), has_graphs, graphs: 0, bindings, seen, runs: 0 }
    }

    /// Returns the number of shapes with kept tensors.
    pub const fn len(&self) -> usize {
        self.bindings.len()
    }

    /// Returns the options of an unbound run. A session that records graphs needs an explicit opt-out.
    pub fn unbound_options(&self) -> ort::Result<RunOptions> {
        run_options(self.has_graphs.then_some(-1))
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
        self.runs += 1;
        let runs = self.runs;
        let fitting = self.bindings.iter_mut().find(|binding| binding.fits(tensors, input));
        let Some(binding) = fitting else { return Ok(None) };
        binding.last_used = runs;
        let output = binding.run(session, tensors, input);
        if output.is_err() {
            self.bindings.clear();
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
        // A recorded graph keeps its tensors for good, so the number of graphs is limited.
        if self.has_graphs && self.graphs as usize >= MAX_SHAPES {
            return Ok(());
        }
        if self.bindings.len() >= MAX_SHAPES {
            let indexes = 0..self.bindings.len();
            let oldest = indexes.min_by_key(|index| self.bindings[*index].last_used);
            oldest.map(|index| self.bindings.swap_remove(index));
        }
        self.graphs += 1;
        let graph = self.has_graphs.then_some(self.graphs);
        let mut binding = ShapeBinding::new(session, self.memory, tensors, (input, output), graph)?;
        // Twice: with graphs, the first run records and the second one replays.
        for _ in 0..2 {
            let again = binding.run(session, tensors, input)?;
            let difference = relative_difference(output, &again);
            if difference.is_nan() || difference > TOLERANCE {
                let text = format!("a bound run differs from an unbound one by {difference}");
                return Err(ort::Error::new(text));
            }
        }
        binding.last_used = self.runs;
        self.bindings.push(binding);
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
        graph: Option<i32>,
    ) -> ort::Result<Self> {
        let tensor = |info: MemoryInfo<'static>, format: Format, like: &Array4<f32>| {
            let shape = format.layout.arrange(like.dim().into());
            DynTensor::new(&Allocator::new(session, info)?, onnx_type(format.element), shape)
        };
        let (from, to) = (tensors.input_format, tensors.output_format);
        let device_input = tensor(memory.device()?, from, input)?;
        let mut device_output = tensor(memory.device()?, to, output)?;
        let mut binding = session.create_binding()?;
        binding.bind_input(tensors.input, &device_input)?;
        binding.bind_output(tensors.output, &mut device_output)?;
        Ok(Self {
            shape: input.dim().into(),
            input: tensors.input.to_owned(),
            output: tensors.output.to_owned(),
            binding,
            options: run_options(graph)?,
            host_input: tensor(memory.host(MemoryType::CPUInput)?, from, input)?,
            device_input,
            device_output,
            host_output: tensor(memory.host(MemoryType::CPUOutput)?, to, output)?,
            last_used: 0,
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

/// The memory of a tensor's two sides, for a net on this device.
#[derive(Clone, Copy)]
struct Memory(Device);

impl Memory {
    fn device(self) -> ort::Result<MemoryInfo<'static>> {
        let device = match self.0 {
            Device::Cpu => AllocationDevice::CPU,
            Device::Cuda => AllocationDevice::CUDA,
        };
        MemoryInfo::new(device, 0, AllocatorType::Device, MemoryType::Default)
    }

    fn host(self, kind: MemoryType) -> ort::Result<MemoryInfo<'static>> {
        match self.0 {
            Device::Cpu => self.device(),
            Device::Cuda => {
                MemoryInfo::new(AllocationDevice::CUDA_PINNED, 0, AllocatorType::Device, kind)
            }
        }
    }
}

fn run_options(graph: Option<i32>) -> ort::Result<RunOptions> {
    let mut options = RunOptions::new()?;
    if let Some(graph) = graph {
        options.set(GRAPH_OPTION, graph.to_string())?;
    }
    Ok(options)
}
