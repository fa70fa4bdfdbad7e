//! The common parts of all nets with kept tensors: memory on both sides, CUDA graphs, the number of shapes, and the
//! comparison with an unbound run.

use ndarray::{Array1, ArrayRef, Dimension};
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{RunOptions, Session as OrtSession};
use ort::value::{DynTensor, PrimitiveTensorElementType, TensorElementType};

use crate::device::Device;
use crate::output::{Extremes, Output};
use crate::tensor::relative_difference;

/// Shapes whose tensors are kept at the same time.
pub const MAX_SHAPES: usize = 8;

/// Maximum accepted difference between a bound run and an unbound one, relative to the largest value. Another order of
/// summation causes less, an input that never reached the device far more.
const TOLERANCE: f32 = 0.01;

/// Maximum accepted difference of a picture's sample, in levels of 255.
const LEVELS: u8 = 3;

/// The run option that names a CUDA graph.
const GRAPH_OPTION: &str = "gpu_graph_id";
/// Its value for runs without one.
const NO_GRAPH: i32 = -1;

/// The bindings and tensors that a session keeps between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    Nothing,
    /// The input and output tensors of each shape.
    Tensors,
    /// The tensors of each shape, and a CUDA graph of its kernels.
    Graphs,
}

/// A tensor `[batch, a, b, c]` in host memory whose values can be lent.
pub struct HostTensor(pub DynTensor);

impl HostTensor {
    /// Returns its shape; sizes beyond the fourth axis are missing.
    pub fn shape(&self) -> [usize; 4] {
        let shape = self.0.shape();
        std::array::from_fn(|axis| shape.get(axis).map_or(0, |size| *size as usize))
    }
}

impl<T: PrimitiveTensorElementType> AsRef<[T]> for HostTensor {
    /// Returns its values; none if they have another type.
    fn as_ref(&self) -> &[T] {
        self.0.try_extract_tensor().map_or(&[], |(_, values)| values)
    }
}

/// The bindings of a net, one per shape.
pub struct KeptShapes<B> {
    has_graphs: bool,
    /// Recorded CUDA graphs. An id is never reused: CUDA would replay the first recording.
    graphs: i32,
    /// Whether the session keeps nothing anymore.
    is_off: bool,
    /// Sorted by last use; the most recent is last.
    bindings: Vec<Kept<B>>,
}

struct Kept<B> {
    has_graph: bool,
    binding: B,
}

impl<B> KeptShapes<B> {
    /// Creates the empty bindings of a net; `None` if its session keeps nothing.
    pub const fn new(keeping: Keeping) -> Option<Self> {
        let has_graphs = match keeping {
            Keeping::Nothing => return None,
            Keeping::Tensors => false,
            Keeping::Graphs => true,
        };
        Some(Self { has_graphs, graphs: 0, is_off: false, bindings: Vec::new() })
    }

    /// Returns the number of shapes with kept tensors.
    pub const fn len(&self) -> usize {
        self.bindings.len()
    }

    /// Returns whether the next binding will be recorded as a CUDA graph. A recording keeps its tensors for good, so the
    /// number of graphs is limited.
    pub const fn records(&self) -> bool {
        self.has_graphs && (self.graphs as usize) < MAX_SHAPES
    }

    /// Returns the options of an unbound run. A session that records graphs needs an explicit opt-out.
    pub fn unbound_options(&self) -> ort::Result<RunOptions> {
        run_options(self.has_graphs.then_some(NO_GRAPH))
    }

    /// Returns the first binding that fits.
    pub fn find(&mut self, fits: impl Fn(&B) -> bool) -> Option<&mut B> {
        let at = self.bindings.iter().position(|kept| fits(&kept.binding))?;
        self.bindings[at..].rotate_left(1);
        self.bindings.last_mut().map(|kept| &mut kept.binding)
    }

    /// Adds a binding, made for runs with these options; `None` if the session keeps nothing anymore. The least recently used
    /// binding makes room before.
    ///
    /// # Errors The errors of `make`.
    pub fn add(
        &mut self,
        make: impl FnOnce(RunOptions) -> ort::Result<B>,
    ) -> ort::Result<Option<&mut B>> {
        if self.is_off {
            return Ok(None);
        }
        if self.bindings.len() >= MAX_SHAPES {
            self.bindings.remove(0);
        }
        let has_graph = self.records();
        let options = if has_graph {
            self.graphs += 1;
            run_options(Some(self.graphs))?
        } else {
            self.unbound_options()?
        };
        self.bindings.push(Kept { has_graph, binding: make(options)? });
        Ok(self.bindings.last_mut().map(|kept| &mut kept.binding))
    }

    /// Prepares for an unbound run, after which no graph can be replayed: cuDNN plans its convolutions again for another
    /// shape, and may unload the recorded kernels.
    pub fn prepare_unbound(&mut self) {
        self.bindings.retain(|kept| !kept.has_graph);
    }

    /// Releases all kept tensors, and keeps none from now on.
    pub fn turn_off(&mut self) {
        self.clear();
        self.is_off = true;
    }

    pub fn clear(&mut self) {
        self.bindings.clear();
    }
}

fn run_options(graph: Option<i32>) -> ort::Result<RunOptions> {
    let mut options = RunOptions::new()?;
    if let Some(graph) = graph {
        options.set(GRAPH_OPTION, graph.to_string())?;
    }
    Ok(options)
}

/// Compares the output of a bound run with the output of an unbound one.
///
/// # Errors
/// If they differ by more than another order of summation explains.
pub fn check_same<D: Dimension>(
    unbound: &ArrayRef<f32, D>,
    bound: &ArrayRef<f32, D>,
) -> ort::Result<()> {
    let difference = relative_difference(unbound, bound);
    if difference.is_nan() || difference > TOLERANCE {
        let text = format!("a bound run differs from an unbound one by {difference}");
        return Err(ort::Error::new(text));
    }
    Ok(())
}

/// Same as [`check_same`], for a picture net.
///
/// # Errors
/// Same as [`check_same`].
pub fn check_same_output(unbound: &Output, bound: &Output) -> ort::Result<()> {
    let levels = match (unbound, bound) {
        (Output::Maps(maps), Output::Maps(others)) => {
            return check_same(&maps.view(), &others.view());
        }
        (
            Output::Pictures { samples, extremes },
            Output::Pictures { samples: others, extremes: other_extremes },
        ) if samples.shape() == others.shape() && extremes.len() == other_extremes.len() => {
            let flat = |extremes: &[Option<Extremes>]| -> Array1<f32> {
                let values = extremes.iter().map(|found| found.unwrap_or(Extremes::UNKNOWN));
                values.flat_map(|Extremes { least, largest }| [least, largest]).collect()
            };
            check_same(&flat(extremes), &flat(other_extremes))?;
            let (samples, others) = (samples.view(), others.view());
            samples.iter().zip(&others).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
        }
        _ => u8::MAX,
    };
    if levels > LEVELS {
        let text = format!("a bound run differs from an unbound one by {levels} of 255 levels");
        return Err(ort::Error::new(text));
    }
    Ok(())
}

/// Allocates a tensor on the device of a net; on a CPU, in host memory.
pub fn on_device(
    session: &OrtSession,
    device: Device,
    element: TensorElementType,
    shape: Vec<usize>,
) -> ort::Result<DynTensor> {
    let device = match device {
        Device::Cpu => AllocationDevice::CPU,
        Device::Cuda => AllocationDevice::CUDA,
    };
    let memory = MemoryInfo::new(device, 0, AllocatorType::Device, MemoryType::Default)?;
    DynTensor::new(&Allocator::new(session, memory)?, element, shape)
}

/// Allocates a tensor in host memory that the device reads and writes without the CPU; on a CPU, in ordinary host memory.
pub fn page_locked(
    session: &OrtSession,
    device: Device,
    element: TensorElementType,
    shape: Vec<usize>,
) -> ort::Result<DynTensor> {
    let Device::Cuda = device else { return on_host(element, shape) };
    let locked = AllocationDevice::CUDA_PINNED;
    let memory = MemoryInfo::new(locked, 0, AllocatorType::Device, MemoryType::CPUOutput)?;
    DynTensor::new(&Allocator::new(session, memory)?, element, shape)
}

/// Allocates a tensor in host memory, to copy to or from the device.
pub fn on_host(element: TensorElementType, shape: Vec<usize>) -> ort::Result<DynTensor> {
    // Not page-locked: see `io_binding::plain_mut`.
    DynTensor::new(&Allocator::default(), element, shape)
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;

    use super::*;

    fn kept(keeping: Keeping) -> KeptShapes<char> {
        KeptShapes::new(keeping).unwrap()
    }

    #[test]
    fn the_binding_used_last_moves_to_the_end() {
        let mut kept = kept(Keeping::Tensors);
        for shape in ['a', 'b', 'c'] {
            kept.add(|_| Ok(shape)).unwrap();
        }
        assert_eq!(kept.find(|name| *name == 'x'), None);
        assert_eq!(kept.find(|name| *name == 'a'), Some(&mut 'a'));
        let order: Vec<_> = kept.bindings.iter().map(|kept| kept.binding).collect();
        assert_eq!(order, ['b', 'c', 'a']);
    }

    #[test]
    fn graphs_do_not_outlive_an_unbound_run() {
        let mut kept = kept(Keeping::Graphs);
        for shape in ['a', 'b'] {
            kept.prepare_unbound();
            assert_eq!(kept.len(), 0);
            assert_eq!(kept.add(|_| Ok(shape)).unwrap(), Some(&mut { shape }));
        }
        for _ in 2..MAX_SHAPES {
            assert!(kept.records());
            kept.add(|_| Ok('c')).unwrap();
        }
        assert!(!kept.records());
        kept.prepare_unbound();
        for shape in ['d', 'e'] {
            assert_eq!(kept.add(|_| Ok(shape)).unwrap(), Some(&mut { shape }));
            kept.prepare_unbound();
        }
        assert_eq!(kept.len(), 2, "tensors without a graph outlive it");
        let mut tensors = self::kept(Keeping::Tensors);
        tensors.add(|_| Ok('a')).unwrap();
        tensors.prepare_unbound();
        assert_eq!(tensors.len(), 1);
        tensors.turn_off();
        assert_eq!(tensors.add(|_| Ok('a')).unwrap(), None);
        assert_eq!(tensors.len(), 0);
    }

    #[test]
    fn another_order_of_summation_is_accepted_and_another_input_is_not() {
        let unbound = arr1(&[1.0, -2.0, 0.5]);
        assert!(check_same(&unbound, &arr1(&[1.001, -2.0, 0.501])).is_ok());
        for other in [arr1(&[0.0, -2.0, 0.5]), arr1(&[f32::NAN, -2.0, 0.5]), arr1(&[1.0, -2.0])] {
            let error = check_same(&unbound, &other).unwrap_err().to_string();
            assert!(error.contains("a bound run differs from an unbound one"), "{error}");
        }
    }
}
