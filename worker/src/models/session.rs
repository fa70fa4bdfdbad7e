//! One ONNX Runtime session and the device it runs on: with `diffusion/net.rs` the only module that names `ort`.

mod bound;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ndarray::{Array4, Ix4};
use ort::ep::{self, ArenaExtendStrategy, ExecutionProviderDispatch};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session as OrtSession};
use ort::value::{Outlet, PrimitiveTensorElementType, TensorElementType, TensorRef, ValueType};
use tracing::{info, warn};

use self::bound::{Bound, Names};
use super::bindings::Device;
use super::runs::Runs;
use crate::diffusion::Opener;
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

/// One model, opened.
pub struct Session {
    inner: OrtSession,
    /// Its tensors that stay on the device, of a net.
    bound: Option<Bound>,
}

/// A tensor that a model takes or gives, as its graph declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The tensor's name.
    pub name: String,
    /// Whether its elements are 32-bit floats.
    pub is_f32: bool,
    /// Its element type, as ONNX names it.
    pub element: String,
    /// Its sizes; `None` is a size that may vary.
    pub shape: Vec<Option<u64>>,
}

impl Session {
    /// What the model takes.
    pub fn inputs(&self) -> Vec<Port> {
        self.inner.inputs().iter().map(port).collect()
    }

    /// Whether the graph leaves open how many inputs one run takes.
    pub fn takes_batches(&self, input_name: &str) -> bool {
        let inputs = self.inputs();
        inputs.iter().any(|port| port.name == input_name && port.shape.first() == Some(&None))
    }

    /// What the model gives.
    pub fn outputs(&self) -> Vec<Port> {
        self.inner.outputs().iter().map(port).collect()
    }

    /// How many shapes have tensors that stay on the device, at most 8.
    pub fn kept_shapes(&self) -> usize {
        self.bound.as_ref().map_or(0, Bound::shapes)
    }

    /// Runs the model on one input and returns one output. No other output is computed into memory.
    ///
    /// # Errors
    /// When ONNX Runtime refuses the input or fails, with its own words.
    pub fn run(
        &mut self,
        input_name: &str,
        input: &Array4<f32>,
        output_name: &str,
    ) -> Result<Array4<f32>, SessionError> {
        let names = Names { input: input_name, output: output_name };
        let run = self.run_where_kept(names, input);
        if let Some(output) = run.map_err(|error| sentence(&error))? {
            return Ok(output);
        }
        let output = self.run_alone(names, input).map_err(|error| sentence(&error))?;
        if let Some(bound) = &mut self.bound
            && let Err(error) = bound.keep(&mut self.inner, names, input, &output)
        {
            self.bound = None;
            match sentence(&error) {
                lost @ SessionError::DeviceLost(_) => return Err(lost),
                error => warn!(%error, "A model runs without tensors of its own on the device"),
            }
        }
        Ok(output)
    }

    fn run_where_kept(
        &mut self,
        names: Names<'_>,
        input: &Array4<f32>,
    ) -> ort::Result<Option<Array4<f32>>> {
        match &mut self.bound {
            Some(bound) => bound.run(&mut self.inner, names, input),
            None => Ok(None),
        }
    }

    fn run_alone(&mut self, names: Names<'_>, input: &Array4<f32>) -> ort::Result<Array4<f32>> {
        let options = self.bound.as_ref().map_or_else(RunOptions::new, Bound::options_of_others)?;
        let options: RunOptions<HasSelectedOutputs> =
            options.with_outputs(OutputSelector::no_default().with(names.output));
        let input = TensorRef::from_array_view(input.view())?;
        let outputs = self.inner.run_with_options(ort::inputs![names.input => input], &options)?;
        let output = outputs[names.output].try_extract_array::<f32>()?;
        let output = output
            .into_dimensionality::<Ix4>()
            .map_err(|error| ort::Error::new(format!("output {}: {error}", names.output)))?;
        Ok(output.to_owned())
    }
}

impl Session {
    /// Runs the model on one input and returns one output's values in order, whatever its shape.
    ///
    /// # Errors
    /// When ONNX Runtime refuses the input or fails, with its own words.
    pub fn run_flat(
        &mut self,
        input_name: &str,
        input: &Array4<f32>,
        output_name: &str,
    ) -> Result<Vec<f32>, SessionError> {
        let mut only = || -> ort::Result<Vec<f32>> {
            let input = TensorRef::from_array_view(input.view())?;
            let outputs = self.inner.run(ort::inputs![input_name => input])?;
            Ok(outputs[output_name].try_extract_array::<f32>()?.iter().copied().collect())
        };
        only().map_err(|error| sentence(&error))
    }

    /// Runs a model that takes a picture and a mask, of one type, and gives a picture of the same.
    ///
    /// # Errors
    /// When ONNX Runtime refuses an input or fails, with its own words.
    pub fn run_pair<T>(
        &mut self,
        inputs: [(&str, &Array4<T>); 2],
        output_name: &str,
    ) -> Result<Array4<T>, SessionError>
    where
        T: PrimitiveTensorElementType + std::fmt::Debug + Clone + 'static,
    {
        let mut both = || -> ort::Result<Array4<T>> {
            let options: RunOptions<HasSelectedOutputs> =
                RunOptions::new()?.with_outputs(OutputSelector::no_default().with(output_name));
            let [(first, a), (second, b)] = inputs;
            let (a, b) =
                (TensorRef::from_array_view(a.view())?, TensorRef::from_array_view(b.view())?);
            let outputs =
                self.inner.run_with_options(ort::inputs![first => a, second => b], &options)?;
            let output = outputs[output_name].try_extract_array::<T>()?;
            let output = output
                .into_dimensionality::<Ix4>()
                .map_err(|error| ort::Error::new(format!("output {output_name}: {error}")))?;
            Ok(output.to_owned())
        };
        both().map_err(|error| sentence(&error))
    }
}

fn port(outlet: &Outlet) -> Port {
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => Port {
            name: outlet.name().to_owned(),
            is_f32: *ty == TensorElementType::Float32,
            element: ty.to_string(),
            shape: shape.iter().map(|size| u64::try_from(*size).ok()).collect(),
        },
        other => Port {
            name: outlet.name().to_owned(),
            is_f32: false,
            element: format!("{other:?}"),
            shape: Vec::new(),
        },
    }
}
