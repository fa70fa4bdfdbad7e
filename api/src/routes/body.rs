//! What comes with a request is counted while it is held, and not waited for forever.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};

use super::caller::Address;
use super::problem;
use crate::error::ApiError;
use crate::state::App;
use crate::uploads::Share;

/// How long all of it may take: 25 MB over a slow mobile network.
const WHOLE: Duration = Duration::from_mins(15);
/// How long a caller who was answered before the end is listened to: most read the answer only when all is sent, and
/// a connection closed under them loses it.
const HEAR_OUT: Duration = Duration::from_secs(3);

/// A body on its way in.
#[derive(Clone)]
pub struct Sending(Arc<Mutex<Sent>>);

struct Sent {
    share: Share,
    /// What has not been read; `None` at the end, and while it is waited for.
    rest: Option<BodyDataStream>,
    /// Why the rest is not wanted.
    broken: Option<ApiError>,
    /// Whether the caller sends nothing before it is asked to (`Expect: 100-continue`), and was not.
    waits: bool,
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
    async fn next(&self) -> Result<Option<Bytes>, axum::Error> {
        let (body, patience) = {
            let mut sent = self.sent();
            sent.waits = false;
            (sent.rest.take(), sent.until.min(Instant::now() + sent.pause))
        };
        let Some(mut body) = body else { return Ok(None) };
        let broken = match timeout_at(patience, body.next()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(error),
            Ok(Some(Ok(bytes))) => {
                let mut sent = self.sent();
                sent.rest = Some(body);
                if sent.share.grow(bytes.len()) {
                    return Ok(Some(bytes));
                }
                ApiError::Unavailable {
                    detail: "Too much is being uploaded at the moment. Try again shortly".into(),
                    retry_after_secs: 5,
                }
            }
            Err(_) => ApiError::TooSlow,
        };
        let error = axum::Error::new(broken.to_string());
        self.sent().broken = Some(broken);
        Err(error)
    }

    /// What nobody has read, if the caller is sending it.
    fn unread(&self) -> Option<BodyDataStream> {
        let mut sent = self.sent();
        if sent.waits { None } else { sent.rest.take() }
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
    let sending = Sending(Arc::new(Mutex::new(Sent {
        share: Arc::clone(&app.uploads).share(address),
        rest: Some(body.into_data_stream()),
        broken: None,
        waits: parts.headers.contains_key(header::EXPECT),
        pause: Duration::from_secs(app.limits.upload_pause_secs),
        until: Instant::now() + WHOLE,
    })));
    parts.extensions.insert(sending.clone());
    let counted = stream::try_unfold(sending.clone(), |sending| async move {
        let bytes = sending.next().await?;
        Ok::<_, axum::Error>(bytes.map(|bytes| (bytes, sending)))
    });
    let response = next.run(Request::from_parts(parts, Body::from_stream(counted))).await;
    if let Some(mut rest) = sending.unread() {
        tokio::spawn(timeout(
            HEAR_OUT,
            async move { while let Some(Ok(_)) = rest.next().await {} },
        ));
    }
    let broken = sending.sent().broken.take();
    broken.map_or(response, |error| problem::at(&path, error))
}
