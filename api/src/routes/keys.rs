//! `/api/keys`: keys with which programs act for their owner. Only a person can manage them.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use retouch_core::api_keys::{self, ApiKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::caller::{InPerson, Path, id};
use super::problem::Problem;
use crate::error::ApiError;
use crate::state::App;
use crate::usecases::create_key::create_key;

/// A key, without what makes it one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    /// Its id.
    #[schema(value_type = String)]
    id: String,
    /// What its owner calls it.
    #[schema(example = "nightly batch")]
    name: String,
    /// How it begins, to tell it from the others.
    #[schema(example = "rt_kJ2v9x")]
    prefix: String,
    /// When it was made.
    created_at: DateTime<Utc>,
    /// When it was last used, give or take a minute.
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

/// All keys of the caller, the oldest first.
#[derive(Serialize, ToSchema)]
pub struct KeyListView {
    /// The keys.
    keys: Vec<KeyView>,
}

/// A new key. This answer is the only place where it can be read.
#[derive(Serialize, ToSchema)]
pub struct NewKeyView {
    /// What is kept of it.
    #[serde(flatten)]
    kept: KeyView,
    /// The key, for the header `X-Api-Key`.
    key: String,
}

/// What a new key shall be called.
#[derive(Deserialize, ToSchema)]
pub struct KeyRequest {
    /// 1 to 60 characters.
    #[schema(example = "nightly batch", min_length = 1, max_length = 60)]
    name: String,
}

/// The caller's keys. None of them can be read again.
#[utoipa::path(get, path = "/api/keys", tag = "keys",
    responses((status = 200, body = KeyListView), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn list_keys(
    State(app): State<App>,
    InPerson(user): InPerson,
) -> Result<Json<KeyListView>, ApiError> {
    let keys = api_keys::list(&app.pool, user.id).await?;
    Ok(Json(KeyListView { keys: keys.into_iter().map(KeyView::from).collect() }))
}

/// Makes a key and shows it, once.
#[utoipa::path(post, path = "/api/keys", tag = "keys", request_body = KeyRequest,
    responses((status = 201, body = NewKeyView), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 422, body = Problem)),
    security(("token" = [])))]
pub async fn post_key(
    State(app): State<App>,
    InPerson(user): InPerson,
    body: Result<Json<KeyRequest>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(wanted) = body.map_err(|error| ApiError::BadRequest(error.body_text()))?;
    let (kept, key) = create_key(&app, user.id, &wanted.name).await?;
    let view = NewKeyView { kept: kept.into(), key };
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(view)).into_response())
}

/// Revokes a key: from now on it opens nothing.
#[utoipa::path(delete, path = "/api/keys/{keyId}", tag = "keys", params(("keyId" = String, Path)),
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem)),
    security(("token" = [])))]
pub async fn delete_key(
    State(app): State<App>,
    InPerson(user): InPerson,
    Path(key): Path<String>,
) -> Result<StatusCode, ApiError> {
    if api_keys::revoke(&app.pool, user.id, id(&key, "Key")?).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound("Key"))
    }
}
