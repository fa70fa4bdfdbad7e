//! Extractors for preferences, queries, paths, ids and JSON.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::state::App;
use crate::usecases::upload_image::Metadata;

/// The headers `Idempotency-Key` and `Prefer`.
pub struct RequestPreferences {
    /// Makes a repeated request return the first response.
    pub idempotency_key: Option<String>,
    /// Whether the client prefers to get the job at once (`Prefer: respond-async`).
    pub is_async: bool,
    /// Maximum wait for the result; zero if `is_async`.
    pub wait: Duration,
}

impl FromRequestParts<App> for RequestPreferences {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        // A key that is not ASCII becomes empty and is rejected: ignoring it would run, and charge, every repeat.
        let idempotency_key = parts.headers.get("idempotency-key");
        let idempotency_key =
            idempotency_key.map(|key| key.to_str().unwrap_or_default().to_owned());
        if idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > 255) {
            let detail = "The Idempotency-Key must have 1 to 255 ASCII characters.";
            return Err(ApiError::BadRequest(detail.into()));
        }
        let is_async = header_list(&parts.headers, HeaderName::from_static("prefer"))
            .any(|preference| preference.eq_ignore_ascii_case("respond-async"));
        let wait = if is_async { Duration::ZERO } else { app.limits.wait() };
        Ok(Self { idempotency_key, is_async, wait })
    }
}

/// Returns the value of a header; `None` if it is missing or not ASCII.
pub fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the elements of a header that is a list, from all of its lines that are ASCII.
pub fn header_list(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',').map(str::trim))
}

/// [`extract::Query`], with a problem as its rejection.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match extract::Query::try_from_uri(&parts.uri) {
            Ok(extract::Query(query)) => Ok(Self(query)),
            Err(error) => Err(ApiError::BadRequest(error.body_text())),
        }
    }
}

/// The ids in a path. Ids that are not UTF-8, or contain NUL (which Postgres rejects), become empty: handlers answer
/// 404 to those.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Default + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        if parts.uri.path().contains("%00") {
            return Ok(Self(T::default()));
        }
        let path = extract::Path::<T>::from_request_parts(parts, state).await;
        Ok(Self(path.map(|extract::Path(ids)| ids).unwrap_or_default()))
    }
}

/// [`extract::Json`], with a problem as its rejection.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match extract::Json::<T>::from_request(request, state).await {
            Ok(extract::Json(body)) => Ok(Self(body)),
            Err(error) => Err(ApiError::BadRequest(error.body_text())),
        }
    }
}

/// Parses an id. A malformed id gets the same error as an unknown one.
pub fn id<T: FromStr>(text: &str, what: &'static str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::NotFound(what))
}

/// The query of routes that work on one image.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ImageQuery {
    /// The id of the uploaded image.
    #[param(required = true)]
    pub image_id: Option<String>,
}

impl ImageQuery {
    /// Parses the id.
    pub fn id<T: FromStr>(&self) -> Result<T, ApiError> {
        match self.image_id.as_deref() {
            None | Some("") => Err(ApiError::BadRequest("Image ID is missing.".into())),
            Some(text) => id(text, "Image"),
        }
    }
}

/// The query of uploads and downloads that can keep metadata.
#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MetadataQuery {
    /// Whether to keep the file's EXIF metadata: date, camera, settings, author, and location. `strip` by default. The
    /// orientation is always applied, and the embedded thumbnail always dropped.
    #[serde(default)]
    #[param(inline, required = false)]
    pub metadata: Metadata,
}
