//! ONNX Runtime: loads the library, selects the device, and opens models on it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ndarray::Array4;
use ort::ep::{self, ExecutionProvider, ExecutionProviderDispatch};
use ort::memory::AllocationDevice;
use ort::session::Session as OrtSession;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{Tensor, TensorRef};
use sha2::{Digest, Sha256};
use tracing::{info, warn};

use super::device;
use super::engines::{self, EngineSettings};
use super::error::classify;
use super::io_binding::ShapeBindings;
use super::kept::Keeping;
use super::providers::{Kernels, execution_providers};
use super::{
    Batching, DevicePolicy, PictureNet, PrecisionPolicy, RuntimeSettings, Session, SessionError,
};
use crate::device::Device;
use crate::faults::RunFaults;
use crate::manifest::Task;
use crate::memory::{Memory, MemorySettings, Reading};
use crate::onnx::pictures::PICTURE;
use crate::onnx::{self, pictures};
use crate::runs::Runs;
use crate::shapes::InputShapes;
use crate::tensor::{Precision, Returns, Tensors};

/// Maximum number of CPU threads of a session on a GPU.
const GPU_INTRA_THREADS: usize = 8;

/// A file that contains tensors of a model's graph.
#[derive(Clone, Debug)]
pub struct ExtraFile {
    /// The name, as the graph spells it.
    pub name: String,
    /// The content. ONNX Runtime copies what it needs while it opens the model.
    pub bytes: Arc<[u8]>,
}

/// The loaded ONNX Runtime library and its selected device.
#[derive(Clone)]
pub struct Runtime {
    environment: ort::environment::Environment,
    settings: RuntimeSettings,
    device: Device,
    runs: Runs,
    memory: Memory,
    /// How engines for the device are built, if they are.
    engines: Option<EngineSettings>,
    /// Whether nets are opened as engines.
    opens_engines: bool,
}

impl Runtime {
    /// Loads the library and selects the device.
    ///
    /// A process loads one library, once: a second call with another path keeps the first.
    ///
    /// # Errors
    /// If the library is missing or has another version, the policy is [`DevicePolicy::Cuda`] and CUDA does not work, or
    /// engines are wanted and their builder does not work. The message names the missing library.
    pub fn start(settings: RuntimeSettings) -> Result<Self, SessionError> {
        let environment = environment(&settings.library)?;
        let device = select_device(&environment, &settings)?;
        let engines = settings.gpu.engines.clone();
        let engines = engines.filter(|engines| engines.builder.device() == device);
        if let Some(engines) = &engines {
            engines.probe(&environment)?;
        } else if settings.gpu.engines.is_some() {
            info!("Building no engines: models do not run on CUDA");
        }
        let memory = Memory::new(memory_limit(&settings, device));
        let opens_engines = engines.as_ref().is_some_and(|engines| !engines.in_background);
        let runs = Runs::default();
        Ok(Self { environment, settings, device, runs, memory, engines, opens_engines })
    }

    /// Returns how engines are built, now or in the background.
    pub const fn engines(&self) -> Option<&EngineSettings> {
        self.engines.as_ref()
    }

    pub const fn opens_engines(&self) -> bool {
        self.opens_engines
    }

    /// Returns this runtime, but with [`Self::open_net`] opening engines or not.
    #[must_use]
    pub fn opening_engines(&self, opens_engines: bool) -> Self {
        Self { opens_engines: opens_engines && self.engines.is_some(), ..self.clone() }
    }

    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Reads the memory of the device; `None` if that is not possible.
    pub fn read_memory(&self, reading: Reading) -> Option<u64> {
        self.settings.memory.probe.read(self.device, reading)
    }

    pub const fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Returns the maximum batch size, and how long an input waits for others to join its batch.
    pub fn batching(&self) -> (usize, Duration) {
        let Batching { max_inputs, wait } = self.settings.batching;
        let default = match self.device {
            Device::Cpu => 1,
            Device::Cuda => 8,
        };
        (max_inputs.unwrap_or(default).max(1), wait)
    }

    /// Returns how precisely a net computes here, if its manifest states `stated`.
    pub const fn precision(&self, stated: Precision) -> Precision {
        match (self.settings.gpu.precision, self.device) {
            (PrecisionPolicy::Manifest, Device::Cuda) => stated,
            (PrecisionPolicy::Manifest, Device::Cpu) | (PrecisionPolicy::F32, _) => Precision::F32,
            (PrecisionPolicy::F16, _) => Precision::F16,
        }
    }

    /// Returns the maximum memory of one run of an upscaler, in bytes.
    pub fn tile_memory_bytes(&self) -> u64 {
        self.settings.tile_memory_bytes.unwrap_or_else(|| match self.device {
            Device::Cpu => 1 << 30,
            Device::Cuda => {
                let of_each = self.settings.gpu.memory_limit_bytes.map(|limit| limit as u64);
                tile_memory_on_gpu(self.memory.limit(), of_each)
            }
        })
    }

    /// Returns whether the input shapes of nets are limited.
    pub fn has_few_shapes(&self) -> bool {
        self.settings.gpu.few_shapes.unwrap_or(self.device == Device::Cuda)
    }

    /// Returns whether the batches of a model run in a session of their own, where a session that gets inputs of another shape
    /// has to prepare for it. Those of an upscaler would need too much memory.
    pub fn separates_batches(&self, task: &Task) -> bool {
        matches!(task, Task::Segmentation(_)) && self.opens_batch_sessions()
    }

    fn opens_batch_sessions(&self) -> bool {
        self.has_few_shapes() && self.batching().0 > 1 && !self.opens_engines
    }

    /// Returns how the sessions of nets run that do not take a picture.
    fn kernels(&self) -> Kernels {
        Kernels { records: false, channels_last: self.settings.gpu.channels_last.unwrap_or(false) }
    }

    /// Returns the folder that records which models have passed their checks.
    pub fn passed_checks(&self) -> Option<&Path> {
        self.settings.passed_checks.as_deref()
    }

    pub fn library(&self) -> &Path {
        &self.settings.library
    }

    /// Describes the device and the settings that a model's output may depend on.
    pub fn summary(&self) -> String {
        format!("{} {} {:?}", self.device, self.settings.intra_threads, self.settings.gpu)
    }

    pub const fn faults(&self) -> RunFaults {
        self.settings.faults
    }

    /// Returns the supported execution providers that the library was built with, by ONNX Runtime's names. The machine
    /// may still be unable to use them: see [`Self::device`].
    pub fn providers(&self) -> Vec<&'static str> {
        let known = [
            (ep::NVRTX::NAME, ep::NVRTX::is_available()),
            (ep::TensorRT::NAME, ep::TensorRT::is_available()),
            (ep::CUDA::NAME, ep::CUDA::is_available()),
            (ep::CPU::NAME, ep::CPU::is_available()),
        ];
        known
            .into_iter()
            .filter(|(_, is_available)| matches!(is_available, Ok(true)))
            .map(|(name, _)| name)
            .collect()
    }

    pub const fn device(&self) -> Device {
        self.device
    }

    /// Opens a model from the bytes of its ONNX file and of the files with tensors of its graph. Reads nothing
    /// from disk, so the bytes that were checked are the bytes that run.
    ///
    /// # Errors
    /// If the bytes are not a model, or the device refuses it.
    pub fn open(&self, model: &[u8], extra: &[ExtraFile]) -> Result<Session, SessionError> {
        let _device = device::share_to_load();
        let session = self.build(model, extra, self.kernels());
        Ok(Session(session.map_err(|error| classify(&error))?.into()))
    }

    /// Opens the model in this file, and the files next to it with tensors of its graph.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub(crate) fn open_file(&self, model: &Path) -> Result<OrtSession, SessionError> {
        let _device = device::share_to_load();
        let open = || self.builder(self.kernels())?.commit_from_file(model);
        open().map_err(|error| classify(&error))
    }

    /// Returns what a net without CUDA graphs keeps between runs with inputs of the same shapes.
    pub(crate) fn keeping(&self) -> Keeping {
        if self.keeps_tensors() { Keeping::Tensors } else { Keeping::Nothing }
    }

    /// Records for the whole process that the device is lost, if this error of a run says so, or if it may have that cause
    /// and the device does not even take a copy anymore.
    pub fn note_loss(&self, error: &SessionError) {
        match error {
            SessionError::DeviceLost(reason) => self.runs.set_device_lost(reason),
            SessionError::Failed(_) if self.device == Device::Cuda => {
                if let Some(reason) = loss_shown_by(copy_to_device()) {
                    self.runs.set_device_lost(&reason);
                }
            }
            SessionError::Failed(_) | SessionError::OutOfMemory(_) => {}
        }
    }

    /// Opens a net that takes pictures, with these tensors, which may stay allocated between runs. Builds its
    /// engine for inputs of these shapes if this runtime [opens engines](Self::opens_engines) and it is not in the folder
    /// yet, which takes minutes.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub fn open_net(
        &self,
        model: &[u8],
        extra: &[ExtraFile],
        tensors: &Tensors<'_>,
        shapes: &InputShapes,
    ) -> Result<PictureNet, SessionError> {
        let _device = device::share_to_load();
        let model = &pictures::take_bytes(model, tensors).map_err(SessionError::Failed)?;
        let returns_pictures = tensors.returns == Returns::Picture;
        let channels_last = self.settings.gpu.channels_last.unwrap_or(returns_pictures);
        let open = || match &self.engines {
            Some(engines) if self.opens_engines => {
                Ok((self.build_engine(engines, model, extra, shapes)?, self.keeping()))
            }
            _ => {
                let kernels = |records| Kernels { records, channels_last };
                self.open_keeping(|records| self.build(model, extra, kernels(records)))
            }
        };
        let lends = !self.settings.gpu.graphs;
        let bound = |(inner, keeping)| (inner, ShapeBindings::new(self.device, keeping, lends));
        let own = bound(open()?);
        let has_batches = !returns_pictures
            && self.opens_batch_sessions()
            && onnx::input_axes(model, PICTURE).is_ok_and(|axes| axes.first() == Some(&None));
        let batches = match has_batches.then(&open) {
            Some(Err(error)) => {
                warn!(%error, "Running batches of a model in the session of single pictures");
                None
            }
            opened => opened.transpose()?.map(bound),
        };
        Ok(PictureNet::new(own, batches, tensors))
    }

    /// Opens a session, with CUDA graphs if the settings say so and the model allows it. None are recorded where engines are
    /// built: a recording would wait for a build, which takes minutes, and everybody else for the recording.
    fn open_keeping(
        &self,
        open: impl Fn(bool) -> ort::Result<OrtSession>,
    ) -> Result<(OrtSession, Keeping), SessionError> {
        let gpu = &self.settings.gpu;
        let has_graphs = gpu.graphs && self.keeps_tensors() && self.engines.is_none();
        if has_graphs && self.device == Device::Cuda {
            match open(true) {
                Ok(session) => return Ok((session, Keeping::Graphs)),
                // One operator without a CUDA kernel rules graphs out.
                Err(error) => info!(%error, "Running a model without CUDA graphs"),
            }
        }
        let session = open(false).map_err(|error| classify(&error))?;
        Ok((session, self.keeping()))
    }

    fn keeps_tensors(&self) -> bool {
        self.settings.gpu.keep_tensors.unwrap_or(self.device == Device::Cuda)
    }

    /// Opens a model with the defaults of ONNX Runtime and its execution provider, and with this runtime's device and
    /// threads, to compare speeds.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub fn open_plain(&self, model: &Path) -> Result<Session, SessionError> {
        let _device = device::share_to_load();
        let open = || {
            OrtSession::builder(&self.environment)?
                .with_intra_threads(intra_threads(self.device, self.settings.intra_threads))?
                .with_execution_providers([match self.device {
                    Device::Cpu => ep::CPU::default().build(),
                    Device::Cuda => ep::CUDA::default().build().error_on_failure(),
                }])?
                .commit_from_file(model)
        };
        open().map(|session| Session(session.into())).map_err(|error| classify(&error))
    }

    fn build(
        &self,
        model: &[u8],
        extra: &[ExtraFile],
        kernels: Kernels,
    ) -> ort::Result<OrtSession> {
        commit(self.builder(kernels)?, model, extra)
    }

    /// Builds an engine, or reads it from the folder. The device's own kernels run what the engine cannot.
    fn build_engine(
        &self,
        engines: &EngineSettings,
        model: &[u8],
        extra: &[ExtraFile],
        shapes: &InputShapes,
    ) -> Result<OrtSession, SessionError> {
        let axes = onnx::input_axes(model, PICTURE).map_err(SessionError::Failed)?;
        let profile = shapes.profile(PICTURE, &axes);
        let key = engine_key(model, extra);
        let build = || {
            let builder = match engines.builder.provider(&engines.folder, &key, profile.clone()) {
                Some(provider) => {
                    let own = execution_providers(self.device, &self.settings.gpu, self.kernels());
                    let providers: Vec<_> = [provider].into_iter().chain(own).collect();
                    self.builder_on(providers)?
                }
                None => self
                    .builder(self.kernels())?
                    .with_intra_threads(1)?
                    .with_optimization_level(GraphOptimizationLevel::Level1)?,
            };
            commit(builder, model, extra)
        };
        let opened = build().or_else(|error| {
            if !engines::is_of_another_version(&error.to_string()) {
                return Err(error);
            }
            warn!(%error, "Building the engine again: another version of TensorRT built the one in the cache");
            engines::forget(&engines.folder, &key).map_err(|error| ort::Error::new(error.to_string()))?;
            build()
        });
        opened.map_err(|error| classify(&error))
    }

    fn builder(&self, kernels: Kernels) -> ort::Result<SessionBuilder> {
        self.builder_on(execution_providers(self.device, &self.settings.gpu, kernels))
    }

    fn builder_on(&self, providers: Vec<ExecutionProviderDispatch>) -> ort::Result<SessionBuilder> {
        let builder = OrtSession::builder(&self.environment)?
            // A memory pattern makes the second run of a shape allocate its tensors as one block, beside those that the arena
            // keeps from the first: a GPU would hold twice the memory of a run.
            .with_memory_pattern(self.device == Device::Cpu)?
            .with_intra_threads(intra_threads(self.device, self.settings.intra_threads))?
            .with_inter_threads(1)?
            // On a CPU, spinning saves a third of a small model's time. Between runs it would occupy a core that pixel work
            // needs, so it stops when the run ends. During a run on a GPU, it would do the same.
            .with_intra_op_spinning(self.device == Device::Cpu)?
            .with_config_entry("session.force_spinning_stop", "1")?
            .with_optimization_level(GraphOptimizationLevel::All)?
            .with_execution_providers(providers)?;
        Ok(builder)
    }
}

/// Returns the CPU threads of each session, if so many are configured. On a GPU few operators run on the CPU, and a server
/// with hundreds of cores would start more threads than a container may have.
fn intra_threads(device: Device, configured: usize) -> usize {
    match device {
        Device::Cpu => configured,
        Device::Cuda => configured.min(GPU_INTRA_THREADS),
    }
}

/// Copies a number to the GPU.
fn copy_to_device() -> Result<(), SessionError> {
    let _device = device::share();
    let copy = || Tensor::from_array(([1], vec![0.0_f32]))?.to(AllocationDevice::CUDA, 0);
    copy().map(drop).map_err(|error| classify(&error))
}

/// Returns why the device is lost, if the outcome of copying a number to it shows that. On a working device, the copy fails
/// only for lack of memory. CUDA has too many messages for a broken device to list them.
fn loss_shown_by(copy: Result<(), SessionError>) -> Option<String> {
    match copy {
        Err(SessionError::DeviceLost(reason) | SessionError::Failed(reason)) => Some(reason),
        Ok(()) | Err(SessionError::OutOfMemory(_)) => None,
    }
}

/// Returns the key of a model's engine: the SHA-256 of its graph and weights.
fn engine_key(model: &[u8], extra: &[ExtraFile]) -> String {
    let mut sum = Sha256::new_with_prefix(model);
    for ExtraFile { name, bytes } in extra {
        sum.update(name);
        sum.update(bytes);
    }
    hex::encode(sum.finalize())
}

fn commit(
    mut builder: SessionBuilder,
    model: &[u8],
    extra: &[ExtraFile],
) -> ort::Result<OrtSession> {
    for ExtraFile { name, bytes } in extra {
        builder = builder.with_external_initializer_file_in_memory(name, Arc::clone(bytes))?;
    }
    builder.commit_from_memory(model)
}

fn environment(library: &Path) -> Result<ort::environment::Environment, SessionError> {
    static STARTED: Mutex<Option<ort::environment::Environment>> = Mutex::new(None);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = started.as_ref() {
        return Ok(environment.clone());
    }
    if !library.is_file() {
        return Err(SessionError::Failed(format!(
            "there is no ONNX Runtime library at {}; fetch it with `scripts/models runtime`, or set \
             ORT_DYLIB_PATH to its path",
            library.display()
        )));
    }
    let builder = ort::init_from(library).map_err(|error| {
        SessionError::Failed(format!(
            "{} is not a usable ONNX Runtime library: {error}",
            library.display()
        ))
    })?;
    let environment = builder
        .with_name("retouch")
        .with_telemetry(false)
        .build()
        .map_err(|error| classify(&error))?;
    *started = Some(environment.clone());
    Ok(environment)
}

fn memory_limit(settings: &RuntimeSettings, device: Device) -> Option<u64> {
    let MemorySettings { limit_bytes, probe } = &settings.memory;
    if limit_bytes.is_some() || device == Device::Cpu {
        return *limit_bytes;
    }
    let limit = probe.read(device, Reading::Free).map(|free| free / 10 * 9);
    if let Some(limit) = limit {
        info!("Loaded models may take {} MiB of the GPU together", limit >> 20);
    } else {
        warn!(
            "The memory of models has no limit: the GPU's free memory is not known; set RETOUCH_MODEL_MEMORY_MIB"
        );
    }
    limit
}

fn select_device(
    environment: &ort::environment::Environment,
    settings: &RuntimeSettings,
) -> Result<Device, SessionError> {
    let works = |device| probe(environment, settings, device).map(|()| device);
    match settings.device {
        DevicePolicy::Cpu => works(Device::Cpu),
        DevicePolicy::Cuda => works(Device::Cuda).map_err(|error| {
            SessionError::Failed(format!("CUDA was requested but does not work: {error}"))
        }),
        DevicePolicy::Auto => match works(Device::Cuda) {
            Ok(cuda) => Ok(cuda),
            Err(error) if error.to_string().contains("not enabled in this build") => {
                info!(
                    "Running models on the CPU: this ONNX Runtime library was built without CUDA"
                );
                works(Device::Cpu)
            }
            Err(error) => {
                warn!(%error, "Running models on the CPU: CUDA does not work");
                works(Device::Cpu)
            }
        },
    }
}

/// Runs a small model on a device. Attaching CUDA neither loads cuDNN nor shows whether the library has kernels for the
/// card.
fn probe(
    environment: &ort::environment::Environment,
    settings: &RuntimeSettings,
    device: Device,
) -> Result<(), SessionError> {
    let compute = || -> ort::Result<()> {
        let mut session = OrtSession::builder(environment)?
            .with_execution_providers(execution_providers(
                device,
                &settings.gpu,
                Kernels::default(),
            ))?
            .commit_from_memory(&onnx::probe::model())?;
        let input = Array4::<f32>::zeros(onnx::probe::SHAPE);
        session.run(ort::inputs![TensorRef::from_array_view(input.view())?])?;
        Ok(())
    };
    let _device = device::share_to_load();
    compute().map_err(|error| classify(&error))
}

/// Returns the maximum memory of one run of an upscaler on a GPU, in bytes: 4 GiB or an eighth of the memory of `all`
/// models, whichever is more, and at most half of either limit, because the weights and other models take some, too.
fn tile_memory_on_gpu(all: Option<u64>, of_each: Option<u64>) -> u64 {
    let most = all.map_or(0, |all| all / 8).max(4 << 30);
    [all, of_each].into_iter().flatten().fold(most, |most, limit| most.min(limit / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_leave_room_on_small_cards() {
        let gib = |gib: u64| gib << 30;
        assert_eq!(tile_memory_on_gpu(None, None), gib(4));
        assert_eq!(tile_memory_on_gpu(Some(gib(80)), None), gib(10));
        assert_eq!(tile_memory_on_gpu(Some(gib(16)), None), gib(4));
        assert_eq!(tile_memory_on_gpu(Some(gib(3)), None), gib(3) / 2);
        assert_eq!(tile_memory_on_gpu(Some(gib(16)), Some(gib(3))), gib(3) / 2);
    }

    #[test]
    fn a_device_that_takes_no_copy_is_lost_unless_it_is_full() {
        let failed = |message: &str| Err(SessionError::from_message(message.to_owned()));
        for message in [
            "CUDA failure 46: all CUDA-capable devices are busy or unavailable",
            "CUDA failure 100: no CUDA-capable device is detected",
            "CUDA failure 220: uncorrectable NVLink error detected during the execution",
            "CUDA failure 805: MPS client failed to connect to the MPS control daemon",
            "CUDA failure 719: unspecified launch failure",
        ] {
            assert_eq!(loss_shown_by(failed(message)).as_deref(), Some(message));
        }
        assert_eq!(loss_shown_by(failed("CUDA failure 2: out of memory")), None);
        assert_eq!(loss_shown_by(Ok(())), None);
    }

    #[test]
    fn a_session_on_a_gpu_takes_few_threads() {
        assert_eq!(intra_threads(Device::Cpu, 192), 192);
        assert_eq!(intra_threads(Device::Cuda, 192), 8);
        assert_eq!(intra_threads(Device::Cuda, 2), 2);
    }

    #[test]
    fn a_model_with_other_weights_has_another_engine() {
        let weights =
            |bytes: &[u8]| [ExtraFile { name: "weights".to_owned(), bytes: bytes.into() }];
        let own = engine_key(b"graph", &weights(&[1, 2]));
        assert_eq!(own, engine_key(b"graph", &weights(&[1, 2])));
        assert_ne!(own, engine_key(b"graph", &weights(&[1, 3])));
        assert_ne!(own, engine_key(b"other", &weights(&[1, 2])));
    }
}
