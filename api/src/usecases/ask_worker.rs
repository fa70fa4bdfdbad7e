//! Asks the workers for something that takes seconds and no job.

use std::time::Duration;

use retouch_core::queue::{Reply, Request, RequestError};
use tokio::sync::oneshot;

use crate::fair_budget::Share;
use crate::state::App;

/// Sends a request to the workers and waits up to `wait` for the reply. Keeps `place`, which the request takes among
/// those that wait. If the client hangs up, takes the request back first.
pub async fn ask_worker<R: Request + 'static>(
    app: &App,
    request: R,
    wait: Duration,
    place: Option<Share>,
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
