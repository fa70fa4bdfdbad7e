//! Limits request bodies: counts them against the upload budget and aborts uploads that stall.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};

use super::caller::ClientAddress;
use super::fallback;
use crate::error::ApiError;
use crate::state::App;
use crate::upload_budget::UploadReservation;

/// How long an upload may take: 25 MB over a slow mobile network.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(15);
/// How long to keep reading after an early response. Most clients read the response only after sending everything,
/// and lose it if the connection closes before that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// A request body that is being received.
#[derive(Clone)]
pub struct IncomingBody(Arc<Mutex<Incoming>>);

struct Incoming {
    reservation: UploadReservation,
    /// The unread part; `None` at the end, and while a read is in progress.
    rest: Option<BodyDataStream>,
    /// Why the upload was aborted.
    error: Option<ApiError>,
    /// True until the first read if the client waits for `100 Continue` before it sends the body.
    awaits_continue: bool,
    /// The longest pause between two chunks.
    pause: Duration,
    deadline: Instant,
}

impl IncomingBody {
    /// Releases the reserved memory early: the handler no longer needs the body but responds much later.
    pub fn release(&self) {
        self.lock().reservation.release();
    }

    fn lock(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next chunk. An error aborts the body; the handler's response is then replaced.
    async fn next(&self) -> Result<Option<Bytes>, axum::Error> {
        let (body, deadline) = {
            let mut incoming = self.lock();
            incoming.awaits_continue = false;
            (incoming.rest.take(), incoming.deadline.min(Instant::now() + incoming.pause))
        };
        let Some(mut body) = body else { return Ok(None) };
        let reason = match timeout_at(deadline, body.next()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(error),
            Ok(Some(Ok(bytes))) => {
                let mut incoming = self.lock();
                incoming.rest = Some(body);
                if incoming.reservation.grow(bytes.len()) {
                    return Ok(Some(bytes));
                }
                ApiError::Unavailable {
                    detail: "Too many uploads are in progress. Please try again shortly.".into(),
                    retry_after_secs: 5,
                }
            }
            Err(_) => ApiError::UploadTimeout,
        };
        let error = axum::Error::new(reason.to_string());
        self.lock().error = Some(reason);
        Err(error)
    }

    /// Returns the unread part, unless the client still waits for `100 Continue`.
    fn take_unread(&self) -> Option<BodyDataStream> {
        let mut incoming = self.lock();
        if incoming.awaits_continue { None } else { incoming.rest.take() }
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
        reservation: Arc::clone(&app.upload_budget).reservation(address),
        rest: Some(body.into_data_stream()),
        error: None,
        awaits_continue: parts.headers.contains_key(header::EXPECT),
        pause: Duration::from_secs(app.limits.upload_pause_secs),
        deadline: Instant::now() + UPLOAD_TIMEOUT,
    })));
    parts.extensions.insert(incoming.clone());
    let limited = stream::try_unfold(incoming.clone(), |incoming| async move {
        let bytes = incoming.next().await?;
        Ok::<_, axum::Error>(bytes.map(|bytes| (bytes, incoming)))
    });
    let response = next.run(Request::from_parts(parts, Body::from_stream(limited))).await;
    if let Some(mut rest) = incoming.take_unread() {
        tokio::spawn(timeout(DRAIN_TIMEOUT, async move {
            while let Some(Ok(_)) = rest.next().await {}
        }));
    }
    let error = incoming.lock().error.take();
    error.map_or(response, |error| fallback::respond(&path, error))
}
