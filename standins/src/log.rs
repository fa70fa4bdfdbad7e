//! Captures the log of a test.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For log collectors.
    Json,
}

/// The captured log of the current thread. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    /// Captures events of this thread, from level `info`, until the guard is dropped.
    #[must_use]
    pub fn start(format: LogFormat) -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone());
        let guard = match format {
            LogFormat::Text => tracing::subscriber::set_default(subscriber.finish()),
            LogFormat::Json => tracing::subscriber::set_default(subscriber.json().finish()),
        };
        (log, guard)
    }

    /// Returns the log lines since the last call.
    pub fn take(&self) -> String {
        let written = std::mem::take(&mut *self.0.lock().expect("no panic"));
        String::from_utf8_lossy(&written).into_owned()
    }
}

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for CapturedLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
