//! Limits request bodies: by their type, by the upload budget, and by the pace at which they arrive.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;

use super::fallback;
use crate::http::body::{IncomingBody, MAX_PLAIN_BODY};
use crate::http::caller::ClientAddress;
use crate::http::request::header_text;
use crate::limits::fair_budget::FairBudget;
use crate::state::App;

/// Room for the headers of fields around a file, in bytes.
const MULTIPART_OVERHEAD: usize = 64 << 10;

/// Counts the body against the upload budget until the response, or as the handler's
/// [`UploadMemory`](crate::http::body::UploadMemory) says, and aborts it when it stalls.
pub async fn limit(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let address = match ClientAddress::from_request_parts(&mut parts, &app).await {
        Ok(ClientAddress(address)) => address,
        Err(error) => return fallback::respond(&path, error),
    };
    let share = FairBudget::share(Arc::clone(&app.upload_budget), Some(address));
    let awaits_continue = parts.headers.contains_key(header::EXPECT);
    let incoming = IncomingBody::new(body, share, awaits_continue, &app.limits);
    parts.extensions.insert(incoming.clone());
    let max_bytes = max_bytes(&parts.headers, &app);
    let mut request = Request::from_parts(parts, incoming.limited());
    DefaultBodyLimit::max(max_bytes).apply(&mut request);
    let response = next.run(request).await;
    incoming.drain();
    incoming.take_error().map_or(response, |error| fallback::respond(&path, error))
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
