//! Errors in the wire format of remove.bg.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use retouch_core::jobs::SubmitError;
use serde::Serialize;
use utoipa::ToSchema;

use super::cors::allow_any_origin;
use crate::error::ApiError;
use crate::usecases::removebg::RemovalError;

/// The body of every error response.
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

/// An error response.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    reason: RefusalReason,
    retry_after_secs: Option<u64>,
    charged: i32,
}

impl Refusal {
    /// 400: a parameter is missing, invalid or not supported.
    pub fn of_parameter(code: &str, title: String) -> Self {
        let reason = RefusalReason { title, code: code.to_owned() };
        Self { status: StatusCode::BAD_REQUEST, reason, retry_after_secs: None, charged: 0 }
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let code = match &error {
            ApiError::Unauthorized(_) | ApiError::AccountDeleted => "auth_failed",
            ApiError::NotEnoughCredits => "insufficient_credits",
            ApiError::BadRequest(_) => "bad_request",
            ApiError::FileTooLarge { .. } => "file_size_too_large",
            ApiError::UnsupportedType | ApiError::Foreign(_) => "invalid_file_type",
            ApiError::DimensionsTooBig { .. } => "resolution_too_high",
            ApiError::UnreadableImage => "failed_to_read_image",
            ApiError::RateLimited { .. }
            | ApiError::QueueFull { reason: SubmitError::OwnerQueueFull, .. } => {
                "rate_limit_exceeded"
            }
            ApiError::QueueFull { .. } | ApiError::Unavailable { .. } => "unavailable",
            ApiError::Canceled => "cancelled",
            ApiError::UploadTimeout => "timeout",
            ApiError::NotFound(_) | ApiError::NoSuchPath => "not_found",
            ApiError::MethodNotAllowed => "method_not_allowed",
            ApiError::IdempotencyKeyReused => "idempotency_key_reused",
            ApiError::Unprocessable(_) => "not_possible",
            ApiError::StorageFull(_) => "storage_full",
            ApiError::RunFailed(failure) if failure.code == "image_without_subject" => {
                "unknown_foreground"
            }
            ApiError::RunFailed(failure) => &failure.code,
            ApiError::OutcomeUnknown { .. } => "outcome_unknown",
            ApiError::Internal(reason) => {
                tracing::error!("A request failed: {reason:#}");
                "internal_error"
            }
            _ => "failed",
        };
        let is_about_image = matches!(
            error,
            ApiError::UnsupportedType
                | ApiError::Foreign(_)
                | ApiError::DimensionsTooBig { .. }
                | ApiError::UnreadableImage
                | ApiError::RunFailed(_)
        );
        let status = match error.status() {
            StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::UNSUPPORTED_MEDIA_TYPE
                if is_about_image =>
            {
                StatusCode::BAD_REQUEST
            }
            status => status,
        };
        let retry_after_secs = error.retry_after_secs();
        let reason = RefusalReason { title: error.to_string(), code: code.to_owned() };
        Self { status, reason, retry_after_secs, charged: 0 }
    }
}

impl From<RemovalError> for Refusal {
    fn from(error: RemovalError) -> Self {
        let RemovalError { error, charged } = error;
        let mut refusal = Self::from(error);
        if charged > 0 {
            refusal.status = StatusCode::SERVICE_UNAVAILABLE;
            refusal.retry_after_secs = Some(5);
            refusal.charged = charged;
            refusal.reason.code = "result_unavailable".into();
            refusal.reason.title =
                "You were charged for this cutout, but it cannot be read at the moment. \
                Repeat the request within a few minutes, with the same Idempotency-Key if you sent one, \
                to get it at no further cost."
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
        if let Some(seconds) = self.retry_after_secs {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.charged > 0 {
            headers.insert("x-credits-charged", HeaderValue::from(self.charged));
        }
        allow_any_origin(headers);
        response
    }
}
