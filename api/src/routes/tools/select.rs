//! `/api/images/{imageId}/select`: click to select.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use retouch_core::selection::Clicks;

use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::problem::Problem;
use crate::http::request::{JsonBody, Path, id};
use crate::state::App;
use crate::usecases::find_image::owned_image;
use crate::usecases::select::select;

/// Selects the clicked object: the object at the positive points without the parts that the negative ones mark, the
/// object in a box, or the subject of the picture. Free of charge, and nothing is stored.
///
/// Returns a PNG of the image's size with one bit per pixel, white where it is selected: a mask for Magic Fix. Returns
/// 422 with the code `nothing_found` if nothing stands out there.
#[utoipa::path(post, path = "/api/images/{imageId}/select", tag = "images",
    params(("imageId" = String, Path)), request_body = Clicks,
    responses((status = 200, content_type = "image/png", body = Vec<u8>), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn select_in_image(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
    body: Result<JsonBody<Clicks>, ApiError>,
) -> Result<Response, ApiError> {
    let image = owned_image(&app, user.id, id(&image, "Image")?).await?;
    let JsonBody(clicks) = body?;
    let png = select(&app, user.id, image, clicks).await?;
    Ok(([(header::CONTENT_TYPE, "image/png")], png).into_response())
}
