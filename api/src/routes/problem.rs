//! Errors as `application/problem+json` (RFC 9457): a status, and a `detail` that a person understands.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use retouch_core::magic_fix::PromptError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::removebg::Refusal;
use crate::error::ApiError;

/// What every failed request answers with.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status says the kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    #[schema(example = "Payment Required")]
    pub title: String,
    /// The status.
    #[schema(example = 402)]
    pub status: u16,
    /// What happened, for people; also the code where the product names one, e.g. `Free Exists`.
    #[schema(example = "Not enough credits")]
    pub detail: String,
    /// For programs: why a run failed or was refused, e.g. `image_unreadable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl Problem {
    /// The answer for `status` and `detail`.
    pub fn response(status: StatusCode, detail: &str, code: Option<String>) -> Response {
        let problem = Self {
            kind: "about:blank".into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into(),
            code,
        };
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl ApiError {
    /// For programs, where the status does not say it.
    fn code(&self) -> Option<String> {
        let code = match self {
            Self::RunFailed(failure) => failure.code.as_str(),
            Self::MaskInvalid(_) => "mask_invalid",
            Self::MaskEmpty => "mask_empty",
            Self::Prompt(PromptError::Missing) => "prompt_required",
            Self::Prompt(PromptError::TooLong) => "prompt_too_long",
            Self::PromptNotPossible(_) => "prompt_not_possible",
            _ => return None,
        };
        Some(code.to_owned())
    }

    /// What it answers with.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::InPersonOnly => StatusCode::FORBIDDEN,
            Self::NotEnoughCredits => StatusCode::PAYMENT_REQUIRED,
            Self::NotFound(_) | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::RangeOutside { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::FreeExists | Self::Cancelled => StatusCode::CONFLICT,
            Self::FileTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::DimensionsTooBig { .. }
            | Self::UnreadableImage
            | Self::MaskInvalid(_)
            | Self::MaskEmpty
            | Self::Prompt(_)
            | Self::PromptNotPossible(_)
            | Self::AgainstTheRules(_)
            | Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyRequests { .. } | Self::TooMuchOfOne { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Unavailable { .. } | Self::NoPayments => StatusCode::SERVICE_UNAVAILABLE,
            Self::RunFailed(failure) if is_of_what_was_sent(&failure.code) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::RunFailed(_) | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Whether a run failed for what it was given, rather than for us.
fn is_of_what_was_sent(code: &str) -> bool {
    code.starts_with("image_") || code.starts_with("mask_") || code == "result_unsafe"
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Internal(error) = &self {
            tracing::error!("A request failed: {error:#}");
        }
        let code = self.code();
        let mut response = Problem::response(self.status(), &self.to_string(), code);
        let headers = response.headers_mut();
        match &self {
            Self::Unauthorized(_) => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::TooManyRequests { retry_after_secs }
            | Self::TooMuchOfOne { retry_after_secs, .. }
            | Self::Unavailable { retry_after_secs, .. } => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*retry_after_secs));
            }
            Self::RangeOutside { length } => {
                let range = HeaderValue::from_str(&format!("bytes */{length}"));
                headers.extend(range.ok().map(|range| (header::CONTENT_RANGE, range)));
            }
            _ => {}
        }
        response
    }
}

/// The answer to a path that does not exist.
pub fn no_such_path(path: &str) -> Response {
    at(path, ApiError::NoSuchPath)
}

/// The answer to a path that exists with another method.
pub async fn wrong_method(uri: Uri) -> Response {
    at(uri.path(), ApiError::WrongMethod)
}

/// What `error` answers with at `path`: clients of remove.bg read errors of another shape.
pub fn at(path: &str, error: ApiError) -> Response {
    if path == "/v1.0" || path.starts_with("/v1.0/") {
        Refusal::from(error).into_response()
    } else {
        error.into_response()
    }
}

/// The answer when a handler panicked.
pub fn panicked() -> Response {
    ApiError::Internal(anyhow::anyhow!("a handler panicked")).into_response()
}
