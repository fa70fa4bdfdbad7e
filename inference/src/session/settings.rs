//! How sessions are built: device, threads, memory, batches.

use std::path::PathBuf;
use std::time::Duration;

use crate::faults::RunFaults;

/// Which device models shall run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DevicePolicy {
    /// CUDA where it works, else the processor, which is said aloud.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// CUDA or nothing: without it, nothing starts.
    Cuda,
}

/// How sessions are built.
#[derive(Clone, Debug)]
pub struct RuntimeSettings {
    /// The ONNX Runtime library, `libonnxruntime.so.1.31.1`.
    pub library: PathBuf,
    /// Which device to use.
    pub device: DevicePolicy,
    /// Threads that one operator may use on the processor.
    pub intra_threads: usize,
    /// What only a GPU has.
    pub gpu: GpuSettings,
    /// How inputs that wait are run together, where a graph allows it.
    pub batching: Batching,
    /// What goes wrong on purpose.
    pub faults: RunFaults,
}

/// How sessions use a GPU.
#[derive(Clone, Debug, Default)]
pub struct GpuSettings {
    /// Most of its memory that one model's arena may take, in bytes; no limit when `None`.
    pub memory_limit_bytes: Option<usize>,
    /// Where `TensorRT` keeps the engines that it builds, a few minutes for each model and card; without it, models run
    /// on CUDA alone.
    pub tensorrt_cache: Option<PathBuf>,
    /// Whether a net's tensors stay on the device from one run to the next of the same shape; by default on a GPU, and
    /// not on a processor, where it gains nothing.
    pub keep_tensors: Option<bool>,
    /// Whether CUDA records what a net does and launches it as one graph. Needs tensors that are kept, and no
    /// `TensorRT`.
    pub graphs: bool,
}

/// How inputs of one shape are run together.
#[derive(Clone, Copy, Debug)]
pub struct Batching {
    /// The most inputs that one run may take, 1 for each alone; by default 8 on a GPU and 1 on a processor, whose
    /// cores are all at work on one input already.
    pub most: Option<usize>,
    /// How long an input waits for others.
    pub wait: Duration,
}

impl Batching {
    /// Each input alone.
    pub const NONE: Self = Self { most: Some(1), wait: Duration::ZERO };
}
