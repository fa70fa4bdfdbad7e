//! `/api/user/get`, `/api/user/storage`: the caller, and what they store.

use axum::Json;
use axum::extract::State;
use retouch_core::images::{self, Quota, Stored};
use retouch_core::users::User;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::SignedIn;
use super::problem::Problem;
use super::views::UserView;
use crate::error::ApiError;
use crate::state::App;

/// The caller. The first call with a new user's token creates the account, with 20 free credits.
#[utoipa::path(get, path = "/api/user/get", tag = "user",
    responses((status = 200, body = UserView), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn get_user(SignedIn(user): SignedIn) -> Json<UserView> {
    Json(user.into())
}

impl From<User> for UserView {
    fn from(User { id, email, credits, reserved, .. }: User) -> Self {
        Self { id: id.uuid(), email, credits, reserved }
    }
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
