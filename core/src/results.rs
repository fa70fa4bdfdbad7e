//! The pictures that jobs made.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use crate::{ImageId, JobId, ResultId, UserId, db, storage};
use retouch_catalog::{FixMode, Tier, ToolName};

/// A picture that a job made, and what really made it.
#[derive(Clone, Debug)]
pub struct ResultImage {
    /// Its id.
    pub id: ResultId,
    /// The job that made it.
    pub job: JobId,
    /// The uploaded picture it was made from.
    pub image: ImageId,
    /// Whose it is; a visitor's belongs to nobody.
    pub owner: Option<UserId>,
    /// The tool that made it.
    pub tool: ToolName,
    /// The factor of an upscale.
    pub factor: Option<i16>,
    /// The mode of a Magic Fix.
    pub mode: Option<FixMode>,
    /// The words of a Magic Fix.
    pub prompt: Option<String>,
    /// Where the PNG is in S3.
    pub object_key: String,
    /// Where its small copy is in S3; the PNG itself where that is no larger.
    pub thumbnail_key: String,
    /// The size of the PNG.
    pub size_bytes: i64,
    /// Pixels.
    pub width: i32,
    /// Pixels.
    pub height: i32,
    /// The name of the model that ran.
    pub model: String,
    /// The checksum of the model file that ran.
    pub model_sha256: String,
    /// The device it ran on: `cpu` or `cuda`.
    pub device: String,
    /// Whether that model only shows that the way works.
    pub is_demo: bool,
    /// From the start of the job to its PNG.
    pub duration_ms: i32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Who it was made for.
    pub tier: Tier,
    /// What was paid for it, in credits.
    pub credits: i32,
}

/// What a worker made and has stored; becomes a result when its job is finished.
#[derive(Clone, Debug)]
pub struct NewResult {
    /// Its id.
    pub id: ResultId,
    /// Where the PNG is.
    pub object_key: String,
    /// Where its small copy is.
    pub thumbnail_key: String,
    /// The size of the PNG.
    pub size_bytes: i64,
    /// Pixels.
    pub width: i32,
    /// Pixels.
    pub height: i32,
    /// The name of the model that ran.
    pub model: String,
    /// The checksum of the model file that ran.
    pub model_sha256: String,
    /// The device it ran on.
    pub device: String,
    /// Whether that model only shows that the way works.
    pub is_demo: bool,
    /// From the start of the job to its PNG.
    pub duration_ms: i32,
}

/// Which results to read; fields that are `None` do not narrow the choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// One result.
    pub id: Option<ResultId>,
    /// What was made from one picture.
    pub image: Option<ImageId>,
    /// What one tool made.
    pub tool: Option<ToolName>,
}

/// The results that fit `filter`, the oldest first. The caller has checked whose they are.
pub async fn list(pool: &PgPool, filter: Filter) -> sqlx::Result<Vec<ResultImage>> {
    sqlx::query_as!(
        ResultImage,
        r#"select r.id as "id: ResultId", r.job_id as "job: JobId", r.image_id as "image: ImageId",
                  r.owner_id as "owner: UserId", r.tool as "tool: ToolName", r.factor, r.object_key,
                  r.mode as "mode: FixMode", r.prompt, r.is_demo, r.thumbnail_key, r.size_bytes, r.width, r.height, r.model, r.model_sha256, r.device,
                  r.duration_ms, r.created_at, j.tier as "tier: Tier", j.cost as credits
           from results r join jobs j on j.id = r.job_id
           where ($1::uuid is null or r.id = $1) and ($2::uuid is null or r.image_id = $2)
             and ($3::text is null or r.tool = $3)
           order by r.created_at, r.id"#,
        filter.id.map(ResultId::uuid),
        filter.image.map(ImageId::uuid),
        filter.tool.map(ToolName::as_str),
    )
    .fetch_all(pool)
    .await
}

/// What one job made. Each run asks this: unlike [`list`], it is planned once for all of them.
pub async fn of_job(pool: &PgPool, job: JobId) -> sqlx::Result<Vec<ResultImage>> {
    sqlx::query_as!(
        ResultImage,
        r#"select r.id as "id: ResultId", r.job_id as "job: JobId", r.image_id as "image: ImageId",
                  r.owner_id as "owner: UserId", r.tool as "tool: ToolName", r.factor, r.object_key,
                  r.mode as "mode: FixMode", r.prompt, r.is_demo, r.thumbnail_key, r.size_bytes, r.width,
                  r.height, r.model, r.model_sha256, r.device, r.duration_ms, r.created_at,
                  j.tier as "tier: Tier", j.cost as credits
           from results r join jobs j on j.id = r.job_id
           where r.job_id = $1"#,
        job.uuid(),
    )
    .fetch_all(pool)
    .await
}

/// Deletes one result of `owner` made by `tool`; its objects are left to the janitor. False when there
/// is none.
pub async fn delete(
    pool: &PgPool,
    owner: UserId,
    tool: ToolName,
    id: ResultId,
) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    let keys = sqlx::query!(
        "delete from results where id = $1 and owner_id = $2 and tool = $3
         returning object_key, thumbnail_key",
        id.uuid(),
        owner.uuid(),
        tool.as_str(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(keys) = keys else { return Ok(false) };
    storage::doom(&mut tx, &[keys.object_key, keys.thumbnail_key]).await?;
    tx.commit().await?;
    Ok(true)
}
