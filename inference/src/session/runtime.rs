//! ONNX Runtime itself: the library, the device, and opening models on it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ort::ep::{self, ArenaExtendStrategy, ExecutionProvider, ExecutionProviderDispatch};
use ort::session::Session as OrtSession;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use tracing::{info, warn};

use super::bound::Bound;
use super::error::sentence;
use super::{Batching, DevicePolicy, GpuSettings, RuntimeSettings, Session, SessionError};
use crate::device::Device;
use crate::diffusion::Opener;
use crate::faults::RunFaults;
use crate::runs::Runs;

/// A file that a model's graph keeps tensors in.
#[derive(Clone, Debug)]
pub struct ExtraFile {
    /// Its name, as the graph spells it.
    pub name: String,
    /// Its content; ONNX Runtime copies what it needs while it opens the model.
    pub bytes: Arc<[u8]>,
}

/// ONNX Runtime itself, loaded, with its device settled.
#[derive(Clone)]
pub struct Runtime {
    environment: ort::environment::Environment,
    settings: RuntimeSettings,
    device: Device,
    runs: Runs,
}

impl Runtime {
    /// Loads the library and settles the device.
    ///
    /// A process holds one library for good: a second call with another path keeps the first.
    ///
    /// # Errors
    /// When the library is missing or of another version, or the policy is CUDA and CUDA cannot be
    /// used; the text names the missing library.
    pub fn start(settings: RuntimeSettings) -> Result<Self, SessionError> {
        let environment = environment(&settings.library)?;
        let device = settle_device(&environment, &settings)?;
        Ok(Self { environment, settings, device, runs: Runs::default() })
    }

    /// What its models are running.
    pub const fn runs(&self) -> &Runs {
        &self.runs
    }

    /// The most inputs that one run may take, and how long an input waits for others.
    pub fn batching(&self) -> (usize, Duration) {
        let Batching { most, wait } = self.settings.batching;
        let usual = match self.device {
            Device::Cpu => 1,
            Device::Cuda => 8,
        };
        (most.unwrap_or(usual).max(1), wait)
    }

    /// What goes wrong on purpose.
    pub const fn faults(&self) -> RunFaults {
        self.settings.faults
    }

    /// The execution providers among ours that the library was built with, by the names that ONNX Runtime gives
    /// them. Whether this machine can use them is another question: see [`Self::device`].
    pub fn providers(&self) -> Vec<&'static str> {
        let known = [
            (ep::TensorRT::NAME, ep::TensorRT::is_available()),
            (ep::CUDA::NAME, ep::CUDA::is_available()),
            (ep::CPU::NAME, ep::CPU::is_available()),
        ];
        known
            .into_iter()
            .filter(|(_, there)| matches!(there, Ok(true)))
            .map(|(name, _)| name)
            .collect()
    }

    /// The device that every session of this runtime uses.
    pub const fn device(&self) -> Device {
        self.device
    }

    /// Opens a model from the bytes of its ONNX file and of the files that its graph keeps tensors in, by
    /// name. Nothing is read from disk: what was checked is what runs.
    ///
    /// # Errors
    /// When the bytes are no model, or the device refuses it.
    pub fn open(&self, model: &[u8], extra: &[ExtraFile]) -> Result<Session, SessionError> {
        let inner = self.build(model, extra, false).map_err(|error| sentence(&error))?;
        Ok(Session { inner, bound: None })
    }

    /// The same for a net of one input and one output, whose tensors stay on the device.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_net(&self, model: &[u8], extra: &[ExtraFile]) -> Result<Session, SessionError> {
        let gpu = &self.settings.gpu;
        if !gpu.keep_tensors.unwrap_or(self.device == Device::Cuda) {
            return self.open(model, extra);
        }
        let bound = |has_graphs| Some(Bound::new(self.device, has_graphs));
        if gpu.graphs && gpu.tensorrt_cache.is_none() && self.device == Device::Cuda {
            match self.build(model, extra, true) {
                Ok(inner) => return Ok(Session { inner, bound: bound(true) }),
                // One operator that CUDA lacks is enough.
                Err(error) => info!(%error, "A model runs without CUDA graphs"),
            }
        }
        Ok(Session { bound: bound(false), ..self.open(model, extra)? })
    }

    fn build(&self, model: &[u8], extra: &[ExtraFile], graphs: bool) -> ort::Result<OrtSession> {
        let mut builder = self.builder(graphs)?;
        for ExtraFile { name, bytes } in extra {
            builder = builder.with_external_initializer_file_in_memory(name, Arc::clone(bytes))?;
        }
        builder.commit_from_memory(model)
    }

    fn builder(&self, graphs: bool) -> ort::Result<SessionBuilder> {
        let builder = OrtSession::builder(&self.environment)?
            .with_intra_threads(self.settings.intra_threads)?
            .with_inter_threads(1)?
            // Spinning saves a third of a small model's time, but between two runs it would take the core
            // that another picture's pixels need: so spin while the model runs, and stop with it.
            .with_intra_op_spinning(true)?
            .with_config_entry("session.force_spinning_stop", "1")?
            .with_optimization_level(GraphOptimizationLevel::Level3)?
            .with_execution_providers(providers(self.device, &self.settings.gpu, graphs))?;
        Ok(builder)
    }
}

impl Opener for Runtime {
    fn open_file(&self, model: &Path) -> Result<OrtSession, SessionError> {
        let open = || self.builder(false)?.commit_from_file(model);
        open().map_err(|error| sentence(&error))
    }
}

fn environment(library: &Path) -> Result<ort::environment::Environment, SessionError> {
    static STARTED: Mutex<Option<ort::environment::Environment>> = Mutex::new(None);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = started.as_ref() {
        return Ok(environment.clone());
    }
    if !library.is_file() {
        return Err(SessionError::Failed(format!(
            "there is no ONNX Runtime library at {}; `scripts/models runtime` fetches it, ORT_DYLIB_PATH \
             says where it is",
            library.display()
        )));
    }
    let builder = ort::init_from(library).map_err(|error| {
        SessionError::Failed(format!("{} cannot be used: {error}", library.display()))
    })?;
    let environment = builder
        .with_name("retouch")
        .with_telemetry(false)
        .build()
        .map_err(|error| sentence(&error))?;
    *started = Some(environment.clone());
    Ok(environment)
}

fn settle_device(
    environment: &ort::environment::Environment,
    settings: &RuntimeSettings,
) -> Result<Device, SessionError> {
    match settings.device {
        DevicePolicy::Cpu => Ok(Device::Cpu),
        DevicePolicy::Cuda => {
            probe_cuda(environment, settings).map(|()| Device::Cuda).map_err(|error| {
                SessionError::Failed(format!("CUDA was asked for and cannot be used: {error}"))
            })
        }
        DevicePolicy::Auto => match probe_cuda(environment, settings) {
            Ok(()) => Ok(Device::Cuda),
            Err(error) if error.to_string().contains("not enabled in this build") => {
                info!("Models run on the CPU: this ONNX Runtime library has no CUDA");
                Ok(Device::Cpu)
            }
            Err(error) => {
                warn!(%error, "Models run on the CPU, because CUDA cannot be used");
                Ok(Device::Cpu)
            }
        },
    }
}

/// Attaching the provider loads its libraries; by default ONNX Runtime would swallow the failure and
/// run on the processor.
fn probe_cuda(
    environment: &ort::environment::Environment,
    settings: &RuntimeSettings,
) -> Result<(), SessionError> {
    let attach = || -> ort::Result<()> {
        OrtSession::builder(environment)?.with_execution_providers(providers(
            Device::Cuda,
            &settings.gpu,
            false,
        ))?;
        Ok(())
    };
    attach().map_err(|error| sentence(&error))
}

/// What runs a graph's operators, the first that can. Each is attached or the session is refused: nothing is
/// substituted in silence.
fn providers(device: Device, gpu: &GpuSettings, graphs: bool) -> Vec<ExecutionProviderDispatch> {
    match device {
        Device::Cpu => vec![ep::CPU::default().build()],
        Device::Cuda => {
            let tensorrt = gpu.tensorrt_cache.as_deref().map(|folder| {
                ep::TensorRT::default()
                    .with_device_id(0)
                    // Half precision is most of what TensorRT gains; golden pictures judge what it costs.
                    .with_fp16(true)
                    .with_engine_cache(true)
                    .with_engine_cache_path(folder.display())
                    .with_timing_cache(true)
                    .with_timing_cache_path(folder.display())
                    .build()
                    .error_on_failure()
            });
            let cuda = ep::CUDA::default()
                .with_device_id(0)
                // The exhaustive search tries every algorithm at the first run of every shape.
                .with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic)
                .with_arena_extend_strategy(ArenaExtendStrategy::SameAsRequested)
                .with_cuda_graph(graphs);
            let cuda = match gpu.memory_limit_bytes {
                Some(limit) => cuda.with_memory_limit(limit),
                None => cuda,
            };
            tensorrt.into_iter().chain([cuda.build().error_on_failure()]).collect()
        }
    }
}
