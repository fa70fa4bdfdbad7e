//! Event streams: of an account, and of a single job.

pub mod account;
pub mod job;

use std::convert::Infallible;
use std::time::Duration;

use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;

/// A stream ends after this time, so that nobody follows an account for longer than their token is trusted.
const MAX_AGE: Duration = Duration::from_mins(15);
/// Maximum time without bytes, after which proxies might close a stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Streams `events`. The header keeps nginx from collecting them.
fn respond(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> impl IntoResponse {
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    ([("x-accel-buffering", "no")], stream)
}
