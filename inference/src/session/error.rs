//! Session errors, classified by the messages of ONNX Runtime and the libraries below it.

/// A runtime that could not be started, or a model that could not be opened or run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SessionError {
    /// The device or the machine ran out of memory; a smaller input may fit.
    #[error("{0}")]
    OutOfMemory(String),
    /// The device no longer works in this process (a "sticky" error in CUDA's terms). Only a new process can use it.
    #[error("{0}")]
    DeviceLost(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}

/// Which memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// That of the device or the machine.
    Device,
    /// What the settings allow one session; other models have no part in it.
    OwnLimit,
}

impl SessionError {
    /// Returns which memory ran out, if that is the error.
    pub fn full(&self) -> Option<Full> {
        let Self::OutOfMemory(message) = self else { return None };
        let is_own = message.to_lowercase().contains(OWN_LIMIT);
        Some(if is_own { Full::OwnLimit } else { Full::Device })
    }

    /// Classifies an error by its message. ONNX Runtime has no error codes for these cases: its arena, CUDA, cuBLAS, cuDNN
    /// and the C++ runtime report them as text only.
    pub(crate) fn from_message(message: String) -> Self {
        let lower = message.to_lowercase();
        let contains = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        if contains(&DEVICE_LOST) {
            Self::DeviceLost(message)
        } else if contains(&OUT_OF_MEMORY) {
            Self::OutOfMemory(message)
        } else {
            Self::Failed(message)
        }
    }
}

/// Classifies an error by its message, put on one line.
pub(crate) fn classify(error: &ort::Error) -> SessionError {
    SessionError::from_message(error.to_string().trim().replace('\n', " "))
}

/// Messages of CUDA and its libraries for a context that is broken for good: every later call fails too. Messages that
/// leave it open, such as cuDNN's "execution failed", are not here: [`super::Runtime::note_loss`] asks the device.
const DEVICE_LOST: [&str; 14] = [
    "illegal memory access",
    "illegal instruction was encountered",
    "misaligned address",
    "unspecified launch failure",
    "launch timed out and was terminated",
    "hardware stack error",
    "operation not supported on global/shared address space",
    "invalid program counter",
    "cuda failure 999",
    "device-side assert",
    "uncorrectable ecc",
    "cudaerrorlaunchfailure",
    "cudaerrorillegaladdress",
    "gpu is lost",
];

/// How ONNX Runtime says that its arena has reached its limit.
const OWN_LIMIT: &str = "available memory of";

/// Messages of the libraries below ONNX Runtime for a failed allocation.
const OUT_OF_MEMORY: [&str; 10] = [
    "failed to allocate memory",
    OWN_LIMIT,
    "out of memory",
    "cudaerrormemoryallocation",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
    "cufft_alloc_failed",
    // How cuBLAS and cuDNN say that there was none left for their handles.
    "status_not_initialized",
    // cuDNN 9 adds where: DEVICE_ALLOCATION_FAILED, INTERNAL_ERROR_HOST_ALLOCATION_FAILED.
    "allocation_failed",
    "bad_alloc",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_too_full_for_a_library_is_out_of_memory_and_not_lost() {
        let classified = |message: &str| SessionError::from_message(message.to_owned());
        for message in [
            "CUBLAS failure 1: CUBLAS_STATUS_NOT_INITIALIZED ; GPU=0 ; expr=cublasCreate(&cublas_handle_);",
            "CUDNN failure 1001: CUDNN_STATUS_NOT_INITIALIZED ; GPU=0 ; expr=cudnnCreate(&cudnn_handle_);",
        ] {
            assert!(matches!(classified(message), SessionError::OutOfMemory(_)), "{message}");
        }
        let limit = "BFCArena: Available memory of 1024 is smaller than requested bytes of 4096";
        assert_eq!(classified(limit).full(), Some(Full::OwnLimit));
        assert_eq!(classified("CUDA failure 2: out of memory").full(), Some(Full::Device));
        let failed = "CUDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0";
        assert!(matches!(classified(failed), SessionError::Failed(_)));
    }
}
