//! Tensors that stay where a net runs.
//!
//! By itself ONNX Runtime allocates an output at each run, and moves it and the input through memory that the operating
//! system may page out. Here each shape has its input and output on the device, and beside them memory of the host
//! that a GPU reads and writes by itself ("pinned"), all allocated once. Because their addresses stay, CUDA can also
//! record all kernels of a run once and launch them as one graph.

use std::collections::VecDeque;

use ndarray::{Array4, Ix4};
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, RunOptions, Session as OrtSession};
use ort::value::Tensor;

use crate::device::Device;

/// How many shapes keep their memory: a batch of each size that there may be.
const SHAPES: usize = 8;

/// How far a value may be from what the net gave without any of this, as a share of the largest: kernels of another
/// order of summation differ by less, an input that never arrived by far more.
const TOLERANCE: f32 = 0.01;

/// The run option that names a CUDA graph; -1 is a run without one.
const GRAPH: &str = "gpu_graph_id";

/// The tensors of a net, by shape.
pub struct Bound {
    place: Place,
    has_graphs: bool,
    /// The graphs that were recorded. Their names are never used again: CUDA would replay what was recorded first.
    graphs: i32,
    shapes: Vec<Kept>,
    /// Shapes that came lately and have no memory of their own, the newest last.
    seen: VecDeque<[usize; 4]>,
    runs: u64,
}

/// What a run takes and gives, by name.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub input: &'a str,
    pub output: &'a str,
}

/// What is kept for one shape.
struct Kept {
    shape: [usize; 4],
    input: String,
    output: String,
    binding: IoBinding,
    options: RunOptions,
    host_input: Tensor<f32>,
    device_input: Tensor<f32>,
    device_output: Tensor<f32>,
    host_output: Tensor<f32>,
    last_used: u64,
}

impl Bound {
    /// For a net on `device`. On a processor both sides are its memory: nothing is gained, and every step is taken.
    pub fn new(device: Device, has_graphs: bool) -> Self {
        let (shapes, seen) = (Vec::new(), VecDeque::new());
        Self { place: Place(device), has_graphs, graphs: 0, shapes, seen, runs: 0 }
    }

    /// How many shapes have memory that is kept.
    pub const fn shapes(&self) -> usize {
        self.shapes.len()
    }

    /// Options for a run beside this: a session that records graphs must be told when not to.
    pub fn options_of_others(&self) -> ort::Result<RunOptions> {
        options(self.has_graphs.then_some(-1))
    }

    /// Runs on what is kept for the input's shape; `None` when nothing is.
    ///
    /// # Errors
    /// When the device refuses. Whatever is kept is then given up, which leaves more memory for another try.
    pub fn run(
        &mut self,
        session: &mut OrtSession,
        names: Names<'_>,
        input: &Array4<f32>,
    ) -> ort::Result<Option<Array4<f32>>> {
        self.runs += 1;
        let runs = self.runs;
        let Some(kept) = self.shapes.iter_mut().find(|kept| kept.fits(names, input)) else {
            return Ok(None);
        };
        kept.last_used = runs;
        let output = kept.run(session, input);
        if output.is_err() {
            self.shapes.clear();
        }
        output.map(Some)
    }

    /// Keeps memory for the shape of an input that was just run without, when it came before, and makes sure that it
    /// gives the same. A shape that comes once is not worth it.
    ///
    /// # Errors
    /// When it does not, or the device refuses: the net then goes on without any of this.
    pub fn keep(
        &mut self,
        session: &mut OrtSession,
        names: Names<'_>,
        input: &Array4<f32>,
        output: &Array4<f32>,
    ) -> ort::Result<()> {
        if !self.comes_again(input.dim().into()) {
            return Ok(());
        }
        // What a graph was recorded with stays with it, so that there is a last one.
        if self.has_graphs && self.graphs as usize >= SHAPES {
            return Ok(());
        }
        if self.shapes.len() >= SHAPES {
            let oldest = (0..self.shapes.len()).min_by_key(|index| self.shapes[*index].last_used);
            oldest.map(|index| self.shapes.swap_remove(index));
        }
        self.graphs += 1;
        let graph = self.has_graphs.then_some(self.graphs);
        let mut kept = Kept::new(session, self.place, names, (input, output), graph)?;
        // Twice: with graphs the first run records, and only from then on is what was recorded replayed.
        for _ in 0..2 {
            let again = kept.run(session, input)?;
            let far = furthest(output, &again);
            if far.is_nan() || far > TOLERANCE {
                return Err(ort::Error::new(format!("results differ by {far}")));
            }
        }
        kept.last_used = self.runs;
        self.shapes.push(kept);
        Ok(())
    }

    /// Whether a shape is among those that came lately; from now on it is, unless it gets memory of its own.
    fn comes_again(&mut self, shape: [usize; 4]) -> bool {
        let before = self.seen.iter().position(|seen| *seen == shape);
        if let Some(at) = before {
            self.seen.remove(at);
        } else {
            self.seen.push_back(shape);
            if self.seen.len() > SHAPES {
                self.seen.pop_front();
            }
        }
        before.is_some()
    }
}

impl Kept {
    fn new(
        session: &OrtSession,
        place: Place,
        names: Names<'_>,
        (input, output): (&Array4<f32>, &Array4<f32>),
        graph: Option<i32>,
    ) -> ort::Result<Self> {
        let tensor = |info: MemoryInfo<'static>, like: &Array4<f32>| {
            Tensor::<f32>::new(&Allocator::new(session, info)?, like.shape())
        };
        let device_input = tensor(place.device()?, input)?;
        let mut device_output = tensor(place.device()?, output)?;
        let mut binding = session.create_binding()?;
        binding.bind_input(names.input, &device_input)?;
        binding.bind_output(names.output, &mut device_output)?;
        Ok(Self {
            shape: input.dim().into(),
            input: names.input.to_owned(),
            output: names.output.to_owned(),
            binding,
            options: options(graph)?,
            host_input: tensor(place.host(MemoryType::CPUInput)?, input)?,
            device_input,
            device_output,
            host_output: tensor(place.host(MemoryType::CPUOutput)?, output)?,
            last_used: 0,
        })
    }

    fn fits(&self, names: Names<'_>, input: &Array4<f32>) -> bool {
        self.shape == input.shape() && self.input == names.input && self.output == names.output
    }

    fn run(&mut self, session: &mut OrtSession, input: &Array4<f32>) -> ort::Result<Array4<f32>> {
        self.host_input.extract_array_mut().assign(&input.view().into_dyn());
        self.host_input.copy_into(&mut self.device_input)?;
        // What it returns are other names for the output that is bound.
        drop(session.run_binding_with_options(&self.binding, &self.options)?);
        self.device_output.copy_into(&mut self.host_output)?;
        let output = self.host_output.extract_array().into_dimensionality::<Ix4>();
        output.map(|output| output.to_owned()).map_err(|error| ort::Error::new(error.to_string()))
    }
}

/// Where the two sides of a tensor lie.
#[derive(Clone, Copy)]
struct Place(Device);

impl Place {
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

fn options(graph: Option<i32>) -> ort::Result<RunOptions> {
    let mut options = RunOptions::new()?;
    if let Some(graph) = graph {
        options.set(GRAPH, graph.to_string())?;
    }
    Ok(options)
}

/// The largest difference, as a share of the largest value; NaN when shapes differ.
fn furthest(expected: &Array4<f32>, found: &Array4<f32>) -> f32 {
    if expected.shape() != found.shape() {
        return f32::NAN;
    }
    let pairs = expected.iter().zip(found);
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0_f32, maximum);
    let largest = expected.iter().map(|value| value.abs()).fold(f32::MIN_POSITIVE, maximum);
    difference / largest
}

/// The larger one, and NaN when either is: `f32::max` would hide it.
fn maximum(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_compared_by_their_largest_difference() {
        let of = |values: [f32; 2]| Array4::from_shape_vec((1, 1, 1, 2), values.to_vec()).unwrap();
        let is = |expected, found, far: f32| {
            (furthest(&of(expected), &of(found)) - far).abs() < f32::EPSILON
        };
        assert!(is([1.0, -4.0], [1.0, -4.0], 0.0));
        assert!(is([1.0, -4.0], [2.0, -4.0], 0.25));
        assert!(is([0.0, 0.0], [0.0, 0.0], 0.0));
        assert!(furthest(&of([0.0, 0.0]), &of([0.0, 0.5])) > 1.0);
        assert!(furthest(&of([f32::NAN, 1.0]), &of([0.0, 1.0])).is_nan());
        assert!(furthest(&of([0.0, 1.0]), &of([f32::NAN, 1.0])).is_nan());
        assert!(furthest(&of([0.0, 1.0]), &Array4::zeros((1, 1, 2, 1))).is_nan());
    }
}
