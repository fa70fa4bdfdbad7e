//! Sends requests to workers: work that takes seconds and needs no job.

use std::time::Duration;

use retouch_core::queue::{Reply, Request, RequestError};
use tokio::sync::oneshot;

use crate::state::App;

/// Sends a request to the workers and waits up to `wait` for the reply. Holds `place` in the waiting line until then.
/// If the client hangs up, withdraws the request before it frees the place.
pub async fn ask_worker<R: Request + 'static>(
    app: &App,
    request: R,
    wait: Duration,
    place: impl Send + 'static,
) -> Result<Reply<R>, RequestError> {
    let (mut answer, answered) = oneshot::channel();
    let queue = app.queue.clone();
    tokio::spawn(async move {
        let reply = queue.request(request, wait, answer.closed()).await;
        drop(place);
        // The client may have hung up.
        let _ = answer.send(reply);
    });
    // The task always answers, unless it panics.
    answered.await.unwrap_or(Err(RequestError::TimedOut))
}
