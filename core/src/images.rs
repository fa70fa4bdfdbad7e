//! Uploaded images: upright, without metadata, visible only to their owner. An image may also be made from a result,
//! whose objects it shares.
//!
//! Images of visitors, and those that a user's program sends for one run, expire after an hour. They are deleted with
//! their results once these are an hour old as well.

mod delete;
mod from_result;
mod list;
mod name;
mod provenance;
mod quota;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor, PgPool};

use crate::{ImageId, ResultId, UserId, db, storage};
use retouch_catalog::ToolName;

pub(crate) use delete::delete_some;
pub use delete::{Deleted, delete, delete_expired, delete_many};
pub use from_result::{FromResult, Stay, from_result};
pub use list::{Cursor, Listing, Place, Sort, count, list, page};
pub use name::{ImageName, result_label, split_extension};
pub use provenance::{Provenance, provenance};
pub use quota::{Quota, Stored, stored};

#[derive(Clone)]
pub struct Image {
    pub id: ImageId,
    /// The owner; `None` for visitors.
    pub owner: Option<UserId>,
    /// The name of the file; `None` if the client sent none.
    pub name: Option<String>,
    pub object_key: String,
    pub thumbnail_key: String,
    /// The S3 key of its preview; `None` if it has none.
    pub preview_key: Option<String>,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: String,
    pub size_bytes: i64,
    pub width: i32,
    pub height: i32,
    pub created_at: DateTime<Utc>,
    /// The tool whose result it was made from; `None` for an upload.
    pub made_from_tool: Option<ToolName>,
    /// That result, unless it is deleted.
    pub made_from_result: Option<ResultId>,
    /// The image that the result was made from, unless it is deleted.
    pub made_from_image: Option<ImageId>,
    pub free_remove_background_used: bool,
    pub free_upscale_used: bool,
}

#[derive(Clone, Debug)]
pub enum Uploader {
    User(UserId),
    /// A user's program, for one run; the image expires after an hour and appears in no list.
    Program(UserId),
    /// A visitor, identified by a keyed hash of their IP address; the image expires after an hour.
    Visitor(String),
}

/// An image whose objects have been written.
#[derive(Clone)]
pub struct NewImage {
    /// Its id, from which its keys are built.
    pub id: ImageId,
    pub uploader: Uploader,
    /// The name of the file, if the client sent one.
    pub name: Option<ImageName>,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: &'static str,
    /// The SHA-256 of the uploaded bytes.
    pub content_sha256: Vec<u8>,
    /// The idempotency key of a user's upload.
    pub upload_key: Option<String>,
    pub size_bytes: i64,
    pub width: i32,
    pub height: i32,
    pub has_preview: bool,
    /// The provenance of the file; `None` if it had no marks.
    pub provenance: Option<Provenance>,
}

/// Returns the keys of an upload: the file, its thumbnail and its preview.
fn keys_of(id: ImageId) -> [String; 3] {
    [storage::image_key(id), storage::image_thumbnail_key(id), storage::image_preview_key(id)]
}

/// Announces the objects of an image that is about to be written. Unless [`insert`] follows within an hour, the
/// janitor deletes them.
pub async fn announce(pool: &PgPool, id: ImageId) -> sqlx::Result<()> {
    storage::announce(pool, &keys_of(id)).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    Inserted,
    /// It was announced so long ago that the janitor has deleted its objects.
    TooLate,
    /// Its owner deleted their account in the meantime.
    OwnerGone,
    OverQuota,
    /// Its owner has another image with this upload key, or the visitor has one with the same bytes.
    Repeated,
}

/// Inserts an image that was announced and whose objects are written. If it is not inserted, the janitor deletes
/// its objects.
pub async fn insert(pool: &PgPool, image: &NewImage, quota: Quota) -> sqlx::Result<InsertOutcome> {
    let keys = keys_of(image.id);
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
        if let Some(key) = &image.upload_key
            && uploaded(&mut *tx, id, key).await?.is_some()
        {
            return Ok(InsertOutcome::Repeated);
        }
        if quota != Quota::NONE && !quota.has_room(stored(&mut *tx, id).await?, image.size_bytes) {
            return Ok(InsertOutcome::OverQuota);
        }
    }
    if let Uploader::Visitor(visitor) = &image.uploader {
        lock_upload(&mut tx, visitor, &image.content_sha256).await?;
        if for_visitor(&mut *tx, visitor, &image.content_sha256).await?.is_some() {
            return Ok(InsertOutcome::Repeated);
        }
    }
    // The janitor locks these rows while it deletes their objects, so if they exist, the objects do too.
    if storage::confirm(&mut tx, &keys).await? != keys.len() as u64 {
        return Ok(InsertOutcome::TooLate);
    }
    let [object_key, thumbnail_key, preview_key] = keys;
    let (owner, visitor) = match &image.uploader {
        Uploader::User(id) | Uploader::Program(id) => (Some(id.uuid()), None),
        Uploader::Visitor(hash) => (None, Some(hash.as_str())),
    };
    let expires = !matches!(image.uploader, Uploader::User(_));
    sqlx::query!(
        "insert into images (id, owner_id, visitor, object_key, thumbnail_key, content_type,
                             content_sha256, size_bytes, width, height, name, preview_key, expires_at,
                             upload_key)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                 case when $13 then now() + interval '1 hour' end, $14)",
        image.id.uuid(),
        owner,
        visitor,
        object_key,
        thumbnail_key,
        image.content_type,
        image.content_sha256,
        image.size_bytes,
        image.width,
        image.height,
        image.name.as_ref().map(ImageName::as_str),
        image.has_preview.then_some(preview_key),
        expires,
        image.upload_key,
    )
    .execute(&mut *tx)
    .await?;
    if let Some(provenance) = &image.provenance {
        provenance::record(&mut tx, image.id, provenance).await?;
    }
    tx.commit().await?;
    Ok(InsertOutcome::Inserted)
}

/// Serializes a visitor's uploads of the same bytes, so that they become one image.
async fn lock_upload(
    conn: &mut PgConnection,
    visitor: &str,
    content_sha256: &[u8],
) -> sqlx::Result<()> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('upload:' || $1 || encode($2, 'hex'), 0))",
        visitor,
        content_sha256,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Returns the image, whoever owns it. The caller must check the owner before exposing it.
pub async fn get(pool: &PgPool, id: ImageId) -> sqlx::Result<Option<Image>> {
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.name, i.object_key, i.thumbnail_key,
                  i.preview_key, i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  i.made_from_tool as "made_from_tool: ToolName", i.made_from_result as "made_from_result: ResultId",
                  i.made_from_image as "made_from_image: ImageId",
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

/// Returns the image that `owner` uploaded with this idempotency key, and the SHA-256 of the uploaded bytes.
pub async fn uploaded(
    executor: impl PgExecutor<'_>,
    owner: UserId,
    key: &str,
) -> sqlx::Result<Option<(ImageId, Vec<u8>)>> {
    let found = sqlx::query!(
        r#"select id as "id: ImageId", content_sha256 as "content_sha256!" from images
           where owner_id = $1 and upload_key = $2"#,
        owner.uuid(),
        key,
    );
    let found = found.fetch_optional(executor).await?;
    Ok(found.map(|image| (image.id, image.content_sha256)))
}

/// Returns the image if `owner` owns it.
pub async fn owned(pool: &PgPool, owner: UserId, id: ImageId) -> sqlx::Result<Option<Image>> {
    let found = get(pool, id).await?;
    Ok(found.filter(|image| image.owner == Some(owner)))
}

/// Returns the images among `ids` that `owner` owns, in the order of the ids, each once.
pub async fn owned_many(pool: &PgPool, owner: UserId, ids: &[ImageId]) -> sqlx::Result<Vec<Image>> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.name, i.object_key, i.thumbnail_key,
                  i.preview_key, i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  i.made_from_tool as "made_from_tool: ToolName", i.made_from_result as "made_from_result: ResultId",
                  i.made_from_image as "made_from_image: ImageId",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $3)
                      as "free_remove_background_used!",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $4)
                      as "free_upscale_used!"
           from images i
           -- No index serves `is not distinct from`. With `=`, Postgres would read all images of the owner, because it expects few.
           where i.id = any($1) and i.owner_id is not distinct from $2 and coalesce(i.expires_at > now(), true)
           order by array_position($1, i.id)"#,
        &ids,
        owner.uuid(),
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
    )
    .fetch_all(pool)
    .await
}

/// Returns the visitor's earlier upload of the same bytes, unless it has expired.
pub async fn for_visitor(
    executor: impl PgExecutor<'_>,
    visitor: &str,
    content_sha256: &[u8],
) -> sqlx::Result<Option<ImageId>> {
    sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images
           where visitor = $1 and content_sha256 = $2 and expires_at > now() limit 1"#,
        visitor,
        content_sha256,
    )
    .fetch_optional(executor)
    .await
}

/// Returns the earlier upload of the same bytes by a program of `owner`, unless it expires within ten minutes: the
/// caller may need that long to submit its run.
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
