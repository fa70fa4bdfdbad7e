//! `POST /api/images/from-result/{resultId}`: makes an image from a result.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use retouch_core::images::Stay;

use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::problem::Problem;
use crate::http::request::{Path, id};
use crate::routes::views::ImageView;
use crate::state::App;
use crate::usecases::image_from_result::{Origin, image_from_result};

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
    let (image, origin) =
        image_from_result(&app, user.id, id(&result, "Result")?, Stay::ForGood).await?;
    let status = match origin {
        Origin::Made => StatusCode::CREATED,
        Origin::Existed => StatusCode::OK,
    };
    Ok((status, Json(ImageView::new(&image, &app.signer))))
}
