//! `/api/images`: uploaded images.

use axum::Json;
use axum::body::Body;
use axum::extract::{Multipart, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::DateTime;
use futures::{StreamExt, stream};
use retouch_core::UserId;
use retouch_core::images::{self, Cursor, Image, Uploader};

use super::caller::SignedIn;
use super::multipart::{FileUpload, multipart, uploaded_file};
use super::problem::Problem;
use super::request::{Path, Query, id};
use super::views::{ImageListView, ImageView};
use crate::error::ApiError;
use crate::state::App;
use crate::usecases::run_tool::announce_canceled;
use crate::usecases::upload_image::upload_image;

/// The most images of a page.
const MAX_LIMIT: i64 = 500;
/// Images read, and sent, at a time when all are asked for.
const CHUNK: i64 = 200;

/// Selects a page of the list.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// How many images to return at most. Without it, the answer has all of them.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<i64>,
    /// Where to go on: `next` of the page before.
    before: Option<String>,
}

/// The caller's images, newest first: all of them, or a page.
#[utoipa::path(get, path = "/api/images", tag = "images", params(PageQuery),
    responses((status = 200, body = ImageListView), (status = 400, body = Problem), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_images(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<PageQuery>,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(CHUNK);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::BadRequest(format!("limit must be between 1 and {MAX_LIMIT}.")));
    }
    let before = query.before.as_deref().map(cursor_from).transpose()?;
    // Before the answer begins, so that a failure gets a status.
    let images = images::list(&app.pool, user.id, before, limit).await?;
    let is_full = images.len() as i64 == limit;
    let next = images.last().map(Image::cursor).filter(|_| is_full);
    if let (Some(next), None) = (next, query.limit) {
        return Ok(all(app, user.id, &images, next)?.into_response());
    }
    let images = images.iter().map(|image| ImageView::new(image, &app.signer)).collect();
    let next = next.map(|next| format!("{}-{}", next.created_at.timestamp_micros(), next.id));
    Ok(Json(ImageListView { images, next }).into_response())
}

fn cursor_from(text: &str) -> Result<Cursor, ApiError> {
    let parse = |text: &str| {
        let (micros, id) = text.split_once('-')?;
        let created_at = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
        Some(Cursor { created_at, id: id.parse().ok()? })
    };
    parse(text).ok_or_else(|| ApiError::BadRequest("before is not a `next` of this list.".into()))
}

/// Returns a list that begins with `first` and is read while it is sent, so that it needs little memory and its
/// beginning does not wait for its end. An error aborts it.
fn all(
    app: App,
    user: UserId,
    first: &[Image],
    next: Cursor,
) -> Result<impl IntoResponse, ApiError> {
    let head = format!("{{\"images\":[{}", items(first, &app)?);
    let more = stream::unfold(Some(next), move |next| {
        let app = app.clone();
        async move {
            Some(match chunk(&app, user, next?).await {
                Ok((chunk, next)) => (Ok(chunk), next),
                Err(error) => {
                    tracing::warn!("A list of images failed: {error}");
                    (Err(error), None)
                }
            })
        }
    });
    let chunks = stream::once(async { Ok(head) }).chain(more);
    // Compression may poll the stream again after its end.
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(chunks.fuse())))
}

/// Returns the next part of a list, and where the one after it begins; `None` after the end.
async fn chunk(
    app: &App,
    user: UserId,
    next: Cursor,
) -> Result<(String, Option<Cursor>), ApiError> {
    let images = images::list(&app.pool, user, Some(next), CHUNK).await?;
    let Some(last) = images.last() else { return Ok(("]}".to_owned(), None)) };
    Ok((format!(",{}", items(&images, app)?), Some(last.cursor())))
}

/// Serializes images, separated by commas.
fn items(images: &[Image], app: &App) -> Result<String, ApiError> {
    let items =
        images.iter().map(|image| serde_json::to_string(&ImageView::new(image, &app.signer)));
    let items: Result<Vec<_>, _> = items.collect();
    items.map(|items| items.join(",")).map_err(|error| ApiError::Internal(error.into()))
}

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
    let image = images::owned(&app.pool, user.id, id(&image, "Image")?).await?;
    let image = image.ok_or(ApiError::NotFound("Image"))?;
    Ok(Json(ImageView::new(&image, &app.signer)))
}

/// Uploads a PNG, JPEG or WebP. The API applies its EXIF orientation and strips its metadata, except for the color
/// profile.
#[utoipa::path(post, path = "/api/images/upload", tag = "images",
    request_body(content = FileUpload, content_type = "multipart/form-data"),
    responses((status = 201, body = ImageView), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 408, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn upload(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    body: Result<Multipart, axum::extract::multipart::MultipartRejection>,
) -> Result<(StatusCode, Json<ImageView>), ApiError> {
    app.rate_limits.users.count_upload(user.id).await?;
    let body = multipart(body)?;
    let file = uploaded_file(body, app.limits.max_upload_bytes).await?;
    let uploader = Uploader::User(user.id);
    let image = upload_image(&app, uploader, file, app.limits.max_dimension).await?;
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
    let canceled = images::delete(&app.pool, user.id, id(&image, "Image")?).await?;
    let canceled = canceled.ok_or(ApiError::NotFound("Image"))?;
    announce_canceled(&app, &canceled).await;
    Ok(StatusCode::NO_CONTENT)
}
