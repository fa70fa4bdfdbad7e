//! What a process would have logged, for a test to read.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// How the lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

/// What this thread logs. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Writes down what this thread logs, from `info` on, until the guard is dropped.
    #[must_use]
    pub fn capture(lines: Lines) -> (Self, DefaultGuard) {
        let log = Self::default();
        let format = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone());
        let guard = match lines {
            Lines::Text => tracing::subscriber::set_default(format.finish()),
            Lines::Json => tracing::subscriber::set_default(format.json().finish()),
        };
        (log, guard)
    }

    /// What was written since the last call.
    pub fn take(&self) -> String {
        let written = std::mem::take(&mut *self.0.lock().expect("no panic"));
        String::from_utf8_lossy(&written).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
