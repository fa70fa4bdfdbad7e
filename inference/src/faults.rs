//! Faults that tests inject into model threads.

use std::time::Duration;

use crate::session::SessionError;

/// Faults to inject into the runs of models. Runs are numbered from 1 per process.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[expect(clippy::struct_field_names, reason = "they name the arguments of the program")]
pub struct RunFaults {
    /// Hang in this run, as a GPU driver may.
    #[arg(long, env = "RETOUCH_FAULT_HANG_AT_RUN", hide = true)]
    fault_hang_at_run: Option<u64>,
    /// Lose the device in this run.
    #[arg(long, env = "RETOUCH_FAULT_LOSE_DEVICE_AT_RUN", hide = true)]
    fault_lose_device_at_run: Option<u64>,
    /// Run out of memory in this run.
    #[arg(long, env = "RETOUCH_FAULT_OUT_OF_MEMORY_AT_RUN", hide = true)]
    fault_out_of_memory_at_run: Option<u64>,
    /// Panic in this run.
    #[arg(long, env = "RETOUCH_FAULT_PANIC_AT_RUN", hide = true)]
    fault_panic_at_run: Option<u64>,
    /// Run out of memory in this load, if its model had given way. Loads are numbered from 1 per process, first ones
    /// included.
    #[arg(long, env = "RETOUCH_FAULT_OUT_OF_MEMORY_AT_LOAD", hide = true)]
    fault_out_of_memory_at_load: Option<u64>,
    /// Run out of the memory that one session may use in this run.
    #[arg(long, env = "RETOUCH_FAULT_OWN_LIMIT_AT_RUN", hide = true)]
    fault_own_limit_at_run: Option<u64>,
    /// How long a net prepares for an input of another shape than its last one, in milliseconds: as on a GPU.
    #[arg(long, env = "RETOUCH_FAULT_PREPARATION_MS", hide = true)]
    fault_preparation_ms: Option<u64>,
    /// The fault of every engine.
    #[arg(long, env = "RETOUCH_FAULT_ENGINES", value_enum, hide = true)]
    fault_engines: Option<EngineFault>,
}

/// A fault of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineFault {
    /// Its outputs.
    Wrong,
    /// It passes its comparison and then fails in every run.
    Failing,
}

const OUT_OF_MEMORY: &str = "Failed to allocate memory for requested buffer (on purpose)";
const OWN_LIMIT: &str = "Available memory of 0 is smaller than requested bytes of 1 (on purpose)";

impl RunFaults {
    /// Returns whether the outputs of every engine are wrong.
    pub fn are_engines_wrong(&self) -> bool {
        self.fault_engines == Some(EngineFault::Wrong)
    }

    /// Injects the fault of engines, if any. Called before each run of an engine that serves.
    ///
    /// # Errors
    /// [`SessionError::Failed`] if engines should fail.
    pub fn inject_into_engine(&self) -> Result<(), SessionError> {
        match self.fault_engines {
            Some(EngineFault::Failing) => {
                Err(SessionError::Failed("the engine fails (on purpose)".to_owned()))
            }
            Some(EngineFault::Wrong) | None => Ok(()),
        }
    }

    /// Injects the fault that is set for this run, if any. Called before each run.
    ///
    /// # Errors
    /// [`SessionError::DeviceLost`] or [`SessionError::OutOfMemory`] if that should happen in this run.
    pub fn inject(&self, run: u64) -> Result<(), SessionError> {
        if self.fault_hang_at_run == Some(run) {
            tracing::error!("Hanging on purpose");
            loop {
                std::thread::sleep(Duration::from_mins(1));
            }
        }
        if self.fault_lose_device_at_run == Some(run) {
            let message = "CUDA failure 700: an illegal memory access was encountered (on purpose)";
            return Err(SessionError::DeviceLost(message.to_owned()));
        }
        assert!(self.fault_panic_at_run != Some(run), "panicking on purpose");
        if self.fault_out_of_memory_at_run == Some(run) {
            return Err(SessionError::OutOfMemory(OUT_OF_MEMORY.to_owned()));
        }
        if self.fault_own_limit_at_run == Some(run) {
            return Err(SessionError::OutOfMemory(OWN_LIMIT.to_owned()));
        }
        Ok(())
    }

    /// Takes as long as a net prepares, unless it is prepared. Called before each run of a picture net.
    pub fn inject_preparation(&self, is_prepared: bool) {
        if let Some(milliseconds) = self.fault_preparation_ms.filter(|_| !is_prepared) {
            std::thread::sleep(Duration::from_millis(milliseconds));
        }
    }

    /// Injects the fault that is set for this load of a model that had given way, if any. Called before each.
    ///
    /// # Errors
    /// Why the load fails, as the libraries below ONNX Runtime report it.
    pub fn inject_into_load(&self, load: u64) -> Result<(), String> {
        if self.fault_out_of_memory_at_load == Some(load) {
            return Err(OUT_OF_MEMORY.to_owned());
        }
        Ok(())
    }
}
