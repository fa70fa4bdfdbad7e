//! Who calls: extractors for tokens, addresses, ids and uploaded files.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{ConnectInfo, FromRequestParts, Multipart};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use retouch_core::users::User;

use crate::error::ApiError;
use crate::state::App;
use crate::usecases::sign_in::sign_in;

/// A caller with a valid token.
pub struct SignedIn(pub User);

impl FromRequestParts<App> for SignedIn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        sign_in(app, text(&parts.headers, "authorization")).await.map(Self)
    }
}

/// A caller with or without a token. A token that is there must be valid.
pub struct Anybody(pub Option<User>);

impl FromRequestParts<App> for Anybody {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match text(&parts.headers, "authorization") {
            None => Ok(Self(None)),
            token => sign_in(app, token).await.map(|user| Self(Some(user))),
        }
    }
}

/// Where the call comes from.
pub struct Address(pub IpAddr);

impl FromRequestParts<App> for Address {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map_or(IpAddr::from([127, 0, 0, 1]), |info| info.0.ip());
        Ok(Self(app.visitors.address(peer, text(&parts.headers, "x-forwarded-for"))))
    }
}

/// How a caller wants a run to be answered.
pub struct Wishes {
    /// Makes a repeat return the first answer.
    pub idempotency_key: Option<String>,
    /// How long to wait; zero with `Prefer: respond-async`.
    pub wait: Duration,
}

impl FromRequestParts<App> for Wishes {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let idempotency_key = text(&parts.headers, "idempotency-key").map(str::to_owned);
        if idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > 255) {
            return Err(ApiError::BadRequest("An Idempotency-Key has 1 to 255 characters".into()));
        }
        let prefer = text(&parts.headers, "prefer").unwrap_or_default();
        let asynchronous =
            prefer.split(',').any(|wish| wish.trim().eq_ignore_ascii_case("respond-async"));
        let wait = if asynchronous { Duration::ZERO } else { app.limits.wait() };
        Ok(Self { idempotency_key, wait })
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The value of a header that the caller may have sent.
pub fn sent(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// An id from a path or query. One that is malformed is answered like one that is unknown.
pub fn id<T: FromStr>(text: &str, what: &'static str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::NotFound(what))
}

/// The `imageId` of a query.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ImageQuery {
    /// The uploaded picture.
    #[param(required = true)]
    pub image_id: Option<String>,
}

impl ImageQuery {
    /// The id, or the sentence that says it is missing.
    pub fn id<T: FromStr>(&self) -> Result<T, ApiError> {
        match self.image_id.as_deref() {
            None | Some("") => Err(ApiError::BadRequest("Image ID is missing.".into())),
            Some(text) => id(text, "Image"),
        }
    }
}

/// The field `file` of a multipart body, of at most `max_bytes`.
pub async fn uploaded_file(mut body: Multipart, max_bytes: usize) -> Result<Bytes, ApiError> {
    while let Some(field) = next_field(&mut body, max_bytes).await? {
        if field.name() == Some("file") {
            return whole_file(field, max_bytes).await;
        }
    }
    Err(ApiError::BadRequest("The upload has no field called file".into()))
}

/// The fields `file`, of at most `max_bytes`, and `prompt` of a multipart body, in any order. A prompt that
/// is missing is an empty one.
pub async fn uploaded_mask(
    mut body: Multipart,
    max_bytes: usize,
) -> Result<(Bytes, String), ApiError> {
    let (mut file, mut prompt) = (None, String::new());
    while let Some(field) = next_field(&mut body, max_bytes).await? {
        match field.name() {
            Some("file") => file = Some(whole_file(field, max_bytes).await?),
            Some("prompt") => {
                prompt = field.text().await.map_err(|error| not_understood(&error, max_bytes))?;
            }
            _ => {}
        }
    }
    let file =
        file.ok_or_else(|| ApiError::BadRequest("The upload has no field called file".into()))?;
    Ok((file, prompt))
}

async fn next_field(body: &mut Multipart, max_bytes: usize) -> Result<Option<Field<'_>>, ApiError> {
    body.next_field().await.map_err(|error| not_understood(&error, max_bytes))
}

async fn whole_file(field: Field<'_>, max_bytes: usize) -> Result<Bytes, ApiError> {
    let bytes = field.bytes().await.map_err(|error| not_understood(&error, max_bytes))?;
    match bytes.len() {
        0 => Err(ApiError::BadRequest("The file is empty".into())),
        size if size > max_bytes => Err(ApiError::FileTooLarge { max_bytes }),
        _ => Ok(bytes),
    }
}

fn not_understood(error: &MultipartError, max_bytes: usize) -> ApiError {
    if error.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
        ApiError::FileTooLarge { max_bytes }
    } else {
        ApiError::BadRequest(format!("The upload is not understood: {}", error.body_text()))
    }
}

/// The multipart body with a mask and words, for the `OpenAPI` document.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "describes a body that is read field by field")]
pub struct MaskUpload {
    /// A PNG of the picture's size: what is opaque, or white where all of it is opaque, is to be repainted.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// What is wanted there, in 1 to 500 characters.
    #[schema(example = "remove the object")]
    prompt: String,
}

/// The multipart body with a picture, for the `OpenAPI` document.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "describes a body that is read field by field")]
pub struct FileUpload {
    /// PNG, JPEG or WebP.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}
