//! `/api/user`: the caller's account, and what they store.

pub mod export;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use retouch_core::images::{self, Quota, Stored};
use serde::Serialize;
use utoipa::ToSchema;

use super::views::UserView;
use crate::error::ApiError;
use crate::http::caller::{Returned, SignedIn, TokenUser};
use crate::http::problem::Problem;
use crate::state::App;
use crate::usecases::delete_account::delete_account;

/// The caller. The first call with a new user's token creates the account, with 20 free credits.
#[utoipa::path(get, path = "/api/user/get", tag = "user",
    responses((status = 200, body = UserView), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn get_user(SignedIn(user): SignedIn) -> Json<UserView> {
    Json(user.into())
}

/// What the caller stores: images and results, without thumbnails.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Storage)]
pub struct StorageView {
    /// Their size in bytes.
    #[schema(example = 52_428_800)]
    bytes: i64,
    /// Their number.
    #[schema(example = 12)]
    pictures: i64,
    /// The size beyond which uploads are refused, in bytes; null without a limit.
    max_bytes: Option<i64>,
    /// The number beyond which uploads are refused; null without a limit.
    max_pictures: Option<i64>,
}

/// What the caller stores, and how much they may store. An upload beyond it is refused with 422 and the code
/// `storage_full`.
#[utoipa::path(get, path = "/api/user/storage", tag = "user",
    responses((status = 200, body = StorageView), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn get_storage(
    State(app): State<App>,
    SignedIn(user): SignedIn,
) -> Result<Json<StorageView>, ApiError> {
    let Stored { bytes, pictures } = images::stored(&app.pool, user.id).await?;
    let Quota { bytes: max_bytes, pictures: max_pictures } = app.limits.quota();
    Ok(Json(StorageView { bytes, pictures, max_bytes, max_pictures }))
}

/// Deletes the caller's account immediately and permanently, with all images, results, API keys and webhooks. Unfinished runs
/// are canceled and remaining credits are lost. Accounting records stay, without personal data.
///
/// The caller's tokens stop working, except that repeating this call succeeds. `POST /api/user` with a token issued later
/// starts a new account, without the free credits if that happens within twelve months.
#[utoipa::path(delete, path = "/api/user", tag = "user",
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn delete_user(
    State(app): State<App>,
    caller: Result<TokenUser, ApiError>,
) -> Result<StatusCode, ApiError> {
    let user = match caller {
        Ok(TokenUser(user)) => user.id,
        Err(ApiError::AccountDeleted) => return Ok(StatusCode::NO_CONTENT),
        Err(error) => return Err(error),
    };
    delete_account(&app, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Starts a new account, without credits, for a caller who deleted theirs. A caller who has an account keeps it; one who never
/// had one gets it, as with any other request. Call it once after a sign-in that the person has asked for. Until then, their
/// tokens are refused with the code `account_deleted`, so that a device that renews its token automatically does not start an
/// account.
#[utoipa::path(post, path = "/api/user", tag = "user",
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn start_user(_: Returned) -> StatusCode {
    StatusCode::NO_CONTENT
}
