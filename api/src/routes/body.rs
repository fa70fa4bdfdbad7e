//! What comes with a request is counted while it is held, and not waited for forever.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::caller::Address;
use super::problem;
use crate::error::ApiError;
use crate::state::App;
use crate::uploads::Share;

/// How long all of it may take: 25 MB over a slow mobile network.
const WHOLE: Duration = Duration::from_mins(15);

/// A body on its way in.
#[derive(Clone)]
pub struct Sending(Arc<Mutex<Sent>>);

struct Sent {
    share: Share,
    /// Why the rest is not wanted.
    broken: Option<ApiError>,
    /// How long nothing may come.
    pause: Duration,
    until: Instant,
}

impl Sending {
    /// What has come is worked off, though the answer may take a while.
    pub fn worked_off(&self) {
        self.sent().share.give_back();
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next bytes; an error, which the handler sees as one of the body, when they are not wanted.
    async fn next(
        self,
        mut body: BodyDataStream,
    ) -> Result<Option<(Bytes, BodyDataStream)>, axum::Error> {
        let patience = {
            let sent = self.sent();
            sent.until.min(Instant::now() + sent.pause)
        };
        let broken = match timeout_at(patience, body.next()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(error),
            Ok(Some(Ok(bytes))) if self.sent().share.grow(bytes.len()) => {
                return Ok(Some((bytes, body)));
            }
            Ok(Some(Ok(_))) => ApiError::Unavailable {
                detail: "Too much is being uploaded at the moment. Try again shortly".into(),
                retry_after_secs: 5,
            },
            Err(_) => ApiError::TooSlow,
        };
        let error = axum::Error::new(broken.to_string());
        self.sent().broken = Some(broken);
        Err(error)
    }
}

/// Counts what comes with a request until it is answered or [`Sending::worked_off`], and ends what stalls.
pub async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let address = match Address::from_request_parts(&mut parts, &app).await {
        Ok(Address(address)) => address,
        Err(error) => return problem::at(parts.uri.path(), error),
    };
    let path = parts.uri.path().to_owned();
    let sent = Sent {
        share: Arc::clone(&app.uploads).share(address),
        broken: None,
        pause: Duration::from_secs(app.limits.upload_pause_secs),
        until: Instant::now() + WHOLE,
    };
    let sending = Sending(Arc::new(Mutex::new(sent)));
    parts.extensions.insert(sending.clone());
    let counted = stream::try_unfold(
        (sending.clone(), body.into_data_stream()),
        |(sending, body)| async move {
            let next = sending.clone().next(body).await?;
            Ok::<_, axum::Error>(next.map(|(bytes, body)| (bytes, (sending, body))))
        },
    );
    let response = next.run(Request::from_parts(parts, Body::from_stream(counted))).await;
    let broken = sending.sent().broken.take();
    broken.map_or(response, |error| problem::at(&path, error))
}
