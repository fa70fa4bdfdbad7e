//! Ends requests that wait too long for a dependency.

use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::fallback;
use crate::error::ApiError;

/// Maximum time to answer a request that neither uploads nor runs a tool.
const DEADLINE: Duration = Duration::from_secs(20);

/// The paths whose GET does what their POST does: it runs a tool or opens a payment page.
pub const ACTING_GETS: [&str; 8] = [
    "/api/rmbg-images/remove-bg-ai",
    "/api/rmbg-images/remove-bg-free",
    "/api/upscale/upscale-ai-2",
    "/api/upscale/upscale-ai-4",
    "/api/upscale/upscale-free",
    "/api/payments/create-checkout-session-1",
    "/api/payments/create-checkout-session-2",
    "/api/payments/create-checkout-session-3",
];

/// Renders a file as POST does elsewhere, and waits for memory as long as `RETOUCH_DECODE_WAIT_SECS` says.
const RENDERS: &str = "/api/results/{resultId}/file";

/// Ends a GET or DELETE after [`DEADLINE`]. Leaves out POST, GET on [`ACTING_GETS`], and [`RENDERS`]: those upload, render or
/// wait for a run, and have deadlines of their own.
pub async fn enforce(route: MatchedPath, request: Request, next: Next) -> Response {
    let is_quick = match *request.method() {
        Method::DELETE => true,
        Method::GET | Method::HEAD => {
            !ACTING_GETS.contains(&route.as_str()) && route.as_str() != RENDERS
        }
        _ => false,
    };
    if !is_quick {
        return next.run(request).await;
    }
    let path = request.uri().path().to_owned();
    tokio::time::timeout(DEADLINE, next.run(request)).await.unwrap_or_else(|_| {
        tracing::warn!(path, "A request took longer than {DEADLINE:?}");
        let detail = "The service is busy. Please try again in a moment.".to_owned();
        fallback::respond(&path, ApiError::Unavailable { detail, retry_after_secs: 5 })
    })
}
