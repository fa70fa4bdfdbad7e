//! The subcommands and the settings they share.

pub mod bench;
pub mod credentials;
mod cuda_card;
pub mod doctor;
mod hardware;
pub mod models;
pub mod run;
pub mod serve;

use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::pixel_pool::PixelPool;
use crate::tools::Settings;
use anyhow::Context;
use clap::Args;
use cuda_card::CudaArgs;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Task;
use retouch_inference::memory::MemorySettings;
use retouch_inference::registry::{ModelHandle, Registry};
use retouch_inference::session::{
    Batching, DevicePolicy, EngineBuilder, EngineSettings, GpuSettings, PrecisionPolicy, Runtime,
    RuntimeSettings, SessionError,
};
use retouch_pixels::Limits;

/// Where `scripts/models runtime` installs the library, relative to the working directory or one of its parents.
const LOCAL_LIBRARY: &str = ".retouch/onnxruntime/libonnxruntime.so.1.31.1";

/// Where models are and how they run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Models and hardware")]
pub struct ModelArgs {
    /// The folder of model manifests and files.
    #[arg(long, env = "RETOUCH_MODELS_DIR", default_value = "models")]
    pub models_dir: PathBuf,
    /// Where models run; `cuda` fails to start if CUDA is unavailable.
    #[arg(long, env = "RETOUCH_DEVICE", value_enum, default_value = "auto")]
    pub device: DevicePolicy,
    /// The ONNX Runtime library [default: in .retouch/onnxruntime of this directory or a parent]
    #[arg(long, env = "ORT_DYLIB_PATH", value_name = "FILE")]
    pub onnxruntime: Option<PathBuf>,
    /// CPU threads for a model, at most 8 of them on a GPU, and threads for pixels [default: one per core]
    #[arg(long, env = "RETOUCH_THREADS")]
    pub threads: Option<usize>,
    /// Maximum GPU memory for one model, in MiB [default: no limit]
    #[arg(long, env = "RETOUCH_GPU_MEMORY_MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub gpu_memory_mib: Option<u32>,
    /// Maximum memory for all loaded models together, in MiB: the least recently used ones are unloaded, and loaded
    /// again when they are needed [default: no limit on a CPU, nine tenths of what is free at the start on a GPU]
    #[arg(long, env = "RETOUCH_MODEL_MEMORY_MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub model_memory_mib: Option<u32>,
    /// Maximum memory for one run of an upscaler, in MiB; larger pictures are processed in tiles, several at a time if
    /// they fit
    /// [default: 1024 on a CPU; on a GPU 4096 or an eighth of the memory of all models, whichever is more, and at most
    /// half of it and of `--gpu-memory-mib`]
    #[arg(long, env = "RETOUCH_TILE_MEMORY_MIB")]
    pub tile_memory_mib: Option<u32>,
    /// A model with the task `safety` that checks the results of Magic Fix; an unsafe result is discarded and costs
    /// nothing [default: no check]
    #[arg(long, env = "RETOUCH_SAFETY_MODEL", value_name = "NAME")]
    pub safety_model: Option<String>,
    /// Run nets as engines of TensorRT on a GPU, and keep the engines in this folder. A worker serves without them until
    /// they are built and give the same results.
    #[arg(long, env = "RETOUCH_TENSORRT_CACHE", value_name = "FOLDER")]
    pub tensorrt_cache: Option<PathBuf>,
    /// What builds the engines.
    #[arg(long, env = "RETOUCH_TENSORRT", value_enum, default_value_t)]
    pub tensorrt: EngineBuilder,
    /// Keep a model's tensors allocated between runs [default: true on a GPU]
    #[arg(long, env = "RETOUCH_KEEP_TENSORS", value_name = "BOOL")]
    pub keep_tensors: Option<bool>,
    /// Limit the input shapes that nets see: a few tile sizes, and either one input or a full batch. cuDNN plans every
    /// convolution again for each new shape [default: true on a GPU]
    #[arg(long, env = "RETOUCH_FEW_SHAPES", value_name = "BOOL")]
    pub few_shapes: Option<bool>,
    /// Record the GPU work of cutout nets and upscalers once per shape and replay it as a CUDA graph.
    #[arg(long, env = "RETOUCH_CUDA_GRAPHS", value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub cuda_graphs: bool,
    /// Use TF32 for 32-bit math on a GPU: less precise, several times as fast.
    #[arg(long, env = "RETOUCH_TF32", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub tf32: bool,
    /// Which cutout nets and upscalers run in half precision: on a GPU those whose manifest asks for it, none, or all
    /// that can. On a CPU, `f16` shows what a GPU would return, and is slower.
    #[arg(long, env = "RETOUCH_PRECISION", value_enum, default_value = "manifest")]
    pub precision: PrecisionPolicy,
    /// Use the channels-last (NHWC) layout for convolutions on a GPU [default: true for upscalers]
    #[arg(long, env = "RETOUCH_CHANNELS_LAST", value_name = "BOOL")]
    pub channels_last: Option<bool>,
    /// Maximum number of pictures or tiles of one shape in a batch, if the model supports batches [default: 8 on a GPU,
    /// 1 on a CPU]
    #[arg(long, env = "RETOUCH_BATCH", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub batch: Option<u32>,
    /// Maximum wait of a picture or tile for others that are being prepared, to fill its batch, in milliseconds.
    #[arg(long, env = "RETOUCH_BATCH_WAIT_MS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub batch_wait_ms: u64,
    #[command(flatten)]
    cuda: CudaArgs,
    #[command(flatten)]
    pub faults: RunFaults,
}

impl ModelArgs {
    /// Returns the number of threads for a model, which is also the number for pixels.
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| available_parallelism().map_or(2, usize::from)).max(1)
    }

    pub fn library(&self) -> PathBuf {
        self.onnxruntime.clone().unwrap_or_else(find_library)
    }

    pub fn runtime(&self) -> Result<Runtime, SessionError> {
        self.start(self.runtime_settings())
    }

    fn start(&self, settings: RuntimeSettings) -> Result<Runtime, SessionError> {
        // The built-in fill computes on Rayon's global pool, not on the pixel threads. Fails if the pool already exists.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(self.threads()).build_global();
        Runtime::start(settings)
    }

    fn runtime_settings(&self) -> RuntimeSettings {
        RuntimeSettings {
            library: self.library(),
            device: self.device,
            intra_threads: self.threads(),
            gpu: GpuSettings {
                memory_limit_bytes: self.gpu_memory_mib.map(|mib| (mib as usize) << 20),
                engines: self.tensorrt_cache.clone().map(|folder| EngineSettings {
                    builder: self.tensorrt,
                    folder,
                    in_background: false,
                }),
                keep_tensors: self.keep_tensors,
                few_shapes: self.few_shapes,
                graphs: self.cuda_graphs,
                tf32: self.tf32,
                precision: self.precision,
                channels_last: self.channels_last,
            },
            batching: Batching {
                max_inputs: self.batch.map(|most| most as usize),
                wait: Duration::from_millis(self.batch_wait_ms),
            },
            memory: MemorySettings {
                limit_bytes: self.model_memory_mib.map(|mib| u64::from(mib) << 20),
                probe: hardware::probe(self.cuda.clone()),
            },
            tile_memory_bytes: self.tile_memory_mib.map(|mib| u64::from(mib) << 20),
            passed_checks: None,
            faults: self.faults,
        }
    }

    pub fn registry(&self) -> anyhow::Result<Registry> {
        Ok(Registry::open(&self.models_dir, self.runtime()?)?)
    }

    /// Opens the models folder for serving: engines are built in the background.
    pub fn registry_for_serving(&self) -> anyhow::Result<Registry> {
        let mut settings = self.runtime_settings();
        if let Some(engines) = &mut settings.gpu.engines {
            engines.in_background = true;
        }
        Ok(Registry::open(&self.models_dir, self.start(settings)?)?)
    }

    /// Opens the models folder for one picture: models that have passed their checks on this machine are not checked
    /// again.
    pub fn registry_for_one_run(&self) -> anyhow::Result<Registry> {
        match std::env::home_dir() {
            Some(home) => self.registry_remembering(home.join(".cache/retouch/passed-checks")),
            None => self.registry(),
        }
    }

    /// Opens the models folder. A folder remembers which models have passed their checks, which are not repeated.
    pub fn registry_remembering(&self, passed_checks: PathBuf) -> anyhow::Result<Registry> {
        let passed_checks = Some(passed_checks);
        let settings = RuntimeSettings { passed_checks, ..self.runtime_settings() };
        Ok(Registry::open(&self.models_dir, self.start(settings)?)?)
    }

    /// Loads the model that checks results; `None` if no safety model is configured.
    pub async fn safety_checker(&self, registry: &Registry) -> anyhow::Result<Option<ModelHandle>> {
        let Some(name) = self.safety_model.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let checker = registry.load(name).await?;
        anyhow::ensure!(
            matches!(checker.task(), Task::Safety(_)),
            "RETOUCH_SAFETY_MODEL is {name}, but its task is {}, not safety",
            checker.task().as_str()
        );
        Ok(Some(checker))
    }

    pub fn pixel_pool(&self) -> anyhow::Result<PixelPool> {
        PixelPool::new(self.threads()).context("starting the pixel threads")
    }
}

/// The size limit of pictures.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Maximum side of a picture, in pixels.
    #[arg(long, env = "RETOUCH_MAX_DIMENSION", default_value_t = Limits::default().max_dimension)]
    pub max_dimension: u32,
}

impl LimitArgs {
    pub const fn limits(self) -> Limits {
        Limits { max_dimension: self.max_dimension }
    }

    /// Returns the settings of the tools on the device of a registry.
    pub fn settings(self, registry: &Registry) -> Settings {
        Settings { limits: self.limits(), tile_memory_bytes: registry.tile_memory_bytes() }
    }
}

fn find_library() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    here.ancestors()
        .map(|folder| folder.join(LOCAL_LIBRARY))
        .find(|library| library.is_file())
        .unwrap_or_else(|| PathBuf::from(LOCAL_LIBRARY))
}
