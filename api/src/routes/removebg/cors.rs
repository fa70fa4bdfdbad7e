//! Cross-origin access to `/v1.0`: pages of any origin may call it, because only the key in a header authorizes.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Allows pages of any origin to read the response.
pub fn allow_any_origin(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
}

/// Answers a browser's preflight request.
pub async fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    allow_any_origin(headers);
    let methods = HeaderValue::from_static("GET, POST, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed =
        HeaderValue::from_static("X-Api-Key, Authorization, Content-Type, Accept, Idempotency-Key");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}
