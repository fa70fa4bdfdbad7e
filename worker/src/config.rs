//! The settings of `retouch-worker serve`, except the settings of the models. `--help` is the manual.

use std::path::PathBuf;
use std::time::Duration;

use retouch_core::config::{DatabaseConfig, RedisConfig, StorageConfig};
use retouch_core::telemetry::TelemetryConfig;
use retouch_credentials::CredentialsConfig;

use crate::faults::Faults;
use retouch_inference::device::Device;

/// The settings of `serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeConfig {
    /// The name of this worker in lists of workers [default: the host name]
    #[arg(long, env = "RETOUCH_WORKER_NAME")]
    pub worker_name: Option<String>,
    /// How many jobs run at once: while the model works on one, others are fetched, decoded, encoded and stored.
    #[arg(long, env = "RETOUCH_JOBS_IN_FLIGHT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs_in_flight: u32,
    /// The memory for the pictures of all running jobs together, in MiB, without models.
    #[arg(long, env = "RETOUCH_PICTURE_MEMORY_MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub picture_memory_mib: u32,
    /// The memory for click to select, in MiB, in addition to the memory for jobs; 0 turns it off.
    #[arg(long, env = "RETOUCH_SELECT_MEMORY_MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    pub select_memory_mib: u32,
    /// Maximum silence of a worker before its jobs go back to the queue, in seconds.
    #[arg(long, env = "RETOUCH_LEASE_SECS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub lease_secs: u32,
    /// Grace period for running jobs after SIGTERM, in seconds; then they are handed back.
    #[arg(long, env = "RETOUCH_DRAIN_SECS", default_value_t = 25, value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub drain_secs: u32,
    /// How often to check the models directory for changes, in milliseconds. A change is loaded once it has stayed the
    /// same for two checks.
    #[arg(long, env = "RETOUCH_MODELS_POLL_MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(20..=3_600_000))]
    pub models_poll_ms: u64,
    /// Maximum time without progress in a model's run, in seconds. After that the process exits, and another process
    /// repeats its jobs [default: 45 on a GPU, 900 on a CPU, where a tile may take minutes]
    #[arg(long, env = "RETOUCH_STALL_SECS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub stall_secs: Option<u32>,
    /// A file to update while the worker is healthy, for `retouch-worker healthcheck` [default: none]
    #[arg(long, env = "RETOUCH_HEALTH_FILE", value_name = "FILE")]
    pub health_file: Option<PathBuf>,
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub redis: RedisConfig,
    #[command(flatten)]
    pub storage: StorageConfig,
    #[command(flatten)]
    pub telemetry: TelemetryConfig,
    #[command(flatten)]
    pub credentials: CredentialsConfig,
    #[command(flatten)]
    pub faults: Faults,
}

impl ServeConfig {
    /// Returns how long a worker may be silent.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_secs.into())
    }

    pub const fn models_poll(&self) -> Duration {
        Duration::from_millis(self.models_poll_ms)
    }

    /// Returns how long a model may run without progress.
    pub fn stall_timeout(&self, device: Device) -> Duration {
        let default = match device {
            Device::Cpu => 900,
            Device::Cuda => 45,
        };
        Duration::from_secs(self.stall_secs.unwrap_or(default).into())
    }

    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_secs.into())
    }
}
