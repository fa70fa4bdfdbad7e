//! Who calls: extractors for tokens, addresses, ids and uploaded files.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{self, ConnectInfo, FromRequestParts, Multipart};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use retouch_core::api_keys;
use retouch_core::users::User;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::state::App;
use crate::usecases::sign_in::{sign_in, sign_in_by_key};

/// A caller with a valid token, or a program with a valid key of theirs.
pub struct SignedIn(pub User);

impl FromRequestParts<App> for SignedIn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::of(&parts.headers) {
            Credential::Key(key) => sign_in_by_key(app, key).await.map(Self),
            Credential::Token(token) => sign_in(app, token).await.map(Self),
        }
    }
}

/// A caller with a valid token: a person, for what no program may do in their name.
pub struct InPerson(pub User);

impl FromRequestParts<App> for InPerson {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::of(&parts.headers) {
            // Whether the key is a good one is nobody's business here.
            Credential::Key(_) => Err(ApiError::InPersonOnly),
            Credential::Token(token) => sign_in(app, token).await.map(Self),
        }
    }
}

/// A program with a valid key, where nobody else calls.
pub struct Program(pub User);

impl FromRequestParts<App> for Program {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::of(&parts.headers) {
            Credential::Key(key) => sign_in_by_key(app, key).await.map(Self),
            Credential::Token(_) => Err(ApiError::Unauthorized("The header X-Api-Key is missing")),
        }
    }
}

/// A caller with or without a token or key. One that is there must be valid.
pub struct Anybody(pub Option<User>);

impl FromRequestParts<App> for Anybody {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::of(&parts.headers) {
            Credential::Token(None) => Ok(Self(None)),
            Credential::Token(token) => sign_in(app, token).await.map(|user| Self(Some(user))),
            Credential::Key(key) => sign_in_by_key(app, key).await.map(|user| Self(Some(user))),
        }
    }
}

/// What a caller shows of themselves.
enum Credential<'a> {
    /// A program's key, in `X-Api-Key` or as a bearer token.
    Key(&'a str),
    /// The value of `Authorization`, if there is one.
    Token(Option<&'a str>),
}

impl<'a> Credential<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let authorization = text(headers, "authorization");
        let bearer =
            authorization.and_then(|value| value.split_once(' ')).filter(|(scheme, key)| {
                scheme.eq_ignore_ascii_case("bearer")
                    && key.trim_start().starts_with(api_keys::PREFIX)
            });
        // A key that is no text is a wrong one, and not none.
        let key = headers.get("x-api-key").map(|key| key.to_str().unwrap_or_default());
        match key.or(bearer.map(|(_, key)| key)) {
            Some(key) => Self::Key(key.trim()),
            None => Self::Token(authorization),
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
        // A key that is no text is refused, and never overlooked: a repeat would be a run of its own.
        let idempotency_key = parts.headers.get("idempotency-key");
        let idempotency_key =
            idempotency_key.map(|key| key.to_str().unwrap_or_default().to_owned());
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

/// What a query says. One that is not understood is answered as a problem, like all else.
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

/// The ids in a path. Bytes that are no text, or none that Postgres takes, name nothing, and so do the empty ids
/// that are taken for them.
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

/// A body that is expected to be a multipart one.
pub fn multipart(body: Result<Multipart, MultipartRejection>) -> Result<Multipart, ApiError> {
    body.map_err(|_| ApiError::BadRequest("Send the file as multipart/form-data".into()))
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
        tracing::debug!(error = error.body_text(), "An upload is not understood");
        ApiError::BadRequest("The upload broke off or is not understood".into())
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
