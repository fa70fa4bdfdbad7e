//! `/api/keys`: API keys. Programs use them to act for a user; managing them requires a token.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use retouch_core::api_keys::{self, ApiKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::http::caller::TokenUser;
use crate::http::problem::Problem;
use crate::http::request::{JsonBody, Path, id};
use crate::state::App;
use crate::usecases::create_key::create_key;

/// An API key, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    #[schema(value_type = String)]
    id: String,
    #[schema(example = "nightly batch")]
    name: String,
    /// The first characters, to recognize the key.
    #[schema(example = "rt_kJ2v9x")]
    prefix: String,
    created_at: DateTime<Utc>,
    /// The time of the last use, to the minute.
    last_used_at: Option<DateTime<Utc>>,
}

impl From<ApiKey> for KeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
            prefix: key.shown,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// API keys, oldest first.
#[derive(Serialize, ToSchema)]
pub struct KeyListView {
    keys: Vec<KeyView>,
}

/// A new API key. Only this response contains the secret.
#[derive(Serialize, ToSchema)]
pub struct NewKeyView {
    #[serde(flatten)]
    view: KeyView,
    /// The key, for the header `X-Api-Key`.
    key: String,
}

/// The name of a new API key.
#[derive(Deserialize, ToSchema)]
pub struct KeyRequest {
    /// 1 to 60 characters.
    #[schema(example = "nightly batch", min_length = 1, max_length = 60)]
    name: String,
}

/// The caller's API keys, without their secrets.
#[utoipa::path(get, path = "/api/keys", tag = "keys",
    responses((status = 200, body = KeyListView), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn list_keys(
    State(app): State<App>,
    TokenUser(user): TokenUser,
) -> Result<Json<KeyListView>, ApiError> {
    let keys = api_keys::list(&app.pool, user.id).await?;
    Ok(Json(KeyListView { keys: keys.into_iter().map(KeyView::from).collect() }))
}

/// Creates an API key. Only this response contains the secret.
#[utoipa::path(post, path = "/api/keys", tag = "keys", request_body = KeyRequest,
    responses((status = 201, body = NewKeyView), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 422, body = Problem), (status = 500, body = Problem)),
    security(("token" = [])))]
pub async fn post_key(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    JsonBody(request): JsonBody<KeyRequest>,
) -> Result<(StatusCode, Json<NewKeyView>), ApiError> {
    let (stored, key) = create_key(&app, user.id, request.name).await?;
    let view = NewKeyView { view: stored.into(), key };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Revokes an API key.
#[utoipa::path(delete, path = "/api/keys/{keyId}", tag = "keys", params(("keyId" = String, Path)),
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem)),
    security(("token" = [])))]
pub async fn delete_key(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    Path(key): Path<String>,
) -> Result<StatusCode, ApiError> {
    if api_keys::revoke(&app.pool, user.id, id(&key, "Key")?).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound("Key"))
    }
}
