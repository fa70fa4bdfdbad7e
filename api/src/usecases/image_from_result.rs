//! Makes an image from a result, so that other tools can use it.

use retouch_core::images::{self, FromResult, Image, Stay};
use retouch_core::{ResultId, UserId, db};

use crate::error::ApiError;
use crate::state::App;

/// Where the image comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This call made it.
    Made,
    /// An earlier call made it.
    Existed,
}

/// Returns the image that is made from a result of `owner`; makes it at the first call.
pub async fn image_from_result(
    app: &App,
    owner: UserId,
    result: ResultId,
    stay: Stay,
) -> Result<(Image, Origin), ApiError> {
    let quota = app.limits.quota();
    let pool = app.pool.clone();
    let making =
        async move { db::within(images::from_result(&pool, owner, result, stay, quota)).await };
    let (image, origin) = match app.in_turn_of(owner, making).await?? {
        FromResult::Made(image) => (image, Origin::Made),
        FromResult::Existed(image) => (image, Origin::Existed),
        FromResult::NoResult => return Err(ApiError::NotFound("Result")),
        FromResult::OverQuota => return Err(ApiError::StorageFull(quota)),
        FromResult::OwnerGone => return Err(ApiError::AccountDeleted),
    };
    let image = db::within(images::get(&app.pool, image)).await?;
    // Another request may have deleted it in the meantime.
    Ok((image.ok_or(ApiError::NotFound("Image"))?, origin))
}
