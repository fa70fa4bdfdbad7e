//! The execution providers of ONNX Runtime that run a session, with their options.

use ort::ep::{self, ArenaExtendStrategy, ExecutionProviderDispatch};

use super::GpuSettings;
use crate::device::Device;

/// How a session on a GPU runs its kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernels {
    /// Whether it records them as CUDA graphs.
    pub records: bool,
    /// Whether convolutions use the channels-last layout.
    pub channels_last: bool,
}

/// Returns the execution providers by priority: each operator runs on the first that supports it. A session fails if
/// one of them cannot be attached; nothing is replaced silently.
pub fn execution_providers(
    device: Device,
    gpu: &GpuSettings,
    kernels: Kernels,
) -> Vec<ExecutionProviderDispatch> {
    match device {
        Device::Cpu => vec![ep::CPU::default().build()],
        Device::Cuda => {
            let cuda = ep::CUDA::default()
                .with_device_id(0)
                // cuDNN's heuristic of mode A; the library's default is mode B, which takes longer to choose.
                .with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic)
                // cuDNN's fastest algorithms need the most memory.
                .with_conv_max_workspace(true)
                .with_arena_extend_strategy(ArenaExtendStrategy::SameAsRequested)
                .with_tf32(gpu.tf32)
                .with_prefer_nhwc(kernels.channels_last)
                // ONNX Runtime 1.31 adds the bias to memory that it does not clear when the shape stays the same.
                .with_fuse_conv_bias(false)
                .with_cuda_graph(kernels.records);
            let cuda = match gpu.memory_limit_bytes {
                Some(limit) => cuda.with_memory_limit(limit),
                None => cuda,
            };
            vec![cuda.build().error_on_failure()]
        }
    }
}
