//! The time, as an argument.
//!
//! Leases and rows use the database's clock, the only one that all nodes share. This one is for what
//! never reaches the database: signed addresses, caches, tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Duration, Utc};

/// Tells the time: the system's, or one that a test sets.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The machine's clock.
    pub const fn system() -> Self {
        Self(None)
    }

    /// A clock that stands at `time` until it is moved. Clones move together.
    pub fn fixed(time: DateTime<Utc>) -> Self {
        Self(Some(Arc::new(AtomicI64::new(time.timestamp_millis()))))
    }

    /// What time it is.
    pub fn now(&self) -> DateTime<Utc> {
        self.0
            .as_ref()
            .and_then(|millis| DateTime::from_timestamp_millis(millis.load(Ordering::SeqCst)))
            .unwrap_or_else(system_time)
    }

    /// Moves a fixed clock on; the system's clock cannot be moved and stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Some(millis) = &self.0 {
            millis.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
fn system_time() -> DateTime<Utc> {
    Utc::now()
}
