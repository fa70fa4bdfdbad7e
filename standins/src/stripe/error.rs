//! Errors in Stripe's format.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error: `{"error": {"type", "code", "param", "message"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeError {
    pub status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
}

impl StripeError {
    /// 400: the request is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            code: None,
            param: None,
            message: message.into(),
        }
    }

    /// 400: a required parameter is missing.
    pub fn missing(param: &str) -> Self {
        let message = format!("Missing required param: {param}.");
        Self { code: Some("parameter_missing"), ..Self::invalid(message).with_param(param) }
    }

    /// 404: the object does not exist.
    pub fn not_found(what: &str, id: &str) -> Self {
        let error = Self::invalid(format!("No such {what}: '{id}'")).with_param("id");
        Self { status: StatusCode::NOT_FOUND, code: Some("resource_missing"), ..error }
    }

    /// 404: the stand-in does not implement the route.
    pub fn unknown_route(request: &str) -> Self {
        let message = format!("Unrecognized request URL ({request}) for the stand-in.");
        Self { status: StatusCode::NOT_FOUND, ..Self::invalid(message) }
    }

    /// 401: the API key is missing or wrong.
    pub fn wrong_key() -> Self {
        let message =
            "Invalid API Key provided. Send the secret key as `Authorization: Bearer sk_test_…`.";
        Self { status: StatusCode::UNAUTHORIZED, ..Self::invalid(message) }
    }

    /// 500: Stripe itself failed.
    pub fn server_error() -> Self {
        let message = "An unknown error occurred";
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: "api_error",
            ..Self::invalid(message)
        }
    }

    /// 400: the idempotency key belongs to a different request.
    pub fn key_reused(key: &str) -> Self {
        let message = format!(
            "Keys for idempotent requests can only be used with the same parameters they were first used with. \
             Try using a key other than '{key}' if you meant to execute a different request."
        );
        Self { kind: "idempotency_error", ..Self::invalid(message) }
    }

    /// Adds one of Stripe's error codes.
    pub fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Names the parameter that caused the error.
    pub fn with_param(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    fn body(&self) -> Value {
        let mut error = json!({"type": self.kind, "message": self.message});
        if let Some(code) = self.code {
            error["code"] = code.into();
        }
        if let Some(param) = &self.param {
            error["param"] = param.as_str().into();
        }
        json!({ "error": error })
    }
}

impl IntoResponse for StripeError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}
