//! Limits request bodies: by their type, by the upload budget, and by the pace at which they arrive.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};

use super::caller::ClientAddress;
use super::fallback;
use super::request::header_text;
use crate::error::ApiError;
use crate::limits::fair_budget::{FairBudget, Share};
use crate::state::App;

/// Maximum time for an upload: enough for 25 MB over a slow mobile network.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(15);
/// How long to keep reading after an early response. Most clients read the response only after sending everything,
/// and lose it if the connection closes before that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum size of a body without a file, in bytes; Stripe's messages take kilobytes.
pub const MAX_PLAIN_BODY: usize = 1 << 20;
/// Room for the headers of fields around a file, in bytes.
const MULTIPART_OVERHEAD: usize = 64 << 10;

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
    /// Returns how many bytes the handler has received.
    pub fn received(&self) -> usize {
        self.lock().received
    }

    /// Releases the memory early: the handler no longer needs the body but responds much later.
    pub fn release(&self) {
        self.lock().share.release();
    }

    /// Counts `files`, which were read from the body, until they are dropped instead of until the response.
    pub fn hand_over(&self, files: Vec<&mut Bytes>) {
        let mut incoming = self.lock();
        incoming.share.shrink_to(files.iter().map(|file| file.len()).sum());
        for file in files {
            let share = incoming.share.split(file.len());
            *file = share.keep_for(std::mem::take(file));
        }
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

    /// Returns the unread part, unless the client still waits for `100 Continue`.
    fn take_unread(&self) -> Option<BodyDataStream> {
        let mut incoming = self.lock();
        if incoming.awaits_continue { None } else { incoming.rest.take() }
    }
}

/// Returns the largest body of this type that a handler takes, unless it sets another limit.
fn max_bytes(headers: &HeaderMap, app: &App) -> usize {
    let kind = header_text(headers, header::CONTENT_TYPE).unwrap_or_default();
    if kind.trim_start().to_ascii_lowercase().starts_with("multipart/form-data") {
        app.limits.max_upload_bytes + MULTIPART_OVERHEAD
    } else {
        MAX_PLAIN_BODY
    }
}

/// Counts the body against the upload budget until the response, or [`IncomingBody::release`], and aborts it when it
/// stalls.
pub async fn limit(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let address = match ClientAddress::from_request_parts(&mut parts, &app).await {
        Ok(ClientAddress(address)) => address,
        Err(error) => return fallback::respond(parts.uri.path(), error),
    };
    let path = parts.uri.path().to_owned();
    let incoming = IncomingBody(Arc::new(Mutex::new(Incoming {
        share: FairBudget::share(Arc::clone(&app.upload_budget), Some(address)),
        received: 0,
        rest: Some(body.into_data_stream()),
        error: None,
        awaits_continue: parts.headers.contains_key(header::EXPECT),
        pace: Pace {
            window: Duration::from_secs(app.limits.upload_pause_secs),
            min_bytes: (app.limits.upload_min_kib_per_sec * app.limits.upload_pause_secs) as usize
                * 1024,
            waited: Duration::ZERO,
            received: 0,
        },
        deadline: Instant::now() + UPLOAD_TIMEOUT,
    })));
    parts.extensions.insert(incoming.clone());
    let limited = stream::try_unfold(incoming.clone(), |incoming| async move {
        let bytes = incoming.next().await?;
        Ok::<_, axum::Error>(bytes.map(|bytes| (bytes, incoming)))
    });
    let max_bytes = max_bytes(&parts.headers, &app);
    let mut request = Request::from_parts(parts, Body::from_stream(limited));
    DefaultBodyLimit::max(max_bytes).apply(&mut request);
    let response = next.run(request).await;
    if let Some(mut rest) = incoming.take_unread() {
        tokio::spawn(timeout(DRAIN_TIMEOUT, async move {
            while let Some(Ok(_)) = rest.next().await {}
        }));
    }
    let error = incoming.lock().error.take();
    error.map_or(response, |error| fallback::respond(&path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let error = incoming.lock().error.take();
        assert!(matches!(error, Some(ApiError::UploadTimeout)), "{error:?}");
    }
}
