//! Event streams: of an account, and of a single job.

pub mod account;
pub mod job;

use std::time::Duration;

/// A stream ends after this time, so that nobody follows an account for longer than their token is trusted.
const MAX_AGE: Duration = Duration::from_mins(15);
/// Maximum time without bytes, after which proxies might close a stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
