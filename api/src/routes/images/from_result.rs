//! `POST /api/images/from-result/{resultId}`: makes an image from a result.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use retouch_core::db;
use retouch_core::images::{self, FromResult};

use crate::error::{ACCOUNT_DELETED, ApiError};
use crate::routes::caller::SignedIn;
use crate::routes::problem::Problem;
use crate::routes::request::{Path, id};
use crate::routes::views::ImageView;
use crate::state::App;

/// Makes an image from a result, so that other tools can use it. A repeat returns the same image.
///
/// The image counts as a picture of its own. Deleting the result, or the image that it was made from, leaves it alone.
#[utoipa::path(post, path = "/api/images/from-result/{resultId}", tag = "images",
    params(("resultId" = String, Path)),
    responses((status = 200, description = "The image that was made before", body = ImageView),
        (status = 201, body = ImageView), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 422, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn make_image_from_result(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(result): Path<String>,
) -> Result<(StatusCode, Json<ImageView>), ApiError> {
    let (result, quota) = (id(&result, "Result")?, app.limits.quota());
    let made = db::within(images::from_result(&app.pool, user.id, result, quota)).await?;
    let (status, image) = match made {
        FromResult::Made(image) => (StatusCode::CREATED, image),
        FromResult::Existed(image) => (StatusCode::OK, image),
        FromResult::NoResult => return Err(ApiError::NotFound("Result")),
        FromResult::OverQuota => return Err(ApiError::StorageFull(quota)),
        FromResult::OwnerGone => return Err(ApiError::Unauthorized(ACCOUNT_DELETED)),
    };
    let image = db::within(images::get(&app.pool, image)).await?;
    // Another request may have deleted it meanwhile.
    let image = image.ok_or(ApiError::NotFound("Image"))?;
    Ok((status, Json(ImageView::new(&image, &app.signer))))
}
