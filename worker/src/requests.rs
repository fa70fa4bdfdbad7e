//! Answers requests of one kind from Redis, one at a time. It runs beside the consumer and takes no slot, because the
//! person who waits for the reply must not wait for a job.

use std::pin::pin;
use std::time::Duration;

use retouch_core::queue::{Pending, Queue, Reply, Request};
use tokio_util::sync::CancellationToken;

/// How often a worker announces that it answers.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
/// The pause after a failure of Redis, and while there is no model.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers requests of one kind.
pub trait Answerer: Send {
    type To: Request + 'static;

    /// Whether an answer that comes too late for its caller is finished, because it makes the next one faster.
    const FINISHES_LATE: bool;

    /// Frees what is no longer needed; called about once a second.
    fn tidy(&mut self) {}

    fn answer(&mut self, request: &Self::To) -> impl Future<Output = Reply<Self::To>> + Send;
}

/// Answers requests until `stop`, while `is_available`.
pub async fn answer<A: Answerer>(
    mut answerer: A,
    queue: Queue,
    is_available: impl Fn() -> bool + Clone + Send + 'static,
    stop: CancellationToken,
) {
    tokio::spawn(announce::<A::To>(queue.clone(), is_available.clone(), stop.clone()));
    let kind = A::To::KIND;
    let mut requests = queue.requests::<A::To>();
    while !stop.is_cancelled() {
        answerer.tidy();
        if !is_available() {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        match requests.next().await {
            Ok(Some(Pending { request, time_left })) => {
                let mut answering = pin!(answerer.answer(&request));
                let Ok(reply) = tokio::time::timeout(time_left, &mut answering).await else {
                    tracing::warn!(kind, "A request took too long");
                    if A::FINISHES_LATE {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            _ = answering => {}
                        }
                    }
                    continue;
                };
                if let Err(error) = queue.reply::<A::To>(request.id(), reply).await {
                    tracing::warn!(kind, %error, "Cannot reply to a request");
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(kind, %error, "Cannot read the requests; retrying");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Announces to the API that this worker answers, while it has a model.
async fn announce<R: Request>(
    queue: Queue,
    is_available: impl Fn() -> bool + Send,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        if is_available()
            && let Err(error) = queue.announce::<R>().await
        {
            tracing::debug!(kind = R::KIND, %error, "Cannot announce that this worker answers");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ANNOUNCE_INTERVAL) => {}
        }
    }
}
