//! Uploaded pictures: upright, without metadata, visible to nobody but their owner.
//!
//! Those of visitors, and those that a user's program sends for one run, live for an hour.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use crate::jobs::AllOf;
use crate::{ImageId, JobId, UserId, db, jobs, storage};
use retouch_catalog::ToolName;

/// An uploaded picture.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its id.
    pub id: ImageId,
    /// Whose it is; a visitor's belongs to nobody.
    pub owner: Option<UserId>,
    /// Where the picture is in S3.
    pub object_key: String,
    /// Where its small copy is in S3.
    pub thumbnail_key: String,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: String,
    /// The size of the object.
    pub size_bytes: i64,
    /// Pixels.
    pub width: i32,
    /// Pixels.
    pub height: i32,
    /// When it was uploaded.
    pub created_at: DateTime<Utc>,
    /// Whether its free background removal is used up.
    pub free_remove_background_used: bool,
    /// Whether its free upscale is used up.
    pub free_upscale_used: bool,
}

/// Whose a new picture is.
#[derive(Clone, Debug)]
pub enum Uploader {
    /// A signed-in user.
    User(UserId),
    /// A user's program, for one run; the picture lives for an hour and is in no list of theirs.
    Program(UserId),
    /// A visitor, by a keyed hash of their address; the picture lives for an hour.
    Visitor(String),
}

/// What is to be recorded of a picture whose objects have been stored.
#[derive(Clone, Debug)]
pub struct NewImage {
    /// Its id; the keys of its objects are made of it.
    pub id: ImageId,
    /// Whose it is.
    pub uploader: Uploader,
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub content_type: &'static str,
    /// SHA-256 of the bytes that were uploaded.
    pub content_sha256: Vec<u8>,
    /// The size of the object.
    pub size_bytes: i64,
    /// Pixels.
    pub width: i32,
    /// Pixels.
    pub height: i32,
}

/// Announces the objects of a picture that is about to be stored; unless its row
/// follows within the hour, the janitor deletes them.
pub async fn announce(pool: &PgPool, id: ImageId) -> sqlx::Result<()> {
    storage::announce(pool, &[storage::image_key(id), storage::image_thumbnail_key(id)]).await
}

/// What became of a picture that was to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is there.
    Yes,
    /// It was announced so long ago that the janitor has taken its objects.
    TooLate,
    /// Its owner deleted their account meanwhile.
    OwnerGone,
}

/// Records a picture that was announced and whose objects are in place. When it is not recorded, the
/// janitor takes them.
pub async fn insert(pool: &PgPool, image: &NewImage) -> sqlx::Result<Recorded> {
    let keys = [storage::image_key(image.id), storage::image_thumbnail_key(image.id)];
    let mut tx = db::begin(pool).await?;
    if let Uploader::User(id) | Uploader::Program(id) = image.uploader {
        // Whoever deletes the account holds the row: this waits for them and then finds nobody.
        let owner = sqlx::query!(
            "select id from users where id = $1 and deleted_at is null for key share",
            id.uuid(),
        );
        if owner.fetch_optional(&mut *tx).await?.is_none() {
            return Ok(Recorded::OwnerGone);
        }
    }
    // The janitor locks what it is about to delete, so that these rows are here only if the objects are.
    if storage::keep(&mut tx, &keys).await? != 2 {
        return Ok(Recorded::TooLate);
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
    Ok(Recorded::Yes)
}

/// The picture, whoever it belongs to: for the worker, and for addresses signed after an owner check.
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

/// The picture, if `owner` owns it.
pub async fn owned(pool: &PgPool, owner: UserId, id: ImageId) -> sqlx::Result<Option<Image>> {
    let found = get(pool, id).await?;
    Ok(found.filter(|image| image.owner == Some(owner)))
}

/// All pictures that `owner` keeps, the newest first.
pub async fn list(pool: &PgPool, owner: UserId) -> sqlx::Result<Vec<Image>> {
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
           order by i.created_at desc"#,
        owner.uuid(),
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
    )
    .fetch_all(pool)
    .await
}

/// The picture that the same visitor uploaded before, byte for byte, if it still lives.
pub async fn of_visitor(
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

/// The picture that a program of `owner` sent before, byte for byte, if it still lives.
pub async fn of_program(
    pool: &PgPool,
    owner: UserId,
    content_sha256: &[u8],
) -> sqlx::Result<Option<ImageId>> {
    sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images
           where owner_id = $1 and content_sha256 = $2 and expires_at > now()
           order by created_at limit 1"#,
        owner.uuid(),
        content_sha256,
    )
    .fetch_optional(pool)
    .await
}

/// Deletes the picture with everything below it: active jobs are cancelled and their holds given back,
/// results go, and all objects are left to the janitor. Returns the cancelled jobs, or `None` when
/// `owner` has no such picture.
pub async fn delete(pool: &PgPool, owner: UserId, id: ImageId) -> sqlx::Result<Option<Vec<JobId>>> {
    let mut tx = db::begin(pool).await?;
    // The user's row first, as in submit: nothing can be submitted for the picture meanwhile.
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
    let cancelled = jobs::cancel_all(&mut tx, AllOf::Image(id)).await?;
    doom_and_delete(&mut tx, &[id]).await?;
    tx.commit().await?;
    Ok(Some(cancelled))
}

/// Deletes all pictures of `owner` with everything below them; part of deleting the account. The caller has
/// locked the owner's row and ended their jobs.
pub(crate) async fn delete_all_of(conn: &mut PgConnection, owner: UserId) -> sqlx::Result<()> {
    let all = sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images where owner_id = $1 for update"#,
        owner.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    doom_and_delete(conn, &all).await
}

/// Deletes visitors' and programs' pictures whose hour is over and that no job is using. Returns how many.
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
    sqlx::query!("delete from images where id = any($1)", &ids).execute(conn).await.map(drop)
}
