//! Results: the pictures that jobs make.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use crate::{ImageId, JobId, ResultId, UserId, db, storage};
use retouch_catalog::{FixMode, Tier, ToolName};

/// A result, and what made it.
#[derive(Clone, Debug)]
pub struct ResultImage {
    pub id: ResultId,
    pub job: JobId,
    /// The uploaded image it was made from.
    pub image: ImageId,
    /// The owner; `None` for visitors.
    pub owner: Option<UserId>,
    pub tool: ToolName,
    pub factor: Option<i16>,
    pub mode: Option<FixMode>,
    pub prompt: Option<String>,
    /// The S3 key of the PNG.
    pub object_key: String,
    /// The S3 key of its thumbnail; the PNG's own key if the PNG is no larger than a thumbnail.
    pub thumbnail_key: String,
    /// The S3 key of its preview; `None` if it has none.
    pub preview_key: Option<String>,
    pub size_bytes: i64,
    pub width: i32,
    pub height: i32,
    pub model: String,
    pub model_sha256: String,
    /// The device it ran on: `cpu` or `cuda`.
    pub device: String,
    pub is_demo: bool,
    /// The source type in the file's marks: a URI of the IPTC's vocabulary *Digital Source Type*; `None` if the file
    /// has no marks.
    pub source: Option<String>,
    /// Milliseconds from the start of the job to its PNG.
    pub duration_ms: i32,
    pub created_at: DateTime<Utc>,
    pub tier: Tier,
    /// The price of the job in credits.
    pub credits: i32,
}

/// A result that a worker has stored and that [`crate::jobs::finish`] records.
#[derive(Clone, Debug)]
pub struct NewResult {
    pub id: ResultId,
    /// The S3 key of the PNG.
    pub object_key: String,
    pub thumbnail_key: String,
    /// The S3 key of its preview; `None` if it has none.
    pub preview_key: Option<String>,
    pub size_bytes: i64,
    pub width: i32,
    pub height: i32,
    pub model: String,
    pub model_sha256: String,
    /// The device it ran on: `cpu` or `cuda`.
    pub device: String,
    pub is_demo: bool,
    /// See [`ResultImage::source`].
    pub source: Option<String>,
    /// Milliseconds from the start of the job to its PNG.
    pub duration_ms: i32,
}

pub async fn get(pool: &PgPool, id: ResultId) -> sqlx::Result<Option<ResultImage>> {
    sqlx::query_as!(
        ResultImage,
        r#"select r.id as "id: ResultId", r.job_id as "job: JobId", r.image_id as "image: ImageId",
                  r.owner_id as "owner: UserId", r.tool as "tool: ToolName", r.factor, r.object_key,
                  r.mode as "mode: FixMode", r.prompt, r.is_demo, r.source, r.thumbnail_key, r.preview_key, r.size_bytes, r.width,
                  r.height, r.model, r.model_sha256, r.device, r.duration_ms, r.created_at,
                  j.tier as "tier: Tier", j.cost as credits
           from results r join jobs j on j.id = r.job_id
           where r.id = $1"#,
        id.uuid(),
    )
    .fetch_optional(pool)
    .await
}

/// Returns the result of a job, if it has one.
pub async fn for_job(pool: &PgPool, job: JobId) -> sqlx::Result<Vec<ResultImage>> {
    sqlx::query_as!(
        ResultImage,
        r#"select r.id as "id: ResultId", r.job_id as "job: JobId", r.image_id as "image: ImageId",
                  r.owner_id as "owner: UserId", r.tool as "tool: ToolName", r.factor, r.object_key,
                  r.mode as "mode: FixMode", r.prompt, r.is_demo, r.source, r.thumbnail_key, r.preview_key, r.size_bytes, r.width,
                  r.height, r.model, r.model_sha256, r.device, r.duration_ms, r.created_at,
                  j.tier as "tier: Tier", j.cost as credits
           from results r join jobs j on j.id = r.job_id
           where r.job_id = $1"#,
        job.uuid(),
    )
    .fetch_all(pool)
    .await
}

/// Returns the results of `images`, the oldest first. The caller has checked the owner.
pub async fn of_images(pool: &PgPool, images: &[ImageId]) -> sqlx::Result<Vec<ResultImage>> {
    let images: Vec<_> = images.iter().map(|id| id.uuid()).collect();
    sqlx::query_as!(
        ResultImage,
        r#"select r.id as "id: ResultId", r.job_id as "job: JobId", r.image_id as "image: ImageId",
                  r.owner_id as "owner: UserId", r.tool as "tool: ToolName", r.factor, r.object_key,
                  r.mode as "mode: FixMode", r.prompt, r.is_demo, r.source, r.thumbnail_key, r.preview_key, r.size_bytes, r.width,
                  r.height, r.model, r.model_sha256, r.device, r.duration_ms, r.created_at,
                  j.tier as "tier: Tier", j.cost as credits
           from results r join jobs j on j.id = r.job_id
           where r.image_id = any($1)
           order by r.created_at, r.id"#,
        &images,
    )
    .fetch_all(pool)
    .await
}

/// Deletes a result of `owner` made by `tool` and dooms its objects. Returns false if there is no such result.
pub async fn delete(
    pool: &PgPool,
    owner: UserId,
    tool: ToolName,
    id: ResultId,
) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    // `users::lock` is stronger and could deadlock: a deletion of an image holds the image's row while Postgres locks
    // the owner's key.
    sqlx::query!("select id from users where id = $1 for no key update", owner.uuid())
        .fetch_optional(&mut *tx)
        .await?;
    // Deleting the result also changes the rows of its job and of an image made from it. Deletions of images, such as
    // the janitor's, lock the images first, then change their jobs, then their results.
    sqlx::query!(
        "select id from images
         where (made_from_result = $1 or id = (select image_id from results where id = $1)) and owner_id = $2
         order by id for no key update",
        id.uuid(),
        owner.uuid(),
    )
    .fetch_all(&mut *tx)
    .await?;
    sqlx::query!(
        "select id from jobs where id = (select job_id from results where id = $1 and owner_id = $2) for update",
        id.uuid(),
        owner.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let keys = sqlx::query!(
        "delete from results where id = $1 and owner_id = $2 and tool = $3
         returning object_key, thumbnail_key, preview_key",
        id.uuid(),
        owner.uuid(),
        tool.as_str(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(keys) = keys else { return Ok(false) };
    let keys = [Some(keys.object_key), Some(keys.thumbnail_key), keys.preview_key];
    storage::doom(&mut tx, &keys.into_iter().flatten().collect::<Vec<_>>()).await?;
    tx.commit().await?;
    Ok(true)
}
