//! Faults that tests inject into the threads that run models.

use std::time::Duration;

use crate::session::SessionError;

/// What goes wrong on purpose in a model's thread.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct RunFaults {
    /// Hang in the run of this number, as a driver may.
    #[arg(long, env = "RETOUCH_FAULT_HANG_AT_RUN", hide = true)]
    fault_hang_at_run: Option<u64>,
    /// Lose the device in the run of this number.
    #[arg(long, env = "RETOUCH_FAULT_LOSE_DEVICE_AT_RUN", hide = true)]
    fault_lose_device_at_run: Option<u64>,
}

impl RunFaults {
    /// Called before each run of a model, with its number in this process.
    ///
    /// # Errors
    /// When the device is to be lost.
    pub fn strike(&self, run: u64) -> Result<(), SessionError> {
        if self.fault_hang_at_run == Some(run) {
            tracing::error!("Hanging on purpose");
            loop {
                std::thread::sleep(Duration::from_mins(1));
            }
        }
        if self.fault_lose_device_at_run == Some(run) {
            let words = "CUDA failure 700: an illegal memory access was encountered (on purpose)";
            return Err(SessionError::DeviceLost(words.to_owned()));
        }
        Ok(())
    }
}
