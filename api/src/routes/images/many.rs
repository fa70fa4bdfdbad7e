//! `/api/images/delete` and `/api/images/archive`: deletes or downloads many images at once.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use retouch_core::{ImageId, db, images};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::problem::Problem;
use crate::http::request::JsonBody;
use crate::state::App;
use crate::usecases::archive_images::{self, Include};
use crate::usecases::run_tool::announce_canceled;

/// Maximum number of images to delete at once.
const MAX_DELETED: usize = 500;
/// Maximum number of images in an archive.
const MAX_ARCHIVED: usize = 200;

/// The images to delete.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImageDeletion)]
pub struct DeletionRequest {
    /// Ids of images; unknown ones are ignored.
    #[schema(min_items = 1, max_items = 500)]
    image_ids: Vec<Uuid>,
}

/// The images that are gone.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletedImages)]
pub struct DeletedView {
    /// The ids of those that were the caller's.
    deleted: Vec<Uuid>,
}

/// Deletes images and their results, all at once. Unfinished runs are canceled.
#[utoipa::path(post, path = "/api/images/delete", tag = "images", request_body = DeletionRequest,
    responses((status = 200, body = DeletedView), (status = 400, body = Problem), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn delete_images(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    JsonBody(request): JsonBody<DeletionRequest>,
) -> Result<Json<DeletedView>, ApiError> {
    let ids = checked(request.image_ids, MAX_DELETED)?;
    let pool = app.pool.clone();
    let deletion = async move { images::delete_many(&pool, user.id, &ids).await };
    let gone = app.in_turn_of(user.id, deletion).await??;
    announce_canceled(&app, &gone.canceled).await;
    Ok(Json(DeletedView { deleted: gone.images.into_iter().map(ImageId::uuid).collect() }))
}

/// The images to download.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImageArchive)]
pub struct ArchiveRequest {
    /// Ids of images; unknown ones are ignored.
    #[schema(min_items = 1, max_items = 200)]
    image_ids: Vec<Uuid>,
    #[schema(inline)]
    include: Include,
}

/// Downloads images, their results, or both as a ZIP, without compression.
///
/// The files have the names of the images, made unique: `cat.jpg`, `cat (2).jpg`, and `cat (cut out).png` for a result.
/// A file that is missing is left out, and its name is listed in `missing.txt`.
#[utoipa::path(post, path = "/api/images/archive", tag = "images", request_body = ArchiveRequest,
    responses((status = 200, content_type = "application/zip", body = Vec<u8>), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn download_images(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    JsonBody(request): JsonBody<ArchiveRequest>,
) -> Result<Response, ApiError> {
    let ids = checked(request.image_ids, MAX_ARCHIVED)?;
    // All rows are read before the first byte is sent: a slow client must not hold a connection to the database.
    let entries = db::within(archive_images::entries(&app.pool, user.id, &ids, request.include));
    let entries = entries.await?.ok_or(ApiError::NotFound("Image"))?;
    let chunks = archive_images::zip(app.storage.clone(), entries, app.clock.now()).map(|chunk| {
        chunk.inspect_err(|error| tracing::warn!("A download of images failed: {error:#}"))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/zip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"retouch-images.zip\""),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

fn checked(ids: Vec<Uuid>, max: usize) -> Result<Vec<ImageId>, ApiError> {
    if !(1..=max).contains(&ids.len()) {
        return Err(ApiError::BadRequest(format!("imageIds must have 1 to {max} ids.")));
    }
    Ok(ids.into_iter().map(ImageId::from).collect())
}
