//! Finds an image of a user.

use retouch_core::images::{self, Image};
use retouch_core::{ImageId, UserId, db};

use crate::error::ApiError;
use crate::state::App;

/// Returns an image of `owner`.
///
/// # Errors
/// [`ApiError::NotFound`], also for an image of another user.
pub async fn owned_image(app: &App, owner: UserId, id: ImageId) -> Result<Image, ApiError> {
    let found = db::within(images::owned(&app.pool, owner, id)).await?;
    found.ok_or(ApiError::NotFound("Image"))
}
