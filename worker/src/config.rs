//! The settings of `retouch-worker serve`, besides those of the models. `--help` is the manual.

use std::path::PathBuf;
use std::time::Duration;

use retouch_core::config::{DatabaseConfig, RedisConfig, StorageConfig};
use retouch_core::telemetry::TelemetryConfig;

use crate::faults::Faults;
use retouch_inference::device::Device;

/// Everything `serve` needs to know to take jobs.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeConfig {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub redis: RedisConfig,
    #[command(flatten)]
    pub storage: StorageConfig,
    #[command(flatten)]
    pub telemetry: TelemetryConfig,
    /// How this worker is called where workers are listed; by default the host's name.
    #[arg(long, env = "RETOUCH_WORKER_NAME")]
    pub worker_name: Option<String>,
    /// How many jobs are in flight at once: while one is in the model, others are fetched, decoded,
    /// encoded and stored.
    #[arg(long, env = "RETOUCH_JOBS_IN_FLIGHT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs_in_flight: u32,
    /// The memory that the pictures of all jobs in flight may take together, in MiB; models not counted.
    #[arg(long, env = "RETOUCH_PICTURE_MEMORY_MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub picture_memory_mib: u32,
    /// How long a worker may be silent before its jobs are given to another, in seconds.
    #[arg(long, env = "RETOUCH_LEASE_SECS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub lease_secs: u32,
    /// How long running jobs get to finish after a SIGTERM; then they are handed back, in seconds.
    #[arg(long, env = "RETOUCH_DRAIN_SECS", default_value_t = 25, value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub drain_secs: u32,
    /// How often the models directory is looked at for changes, in milliseconds; what has not changed for
    /// two looks is loaded.
    #[arg(long, env = "RETOUCH_MODELS_POLL_MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(20..=3_600_000))]
    pub models_poll_ms: u64,
    /// How long a model may run without a sign of life, in seconds: then the process ends itself, and its jobs are
    /// done by the next one. By default 45 on a GPU and 900 on a processor, where a tile may take minutes.
    #[arg(long, env = "RETOUCH_STALL_SECS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub stall_secs: Option<u32>,
    /// A file that is written while all is well, for `retouch-worker healthcheck`; none by default.
    #[arg(long, env = "RETOUCH_HEALTH_FILE", value_name = "FILE")]
    pub health_file: Option<PathBuf>,
    #[command(flatten)]
    pub faults: Faults,
}

impl ServeConfig {
    /// How long a worker may be silent.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_secs.into())
    }

    /// How often the models directory is looked at.
    pub const fn models_poll(&self) -> Duration {
        Duration::from_millis(self.models_poll_ms)
    }

    /// How long a model may run without a sign of life.
    pub fn patience(&self, device: Device) -> Duration {
        let usual = match device {
            Device::Cpu => 900,
            Device::Cuda => 45,
        };
        Duration::from_secs(self.stall_secs.unwrap_or(usual).into())
    }

    /// How long running jobs get to finish.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_secs.into())
    }
}
