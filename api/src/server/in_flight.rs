//! Limits the requests in flight per client IP address: behind a proxy, these are what uses up connections.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::fallback;
use crate::error::ApiError;
use crate::http::caller::ClientAddress;
use crate::limits::fair_budget::{FairBudget, Share};
use crate::state::App;

/// Counts the request against the share of its client's address until the response is sent or dropped.
pub async fn limit(
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    request: Request,
    next: Next,
) -> Response {
    let mut share = FairBudget::share(Arc::clone(&app.requests), Some(address));
    if !share.grow_to(1, app.limits.address_connections) {
        let detail = "Too many requests are in progress. Please try again shortly.".to_owned();
        let error = ApiError::Unavailable { detail, retry_after_secs: 5 };
        return fallback::respond(request.uri().path(), error);
    }
    next.run(request).await.map(|body| Body::new(Counted { body, _share: share }))
}

/// A response body, and the share that it takes until it is dropped.
struct Counted {
    body: Body,
    _share: Share,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
