//! Engines: nets that TensorRT or TensorRT-RTX has compiled for one card and a range of shapes. Building one takes
//! minutes; afterwards it is read from a folder.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ort::environment::Environment;
use ort::ep::{self, ExecutionProviderDispatch};
use ort::session::Session as OrtSession;

use super::error::{SessionError, classify};
use crate::device::Device;

#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub builder: EngineBuilder,
    pub folder: PathBuf,
    /// Whether a model serves without its engine until that is built and compared. Otherwise opening a net waits for its
    /// engine.
    pub in_background: bool,
}

/// What builds engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineBuilder {
    /// TensorRT, in half precision.
    #[default]
    Trt,
    /// TensorRT-RTX, in the precision of the model, for RTX cards.
    Rtx,
    /// Sessions on the CPU with one thread and few optimizations. They stand in for engines in tests without a GPU.
    #[value(skip)]
    StandIn,
}

impl EngineSettings {
    /// Loads the libraries that build engines.
    ///
    /// # Errors
    /// If they do not work. The message names a missing one.
    pub(super) fn probe(&self, environment: &Environment) -> Result<(), SessionError> {
        // Any key will do, but ONNX Runtime refuses an empty one.
        let Some(provider) = self.builder.provider(&self.folder, "probe", None) else {
            return Ok(());
        };
        let attach = || -> ort::Result<()> {
            OrtSession::builder(environment)?.with_execution_providers([provider])?;
            Ok(())
        };
        attach().map_err(|error| {
            let (name, error) = (self.builder.as_str(), classify(&error));
            SessionError::Failed(format!(
                "RETOUCH_TENSORRT_CACHE is set, but {name} does not work: {error}"
            ))
        })
    }
}

impl EngineBuilder {
    /// Returns the name, for messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trt => "TensorRT",
            Self::Rtx => "TensorRT-RTX",
            Self::StandIn => "a stand-in for TensorRT",
        }
    }

    pub const fn device(self) -> Device {
        match self {
            Self::Trt | Self::Rtx => Device::Cuda,
            Self::StandIn => Device::Cpu,
        }
    }

    /// Returns the execution provider, for inputs from the least to the largest shape of `profile`; `None` for a stand-in.
    /// `key` names the engine's file, because the name that ONNX Runtime chooses does not depend on the weights.
    pub(super) fn provider(
        self,
        folder: &Path,
        key: &str,
        profile: Option<[String; 2]>,
    ) -> Option<ExecutionProviderDispatch> {
        let folder = folder.display();
        let provider = match self {
            Self::Trt => {
                let provider = ep::TensorRT::default()
                    .with_device_id(0)
                    // Most of TensorRT's gain comes from half precision; golden images measure its cost.
                    .with_fp16(true)
                    .with_engine_cache(true)
                    .with_engine_cache_path(&folder)
                    .with_engine_cache_prefix(key)
                    .with_timing_cache(true)
                    .with_timing_cache_path(&folder);
                match profile {
                    // Most runs of a busy worker have the largest shape, so kernels are chosen for it.
                    Some([least, most]) => provider
                        .with_profile_min_shapes(least)
                        .with_profile_opt_shapes(&most)
                        .with_profile_max_shapes(most),
                    None => provider,
                }
                .build()
            }
            Self::Rtx => {
                let provider =
                    ep::NVRTX::default().with_device_id(0).with_runtime_cache_path(folder);
                match profile {
                    Some([least, most]) => provider
                        .with_profile_min_shapes(least)
                        .with_profile_opt_shapes(&most)
                        .with_profile_max_shapes(most),
                    None => provider,
                }
                .build()
            }
            Self::StandIn => return None,
        };
        Some(provider.error_on_failure())
    }
}

/// Returns whether ONNX Runtime refused a cached engine because another version of TensorRT built it. ONNX Runtime never
/// replaces such an engine.
pub(super) fn is_of_another_version(message: &str) -> bool {
    message.contains("could not deserialize engine from cache")
}

/// Deletes the files of an engine.
pub(super) fn forget(folder: &Path, key: &str) -> io::Result<()> {
    for file in fs::read_dir(folder)? {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with(key) {
            fs::remove_file(file.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_one_engine_are_deleted_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "ab12_graph_0_sm90.engine",
            "ab12_graph_0_sm90.profile",
            "cd34.engine",
            "timing.cache",
        ];
        for name in names {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        forget(folder.path(), "ab12").unwrap();
        let left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
    }
}
