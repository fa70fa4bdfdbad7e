//! Error responses that no handler returns: unknown paths, wrong methods, aborted uploads and panics.

use axum::http::Uri;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::routes::removebg::Refusal;

/// Returns the response for a path that does not exist.
pub fn no_such_path(path: &str) -> Response {
    respond(path, ApiError::NoSuchPath)
}

/// Returns the response for a method that the path does not support.
pub async fn method_not_allowed(uri: Uri) -> Response {
    respond(uri.path(), ApiError::MethodNotAllowed)
}

/// Returns the response for a handler that panicked.
pub fn panicked() -> Response {
    ApiError::Internal(anyhow::anyhow!("a handler panicked")).into_response()
}

/// Renders `error` in the format of `path`: below `/v1.0`, clients expect remove.bg's.
pub fn respond(path: &str, error: ApiError) -> Response {
    if path == "/v1.0" || path.starts_with("/v1.0/") {
        Refusal::from(error).into_response()
    } else {
        error.into_response()
    }
}
