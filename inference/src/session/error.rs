//! What went wrong, told by the words that ONNX Runtime and the libraries below it use.

/// A runtime that could not be started, or a model that could not be opened or run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SessionError {
    /// There was not enough memory, of the device or of the machine; less work at once may fit.
    #[error("{0}")]
    OutOfMemory(String),
    /// The device answers nobody in this process any more: CUDA calls such errors sticky. Only a new process
    /// can use it.
    #[error("{0}")]
    DeviceLost(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

pub(crate) fn sentence(error: &ort::Error) -> SessionError {
    let text = error.to_string().trim().replace('\n', " ");
    // ONNX Runtime has no code for it: its arena, CUDA, cuBLAS, cuDNN and the C++ runtime say it in words.
    let lower = text.to_lowercase();
    let says = |all: &[&str]| all.iter().any(|words| lower.contains(words));
    if says(&DEVICE_LOST) {
        SessionError::DeviceLost(text)
    } else if says(&OUT_OF_MEMORY) {
        SessionError::OutOfMemory(text)
    } else {
        SessionError::Failed(text)
    }
}

/// How CUDA and its libraries say that the context of this process is broken for good. What follows such an error
/// is more of them, whatever is asked.
const DEVICE_LOST: [&str; 11] = [
    "illegal memory access",
    "illegal instruction was encountered",
    "misaligned address",
    "unspecified launch failure",
    "device-side assert",
    "uncorrectable ecc",
    "cudaerrorlaunchfailure",
    "cudaerrorillegaladdress",
    "cudnn_status_execution_failed",
    "cublas_status_execution_failed",
    "gpu is lost",
];

/// How the parts below ONNX Runtime say that memory ran out.
const OUT_OF_MEMORY: [&str; 7] = [
    "failed to allocate memory",
    "available memory of",
    "out of memory",
    "cudaerrormemoryallocation",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
    "bad_alloc",
];
