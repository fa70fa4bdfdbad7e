//! The current time, as an argument.
//!
//! Leases and rows use the database's clock, the only one that all nodes share. This clock is for data that never
//! reaches the database: signed URLs, caches, tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Duration, Utc};

/// A clock: the system's, or a fixed one for tests.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    pub const fn system() -> Self {
        Self(None)
    }

    /// Returns a clock that shows `time` until [`Clock::advance`]. Its clones advance together.
    pub fn fixed(time: DateTime<Utc>) -> Self {
        Self(Some(Arc::new(AtomicI64::new(time.timestamp_millis()))))
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.0
            .as_ref()
            .and_then(|millis| DateTime::from_timestamp_millis(millis.load(Ordering::SeqCst)))
            .unwrap_or_else(system_time)
    }

    /// Advances a fixed clock. Has no effect on the system's clock.
    pub fn advance(&self, by: Duration) {
        if let Some(millis) = &self.0 {
            millis.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
fn system_time() -> DateTime<Utc> {
    Utc::now()
}
