//! Uploaded images: upright, without metadata, visible only to their owner.
//!
//! Images of visitors, and those that a user's program sends for one run, expire after an hour.

mod quota;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use crate::jobs::CancelScope;
use crate::{ImageId, JobId, UserId, db, jobs, storage};
use retouch_catalog::ToolName;

pub use quota::{Quota, Stored, stored};

/// An uploaded image.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its id.
    pub id: ImageId,
    /// The owner; `None` for visitors.
    pub owner: Option<UserId>,
    /// Its S3 key.
    pub object_key: String,
    /// The S3 key of its thumbnail.
    pub thumbnail_key: String,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: String,
    /// The size of the object in bytes.
    pub size_bytes: i64,
    /// The width in pixels.
    pub width: i32,
    /// The height in pixels.
    pub height: i32,
    /// The time of the upload.
    pub created_at: DateTime<Utc>,
    /// True once its free background removal is used up.
    pub free_remove_background_used: bool,
    /// True once its free upscale is used up.
    pub free_upscale_used: bool,
}

/// Who uploaded an image.
#[derive(Clone, Debug)]
pub enum Uploader {
    /// A signed-in user.
    User(UserId),
    /// A user's program, for one run; the image expires after an hour and appears in no list.
    Program(UserId),
    /// A visitor, identified by a keyed hash of their IP address; the image expires after an hour.
    Visitor(String),
}

/// An image whose objects have been written.
#[derive(Clone, Debug)]
pub struct NewImage {
    /// Its id, from which its keys are built.
    pub id: ImageId,
    /// Who uploaded it.
    pub uploader: Uploader,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: &'static str,
    /// The SHA-256 of the uploaded bytes.
    pub content_sha256: Vec<u8>,
    /// The size of the object in bytes.
    pub size_bytes: i64,
    /// The width in pixels.
    pub width: i32,
    /// The height in pixels.
    pub height: i32,
}

/// Announces the objects of an image that is about to be written. Unless [`insert`] follows within an hour, the
/// janitor deletes them.
pub async fn announce(pool: &PgPool, id: ImageId) -> sqlx::Result<()> {
    storage::announce(pool, &[storage::image_key(id), storage::image_thumbnail_key(id)]).await
}

/// The outcome of inserting an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The image was inserted.
    Inserted,
    /// It was announced so long ago that the janitor has deleted its objects.
    TooLate,
    /// Its owner deleted their account meanwhile.
    OwnerGone,
    /// Its owner has no room for it.
    OverQuota,
}

/// Inserts an image that was announced and whose objects are written. If it is not inserted, the janitor deletes
/// its objects.
pub async fn insert(pool: &PgPool, image: &NewImage) -> sqlx::Result<InsertOutcome> {
    insert_within(pool, image, Quota::NONE).await
}

/// Like [`insert`], unless the owner has no room for it.
pub async fn insert_within(
    pool: &PgPool,
    image: &NewImage,
    quota: Quota,
) -> sqlx::Result<InsertOutcome> {
    let keys = [storage::image_key(image.id), storage::image_thumbnail_key(image.id)];
    let mut tx = db::begin(pool).await?;
    if let Uploader::User(id) | Uploader::Program(id) = image.uploader {
        // Waits for a concurrent deletion of the account, which locks the row, and then finds no owner. Also waits for
        // concurrent uploads, so that the quota holds exactly.
        let owner = sqlx::query!(
            "select id from users where id = $1 and deleted_at is null for no key update",
            id.uuid(),
        );
        if owner.fetch_optional(&mut *tx).await?.is_none() {
            return Ok(InsertOutcome::OwnerGone);
        }
        if quota != Quota::NONE && !quota.has_room(stored(&mut *tx, id).await?, image.size_bytes) {
            return Ok(InsertOutcome::OverQuota);
        }
    }
    // The janitor locks these rows while it deletes their objects, so if they exist, the objects do too.
    if storage::confirm(&mut tx, &keys).await? != 2 {
        return Ok(InsertOutcome::TooLate);
    }
    let (owner, visitor) = match &image.uploader {
        Uploader::User(id) | Uploader::Program(id) => (Some(id.uuid()), None),
        Uploader::Visitor(hash) => (None, Some(hash.as_str())),
    };
    let expires = !matches!(image.uploader, Uploader::User(_));
    sqlx::query!(
        "insert into images (id, owner_id, visitor, object_key, thumbnail_key, content_type,
                             content_sha256, size_bytes, width, height, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
                 case when $11 then now() + interval '1 hour' end)",
        image.id.uuid(),
        owner,
        visitor,
        keys[0],
        keys[1],
        image.content_type,
        image.content_sha256,
        image.size_bytes,
        image.width,
        image.height,
        expires,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(InsertOutcome::Inserted)
}

/// Returns the image, whoever owns it. The caller must check the owner before exposing it.
pub async fn get(pool: &PgPool, id: ImageId) -> sqlx::Result<Option<Image>> {
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.object_key, i.thumbnail_key,
                  i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $2)
                      as "free_remove_background_used!",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $3)
                      as "free_upscale_used!"
           from images i
           where i.id = $1 and coalesce(i.expires_at > now(), true)"#,
        id.uuid(),
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
    )
    .fetch_optional(pool)
    .await
}

/// Returns the image if `owner` owns it.
pub async fn owned(pool: &PgPool, owner: UserId, id: ImageId) -> sqlx::Result<Option<Image>> {
    let found = get(pool, id).await?;
    Ok(found.filter(|image| image.owner == Some(owner)))
}

/// A place in a list of images that is sorted by the time of the upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The time of the upload of the last image before it.
    pub created_at: DateTime<Utc>,
    /// The id of that image.
    pub id: ImageId,
}

impl Image {
    /// Returns the place after this image.
    pub const fn cursor(&self) -> Cursor {
        Cursor { created_at: self.created_at, id: self.id }
    }
}

/// Returns up to `limit` images of `owner` that do not expire, the newest first, from `before` on.
pub async fn list(
    pool: &PgPool,
    owner: UserId,
    before: Option<Cursor>,
    limit: i64,
) -> sqlx::Result<Vec<Image>> {
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.object_key, i.thumbnail_key,
                  i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $2)
                      as "free_remove_background_used!",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $3)
                      as "free_upscale_used!"
           from images i
           where i.owner_id = $1 and i.expires_at is null
             and (i.created_at, i.id) < (coalesce($4, 'infinity'::timestamptz), $5)
           order by i.created_at desc, i.id desc limit $6"#,
        owner.uuid(),
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
        before.map(|before| before.created_at),
        before.map(|before| before.id.uuid()),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Returns the visitor's earlier upload of the same bytes, unless it has expired.
pub async fn for_visitor(
    pool: &PgPool,
    visitor: &str,
    content_sha256: &[u8],
) -> sqlx::Result<Option<ImageId>> {
    sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images
           where visitor = $1 and content_sha256 = $2 and expires_at > now() limit 1"#,
        visitor,
        content_sha256,
    )
    .fetch_optional(pool)
    .await
}

/// Returns the earlier upload of the same bytes by a program of `owner`, unless it expires within ten minutes: the
/// result of another run would be deleted with it.
pub async fn for_program(
    pool: &PgPool,
    owner: UserId,
    content_sha256: &[u8],
) -> sqlx::Result<Option<ImageId>> {
    sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images
           where owner_id = $1 and content_sha256 = $2 and expires_at > now() + interval '10 minutes'
           order by created_at limit 1"#,
        owner.uuid(),
        content_sha256,
    )
    .fetch_optional(pool)
    .await
}

/// Deletes an image and its results, cancels its active jobs and releases their holds, and dooms all objects.
/// Returns the canceled jobs, or `None` if `owner` does not own the image.
pub async fn delete(pool: &PgPool, owner: UserId, id: ImageId) -> sqlx::Result<Option<Vec<JobId>>> {
    let mut tx = db::begin(pool).await?;
    // Lock the user's row first, as submit does: no job can be submitted for the image meanwhile.
    sqlx::query!("select id from users where id = $1 for update", owner.uuid())
        .fetch_optional(&mut *tx)
        .await?;
    let found = sqlx::query!(
        "select id from images where id = $1 and owner_id = $2 for update",
        id.uuid(),
        owner.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    if found.is_none() {
        return Ok(None);
    }
    let canceled = jobs::cancel_some(&mut tx, CancelScope::Image(id), i64::MAX).await?;
    doom_and_delete(&mut tx, &[id]).await?;
    tx.commit().await?;
    Ok(Some(canceled))
}

/// Deletes up to `limit` images of `owner`, whose account was deleted, and their results. Returns their number.
pub(crate) async fn delete_some(
    conn: &mut PgConnection,
    owner: UserId,
    limit: i64,
) -> sqlx::Result<i64> {
    let some = sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images where owner_id = $1 order by created_at desc limit $2 for update"#,
        owner.uuid(),
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    doom_and_delete(conn, &some).await?;
    Ok(some.len() as i64)
}

/// Deletes up to 500 expired images that no active job uses. Returns their number.
pub async fn delete_expired(pool: &PgPool) -> sqlx::Result<usize> {
    let mut tx = db::begin(pool).await?;
    let expired = sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images i
           where expires_at < now()
             and not exists (select from jobs j where j.image_id = i.id and j.state in ('queued', 'running'))
           order by expires_at limit 500 for update skip locked"#,
    )
    .fetch_all(&mut *tx)
    .await?;
    doom_and_delete(&mut tx, &expired).await?;
    tx.commit().await?;
    Ok(expired.len())
}

async fn doom_and_delete(conn: &mut PgConnection, ids: &[ImageId]) -> sqlx::Result<()> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    sqlx::query!(
        "insert into doomed_objects (object_key)
         select unnest(array[object_key, thumbnail_key]) from images where id = any($1)
         union
         select unnest(array[object_key, thumbnail_key]) from results where image_id = any($1)
         on conflict do nothing",
        &ids,
    )
    .execute(&mut *conn)
    .await?;
    // Those of failed jobs; other ended jobs have none.
    sqlx::query!(
        "delete from masks using jobs where jobs.id = masks.job_id and jobs.image_id = any($1)",
        &ids,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("delete from images where id = any($1)", &ids).execute(conn).await.map(drop)
}
