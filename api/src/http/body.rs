//! Request bodies while they are received, at a minimum pace and within the upload budget.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};

use crate::config::LimitsConfig;
use crate::error::ApiError;
use crate::limits::fair_budget::Share;

/// Maximum time for an upload: enough for 25 MB over a slow mobile network.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(15);
/// How long to keep reading after an early response. Most clients read the response only after sending everything,
/// and lose it if the connection closes before that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum size of a body without a file, in bytes; Stripe's messages take kilobytes.
pub const MAX_PLAIN_BODY: usize = 1 << 20;

/// A request body that is being received.
#[derive(Clone)]
pub struct IncomingBody(Arc<Mutex<Incoming>>);

struct Incoming {
    /// The bytes in memory, in the upload budget.
    share: Share,
    /// The bytes received.
    received: usize,
    /// The unread part; `None` at the end, and once nobody reads on.
    rest: Option<BodyDataStream>,
    /// Why the upload was aborted.
    error: Option<ApiError>,
    /// True until the first read if the client waits for `100 Continue` before it sends the body.
    awaits_continue: bool,
    pace: Pace,
    deadline: Instant,
}

/// The minimum speed of an upload while we wait for bytes. Time in which the handler does not read does not count.
struct Pace {
    /// Maximum pause between two chunks, and the time over which the bytes are summed up.
    window: Duration,
    min_bytes: usize,
    waited: Duration,
    received: usize,
}

impl Pace {
    /// Counts a wait for bytes. Returns false if too few arrived in the window that it ends.
    fn count(&mut self, waited: Duration, bytes: usize) -> bool {
        self.waited += waited;
        self.received += bytes;
        if self.waited < self.window {
            return true;
        }
        let is_kept = self.received >= self.min_bytes;
        (self.waited, self.received) = (Duration::ZERO, 0);
        is_kept
    }
}

impl IncomingBody {
    /// Begins to receive `body`, whose bytes count in `share`. `awaits_continue` if the client sends it only after
    /// `100 Continue`.
    pub fn new(body: Body, share: Share, awaits_continue: bool, limits: &LimitsConfig) -> Self {
        let pause_secs = limits.upload_pause_secs;
        Self(Arc::new(Mutex::new(Incoming {
            share,
            received: 0,
            rest: Some(body.into_data_stream()),
            error: None,
            awaits_continue,
            pace: Pace {
                window: Duration::from_secs(pause_secs),
                min_bytes: (limits.upload_min_kib_per_sec * pause_secs) as usize * 1024,
                waited: Duration::ZERO,
                received: 0,
            },
            deadline: Instant::now() + UPLOAD_TIMEOUT,
        })))
    }

    /// Returns the body for the handler.
    pub fn limited(&self) -> Body {
        Body::from_stream(stream::try_unfold(self.clone(), |incoming| async move {
            let bytes = incoming.next().await?;
            Ok::<_, axum::Error>(bytes.map(|bytes| (bytes, incoming)))
        }))
    }

    /// Returns how many bytes the handler has received.
    pub fn received(&self) -> usize {
        self.lock().received
    }

    fn lock(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next chunk. An error aborts the body; the handler's response is then replaced.
    async fn next(&self) -> Result<Option<Bytes>, axum::Error> {
        let deadline = {
            let mut incoming = self.lock();
            incoming.awaits_continue = false;
            incoming.deadline.min(Instant::now() + incoming.pace.window)
        };
        let started = Instant::now();
        // The body stays in place, so that it can be drained if the reader is dropped.
        let next = poll_fn(|context| match &mut self.lock().rest {
            Some(body) => body.poll_next_unpin(context),
            None => Poll::Ready(None),
        });
        let received = timeout_at(deadline, next).await;
        let mut incoming = self.lock();
        let reason = match received {
            Ok(Some(Ok(bytes))) => {
                if !incoming.pace.count(started.elapsed(), bytes.len()) {
                    ApiError::UploadTimeout
                } else if incoming.share.grow(bytes.len()) {
                    incoming.received += bytes.len();
                    return Ok(Some(bytes));
                } else {
                    ApiError::Unavailable {
                        detail: "Too many uploads are in progress. Please try again shortly."
                            .into(),
                        retry_after_secs: 5,
                    }
                }
            }
            Ok(ended) => {
                incoming.rest = None;
                return ended.transpose();
            }
            Err(_) => ApiError::UploadTimeout,
        };
        if matches!(reason, ApiError::UploadTimeout) {
            incoming.rest = None;
        }
        let error = axum::Error::new(reason.to_string());
        incoming.error = Some(reason);
        Err(error)
    }

    /// Reads on for a moment after an early response, unless the client still waits for `100 Continue`.
    pub fn drain(&self) {
        let mut incoming = self.lock();
        if incoming.awaits_continue {
            return;
        }
        if let Some(mut rest) = incoming.rest.take() {
            tokio::spawn(timeout(DRAIN_TIMEOUT, async move {
                while let Some(Ok(_)) = rest.next().await {}
            }));
        }
    }

    /// Returns why the upload was aborted; `None` if it was not.
    pub fn take_error(&self) -> Option<ApiError> {
        self.lock().error.take()
    }
}

/// The memory that the body of a request takes in the upload budget until the response; none without a body.
pub struct UploadMemory(Option<IncomingBody>);

impl UploadMemory {
    /// Returns the memory of the request that has these extensions.
    pub fn of(extensions: &Extensions) -> Self {
        Self(extensions.get().cloned())
    }

    /// Releases the memory early: the handler no longer needs the body but responds much later.
    pub fn release(&self) {
        if let Some(incoming) = &self.0 {
            incoming.lock().share.release();
        }
    }

    /// Counts `files`, which were read from the body, until they are dropped instead of until the response.
    pub fn hand_over(&self, files: Vec<&mut Bytes>) {
        let Some(incoming) = &self.0 else { return };
        let mut incoming = incoming.lock();
        incoming.share.shrink_to(files.iter().map(|file| file.len()).sum());
        for file in files {
            let share = incoming.share.split(file.len());
            *file = share.keep_for(std::mem::take(file));
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for UploadMemory {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::fair_budget::FairBudget;

    #[test]
    fn a_trickle_is_too_slow_however_much_came_before() {
        let window = Duration::from_secs(30);
        let mut pace = Pace { window, min_bytes: 30 * 4096, waited: Duration::ZERO, received: 0 };
        assert!(pace.count(Duration::from_millis(200), 25 << 20));
        let trickle = (0..100).position(|_| !pace.count(Duration::from_secs(5), 1));
        // The first window has the bulk of the bytes; the second one ends after twelve waits.
        assert_eq!(trickle, Some(11));
        let slow_phone = (0..1000).all(|_| pace.count(Duration::from_secs(1), 5 << 10));
        assert!(slow_phone);
    }

    #[tokio::test]
    async fn a_steady_upload_ends_at_its_deadline() {
        let chunks = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some((Ok::<_, axum::Error>(Bytes::from_static(&[0; 1024])), ()))
        });
        let window = Duration::from_secs(30);
        let budget = Arc::new(FairBudget::new(1 << 20));
        let incoming = IncomingBody(Arc::new(Mutex::new(Incoming {
            share: budget.share(Some(std::net::Ipv4Addr::LOCALHOST.into())),
            received: 0,
            rest: Some(Body::from_stream(chunks).into_data_stream()),
            error: None,
            awaits_continue: false,
            pace: Pace { window, min_bytes: 1024, waited: Duration::ZERO, received: 0 },
            deadline: Instant::now() + Duration::from_millis(500),
        })));
        while incoming.next().await.is_ok() {}
        assert!(incoming.received() > 0);
        let error = incoming.take_error();
        assert!(matches!(error, Some(ApiError::UploadTimeout)), "{error:?}");
    }
}
