//! Ends requests that wait too long for a dependency.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::fallback;
use crate::error::ApiError;

/// How long a request may take to answer if it neither uploads nor runs a tool.
const DEADLINE: Duration = Duration::from_secs(20);

/// Renders a file as POST does elsewhere, and waits for memory as long as `RETOUCH_DECODE_WAIT_SECS` says.
const RENDERS: &str = "/api/results/{resultId}/file";

/// Ends a GET or DELETE after [`DEADLINE`]. Leaves out POST, GET on the paths in `run_paths`, and [`RENDERS`]: those upload,
/// render or wait for a run, and have deadlines of their own.
pub(crate) async fn enforce(
    run_paths: Arc<HashSet<String>>,
    route: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    let is_quick = match *request.method() {
        Method::DELETE => true,
        Method::GET | Method::HEAD => {
            !run_paths.contains(route.as_str()) && route.as_str() != RENDERS
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
