//! Faults that tests inject into a real worker process. All are off unless asked for.

use std::time::Duration;

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
