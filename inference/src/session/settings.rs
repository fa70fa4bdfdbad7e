//! Settings for building sessions: device, threads, memory, batching.

use std::path::PathBuf;
use std::time::Duration;

use super::engines::EngineSettings;
use crate::faults::RunFaults;
use crate::memory::MemorySettings;

/// The device that models should run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DevicePolicy {
    /// CUDA if available, otherwise the CPU (logged).
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// CUDA; the process does not start without it.
    Cuda,
}

#[derive(Clone, Debug)]
pub struct RuntimeSettings {
    /// The path of the ONNX Runtime library, for example `libonnxruntime.so.1.31.1`.
    pub library: PathBuf,
    pub device: DevicePolicy,
    /// CPU threads per session; on a GPU, at most 8 of them.
    pub intra_threads: usize,
    pub gpu: GpuSettings,
    /// How waiting inputs are batched, if the graph allows it.
    pub batching: Batching,
    /// Maximum memory of one run of an upscaler, a tile or a batch of tiles, in bytes. `None` means 1 GiB on a CPU, and
    /// 4 GiB or an eighth of the memory of all models on a GPU, whichever is more, and at most half of it.
    pub tile_memory_bytes: Option<u64>,
    pub memory: MemorySettings,
    /// A folder that records which models have passed the checks that run them, for short processes: a model with a
    /// record is loaded without them. `None` runs every model before it serves.
    pub passed_checks: Option<PathBuf>,
    pub faults: RunFaults,
}

/// Which nets compute in 16 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PrecisionPolicy {
    /// On a GPU the nets whose manifest asks for it, on a CPU none: a CPU is slower in 16 bits.
    #[default]
    Manifest,
    /// None.
    F32,
    /// All nets that can. On a CPU, they compute in 32 bits and round like a GPU, to show what a GPU would return.
    F16,
}

#[derive(Clone, Debug)]
pub struct GpuSettings {
    /// The size limit of the GPU memory arena of one session, in bytes; `None` for no limit. A cutout net has two sessions.
    pub memory_limit_bytes: Option<usize>,
    /// How engines are built; `None` runs nets with the device's own kernels.
    pub engines: Option<EngineSettings>,
    /// Whether a net's tensors stay allocated between runs of the same shape. `None` means yes on a GPU and no on a
    /// CPU, where it gains nothing.
    pub keep_tensors: Option<bool>,
    /// Whether to limit the input shapes that a net sees: a few tile sizes, and either one input or a full batch.
    /// `None` means yes on a GPU, where cuDNN plans every convolution again when the shape of its input changes, and no
    /// on a CPU.
    pub few_shapes: Option<bool>,
    /// Whether CUDA records the kernels of a run of a picture net and launches them as one graph. Requires kept tensors.
    /// An engine runs without it.
    pub graphs: bool,
    /// Whether products of 32-bit floats are rounded to 10 bits of mantissa (TF32), several times as fast.
    pub tf32: bool,
    /// Which nets compute in 16 bits. The only setting that also applies to a CPU.
    pub precision: PrecisionPolicy,
    /// Whether convolutions use the channels-last (NHWC) layout, which tensor cores read. `None` means that the nets that
    /// return pictures do: an upscaler takes a third less time. Other nets have operators without kernels for this layout.
    pub channels_last: Option<bool>,
}

impl Default for GpuSettings {
    fn default() -> Self {
        Self {
            memory_limit_bytes: None,
            engines: None,
            keep_tensors: None,
            few_shapes: None,
            graphs: false,
            tf32: true,
            precision: PrecisionPolicy::Manifest,
            channels_last: None,
        }
    }
}

/// How waiting inputs of the same shape are combined into one run.
#[derive(Clone, Copy, Debug)]
pub struct Batching {
    /// Maximum batch size of one run; 1 disables batching. `None` means 8 on a GPU and 1 on a CPU, where one input
    /// keeps all cores busy.
    pub max_inputs: Option<usize>,
    /// Maximum wait of an input for another that is being prepared, to join its batch.
    pub wait: Duration,
}

impl Batching {
    pub const NONE: Self = Self { max_inputs: Some(1), wait: Duration::ZERO };
}
