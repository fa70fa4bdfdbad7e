//! What Stripe answers when it does not do what it was asked.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error in Stripe's shape: `{"error": {"type", "code", "param", "message"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The answer's status.
    pub status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
}

impl Refusal {
    /// The request asks for something that cannot be: 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            code: None,
            param: None,
            message: message.into(),
        }
    }

    /// A field that must be there is not: 400.
    pub fn missing(param: &str) -> Self {
        let message = format!("Missing required param: {param}.");
        Self { code: Some("parameter_missing"), ..Self::invalid(message).about(param) }
    }

    /// Nothing of this kind has this id: 404.
    pub fn no_such(what: &str, id: &str) -> Self {
        let refusal = Self::invalid(format!("No such {what}: '{id}'")).about("id");
        Self { status: StatusCode::NOT_FOUND, code: Some("resource_missing"), ..refusal }
    }

    /// The stand-in has no such route: 404.
    pub fn unknown_address(request: &str) -> Self {
        let message = format!("Unrecognized request URL ({request}) for the stand-in.");
        Self { status: StatusCode::NOT_FOUND, ..Self::invalid(message) }
    }

    /// The key is not ours, or missing: 401.
    pub fn wrong_key() -> Self {
        let message =
            "Invalid API Key provided. Send the secret key as `Authorization: Bearer sk_test_…`.";
        Self { status: StatusCode::UNAUTHORIZED, ..Self::invalid(message) }
    }

    /// Too much at once: 429.
    pub fn rate_limit() -> Self {
        let message = "Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.";
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: Some("rate_limit"),
            ..Self::invalid(message)
        }
    }

    /// Stripe itself is broken: 500.
    pub fn server_error() -> Self {
        let message = "An unknown error occurred";
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: "api_error",
            ..Self::invalid(message)
        }
    }

    /// An idempotency key was used before, for something else: 400.
    pub fn key_reused(key: &str) -> Self {
        let message = format!(
            "Keys for idempotent requests can only be used with the same parameters they were first used with. \
             Try using a key other than '{key}' if you meant to execute a different request."
        );
        Self { kind: "idempotency_error", ..Self::invalid(message) }
    }

    /// The same refusal with one of Stripe's codes.
    pub fn coded(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The same refusal, naming the field that caused it.
    pub fn about(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    /// The sentence that says why.
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

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}
