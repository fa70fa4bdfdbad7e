//! `/api/images`: uploaded images.

pub mod from_result;
pub mod list;
pub mod many;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use retouch_core::images::{self, Uploader};

use super::views::ImageView;
use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::multipart::{FileUpload, UploadBody, multipart, named_file};
use crate::http::problem::Problem;
use crate::http::request::{MetadataQuery, Path, Query, RequestPreferences, id};
use crate::state::App;
use crate::usecases::find_image::owned_image;
use crate::usecases::run_tool::announce_canceled;
use crate::usecases::upload_image::{NewUpload, upload_image};

/// One image.
#[utoipa::path(get, path = "/api/images/{imageId}", tag = "images",
    params(("imageId" = String, Path)),
    responses((status = 200, body = ImageView), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn get_image(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
) -> Result<Json<ImageView>, ApiError> {
    let image = owned_image(&app, user.id, id(&image, "Image")?).await?;
    Ok(Json(ImageView::new(&image, &app.signer)))
}

/// Uploads a PNG, JPEG, WebP, HEIC or AVIF. The API applies its orientation and strips its metadata, except for the color
/// profile. HEIC and AVIF become JPEG, or PNG with transparency. A repeat with the same `Idempotency-Key` and file returns the
/// image of the first upload.
#[utoipa::path(post, path = "/api/images/upload", tag = "images",
    params(MetadataQuery, ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat return the first image")),
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    responses((status = 201, body = ImageView), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 408, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn upload(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    query: Result<Query<MetadataQuery>, ApiError>,
    preferences: Result<RequestPreferences, ApiError>,
    body: UploadBody,
) -> Result<(StatusCode, Json<ImageView>), ApiError> {
    let Query(MetadataQuery { metadata }) = query?;
    let RequestPreferences { idempotency_key, .. } = preferences?;
    app.rate_limits.users.uploads.count(user.id).await?;
    let body = multipart(body)?;
    let (file, name) = named_file(body, app.limits.max_upload_bytes).await?;
    let new = NewUpload::new(Uploader::User(user.id), file, app.limits.max_dimension);
    let new = NewUpload { name, metadata, idempotency_key, ..new };
    let image = upload_image(&app, new).await?;
    Ok((StatusCode::CREATED, Json(ImageView::new(&image, &app.signer))))
}

/// Deletes an image and its results. Unfinished runs are canceled.
#[utoipa::path(delete, path = "/api/images/{imageId}", tag = "images",
    params(("imageId" = String, Path)),
    responses((status = 204), (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn delete_image(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(image): Path<String>,
) -> Result<StatusCode, ApiError> {
    let (pool, image) = (app.pool.clone(), id(&image, "Image")?);
    let deletion = async move { images::delete(&pool, user.id, image).await };
    let canceled = app.in_turn_of(user.id, deletion).await??;
    let canceled = canceled.ok_or(ApiError::NotFound("Image"))?;
    announce_canceled(&app, &canceled).await;
    Ok(StatusCode::NO_CONTENT)
}
