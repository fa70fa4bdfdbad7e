//! Faults that tests inject into a real worker process. All are off unless asked for.

use std::time::Duration;

use crate::models::session::SessionError;

/// What goes wrong on purpose.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Faults {
    /// Abort the process when a picture is so many pixels wide, as a crash in a native library would.
    #[arg(long, env = "RETOUCH_FAULT_ABORT_AT_WIDTH", hide = true)]
    fault_abort_at_width: Option<i32>,
    /// Wait before each picture, in milliseconds, as a slow model would.
    #[arg(long, env = "RETOUCH_FAULT_DELAY_MS", hide = true, default_value_t = 0)]
    fault_delay_ms: u64,
}

impl Faults {
    /// Called once a job's picture is at hand.
    pub async fn strike(&self, width: i32) {
        if self.fault_delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.fault_delay_ms)).await;
        }
        if self.fault_abort_at_width == Some(width) {
            tracing::error!("Aborting on purpose");
            std::process::abort();
        }
    }
}

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
