//! Errors as `application/problem+json` (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use retouch_core::jobs::SubmitError;
use retouch_core::with_causes;
use retouch_prompts::PromptError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;

/// The body of every error response.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status defines the type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the status.
    #[schema(example = "Payment Required")]
    pub title: String,
    /// The status.
    #[schema(example = 402)]
    pub status: u16,
    /// A sentence for people, whose wording may change. Programs use `status` and `code`.
    #[schema(example = "Not enough credits")]
    pub detail: String,
    /// The reason, for programs, where the status is not specific enough, e.g. `image_unreadable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl Problem {
    /// Builds the response; caches must not store it.
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
    /// Returns the code for programs, where the status is not specific enough.
    pub fn code(&self) -> Option<String> {
        let code = match self {
            Self::RunFailed(failure) => failure.code.as_str(),
            Self::AccountDeleted => "account_deleted",
            Self::FreeExists => "free_run_used",
            Self::Canceled => "canceled",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::DimensionsTooBig { .. } => "image_too_large",
            Self::UnreadableImage => "image_unreadable",
            Self::MaskInvalid(_) => "mask_invalid",
            Self::MaskEmpty => "mask_empty",
            Self::NothingFound => "nothing_found",
            Self::Prompt(PromptError::Missing) => "prompt_required",
            Self::Prompt(PromptError::TooLong) => "prompt_too_long",
            Self::PromptNotPossible(_) => "prompt_not_possible",
            Self::StorageFull(_) => "storage_full",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::Foreign(foreign) => foreign.code(),
            _ => return None,
        };
        Some(code.to_owned())
    }

    /// Returns the seconds until another try makes sense; `None` if there is no such time.
    pub fn retry_after_secs(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after_secs, .. }
            | Self::QueueFull { retry_after_secs, .. }
            | Self::Unavailable { retry_after_secs, .. } => Some(*retry_after_secs),
            _ => None,
        }
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) | Self::AccountDeleted => StatusCode::UNAUTHORIZED,
            Self::TokenRequired | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::NotEnoughCredits => StatusCode::PAYMENT_REQUIRED,
            Self::NotFound(_) | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RangeNotSatisfiable { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::UploadTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::FreeExists | Self::Canceled => StatusCode::CONFLICT,
            Self::FileTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedType | Self::Foreign(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::DimensionsTooBig { .. }
            | Self::UnreadableImage
            | Self::MaskInvalid(_)
            | Self::MaskEmpty
            | Self::NothingFound
            | Self::Prompt(_)
            | Self::PromptNotPossible(_)
            | Self::Unprocessable(_)
            | Self::StorageFull(_)
            | Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited { .. }
            | Self::QueueFull { reason: SubmitError::OwnerQueueFull, .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::QueueFull { .. } | Self::Unavailable { .. } | Self::PaymentsUnavailable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::RunFailed(failure) if failure.is_of_input() => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RunFailed(_) | Self::OutcomeUnknown { .. } | Self::Internal(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Internal(error) = &self {
            tracing::error!("A request failed: {}", with_causes(error.as_ref()));
        }
        let code = self.code();
        let mut response = Problem::response(self.status(), &self.to_string(), code);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_secs() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        match &self {
            Self::Unauthorized(_) | Self::AccountDeleted => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::RangeNotSatisfiable { length } => {
                let range = HeaderValue::from_str(&format!("bytes */{length}"));
                headers.extend(range.ok().map(|range| (header::CONTENT_RANGE, range)));
            }
            _ => {}
        }
        response
    }
}
