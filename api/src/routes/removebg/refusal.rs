//! Refusals as clients of remove.bg read them: a list of errors that is never empty.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::usecases::removebg::NotDelivered;

/// What is answered when there is no cut-out.
#[derive(Serialize, ToSchema)]
pub struct RefusalBody {
    /// Exactly one.
    errors: Vec<RefusalReason>,
}

/// See [`RefusalBody`].
#[derive(Debug, Serialize, ToSchema)]
pub struct RefusalReason {
    /// For people.
    #[schema(example = "Not enough credits")]
    title: String,
    /// For programs.
    #[schema(example = "insufficient_credits")]
    code: String,
}

/// Why there is no cut-out.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    reason: RefusalReason,
    retry_after_secs: Option<u64>,
    charged: i32,
}

impl Refusal {
    /// 400: a parameter that is missing, wrong or not supported.
    pub fn of_parameter(code: &str, title: String) -> Self {
        let reason = RefusalReason { title, code: code.to_owned() };
        Self { status: StatusCode::BAD_REQUEST, reason, retry_after_secs: None, charged: 0 }
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let code = match &error {
            ApiError::Unauthorized(_) => "auth_failed",
            ApiError::NotEnoughCredits => "insufficient_credits",
            ApiError::BadRequest(_) => "bad_request",
            ApiError::FileTooLarge { .. } => "file_size_too_large",
            ApiError::UnsupportedType => "invalid_file_type",
            ApiError::DimensionsTooBig { .. } => "resolution_too_high",
            ApiError::UnreadableImage => "failed_to_read_image",
            ApiError::TooMuchOfOne { .. } => "rate_limit_exceeded",
            ApiError::Unavailable { .. } => "unavailable",
            ApiError::Cancelled => "cancelled",
            ApiError::TooSlow => "timeout",
            ApiError::NotFound(_) | ApiError::NoSuchPath => "not_found",
            ApiError::WrongMethod => "method_not_allowed",
            ApiError::IdempotencyKeyReused => "idempotency_key_reused",
            ApiError::AgainstTheRules(_) => "not_possible",
            ApiError::RunFailed(failure) => &failure.code,
            ApiError::Internal(reason) => {
                tracing::error!("A request failed: {reason:#}");
                "internal_error"
            }
            _ => "failed",
        };
        let of_the_picture = matches!(
            error,
            ApiError::UnsupportedType
                | ApiError::DimensionsTooBig { .. }
                | ApiError::UnreadableImage
                | ApiError::RunFailed(_)
        );
        let status = match error.status() {
            StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::UNSUPPORTED_MEDIA_TYPE
                if of_the_picture =>
            {
                StatusCode::BAD_REQUEST
            }
            status => status,
        };
        let retry_after_secs = match &error {
            ApiError::TooMuchOfOne { retry_after_secs, .. }
            | ApiError::Unavailable { retry_after_secs, .. } => Some(*retry_after_secs),
            _ => None,
        };
        let reason = RefusalReason { title: error.to_string(), code: code.to_owned() };
        Self { status, reason, retry_after_secs, charged: 0 }
    }
}

impl From<NotDelivered> for Refusal {
    fn from(missed: NotDelivered) -> Self {
        let NotDelivered { error, charged } = missed;
        let mut refusal = Self::from(error);
        if charged > 0 {
            refusal.status = StatusCode::SERVICE_UNAVAILABLE;
            refusal.retry_after_secs = Some(5);
            refusal.charged = charged;
            refusal.reason.code = "result_unavailable".into();
            refusal.reason.title =
                "The cut-out was made and charged for, but cannot be fetched at the moment. \
                The same call with its Idempotency-Key returns it without another charge"
                    .into();
        }
        refusal
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = Json(RefusalBody { errors: vec![self.reason] });
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after_secs {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.charged > 0 {
            headers.insert("x-credits-charged", HeaderValue::from(self.charged));
        }
        super::open_to_all(headers);
        response
    }
}
