//! Faults that tests inject into a real worker process. All are off by default.

use std::time::Duration;

/// The faults to inject.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Faults {
    /// Abort the process if a picture is exactly this many pixels wide, like a crash in a native library.
    #[arg(long = "fault-abort-at-width", env = "RETOUCH_FAULT_ABORT_AT_WIDTH", hide = true)]
    abort_at_width: Option<i32>,
    /// Panic if a picture is exactly this many pixels wide, like an index that is out of range.
    #[arg(long = "fault-panic-at-width", env = "RETOUCH_FAULT_PANIC_AT_WIDTH", hide = true)]
    panic_at_width: Option<i32>,
    /// Wait before each picture, in milliseconds, like a slow model.
    #[arg(
        long = "fault-delay-ms",
        env = "RETOUCH_FAULT_DELAY_MS",
        hide = true,
        default_value_t = 0
    )]
    delay_ms: u64,
}

impl Faults {
    /// Injects the faults; called after a job's picture was fetched. `width` is in pixels.
    pub async fn inject(&self, width: i32) {
        if self.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.delay_ms)).await;
        }
        if self.abort_at_width == Some(width) {
            tracing::error!("Aborting on purpose");
            std::process::abort();
        }
        assert_ne!(self.panic_at_width, Some(width), "on purpose");
    }
}
