//! Deletes images, with their results, jobs and objects.

use sqlx::{PgConnection, PgPool};

use crate::jobs::{self, CancelScope};
use crate::{ImageId, JobId, UserId, db, storage, users};

/// Expired images deleted per transaction.
const BATCH: usize = 500;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    pub images: Vec<ImageId>,
    pub canceled: Vec<JobId>,
}

/// Deletes an image and its results, cancels its active jobs and releases their holds, and dooms all objects.
/// Returns the canceled jobs, or `None` if `owner` does not own the image.
pub async fn delete(pool: &PgPool, owner: UserId, id: ImageId) -> sqlx::Result<Option<Vec<JobId>>> {
    let deleted = delete_many(pool, owner, &[id]).await?;
    Ok((!deleted.images.is_empty()).then_some(deleted.canceled))
}

/// Deletes the images among `ids` that `owner` owns, all or none, as [`delete`] does.
pub async fn delete_many(pool: &PgPool, owner: UserId, ids: &[ImageId]) -> sqlx::Result<Deleted> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    let mut tx = db::begin(pool).await?;
    // This lock prevents submissions for the images until the transaction ends.
    users::lock(&mut tx, owner).await?;
    // In the order of their ids, as everywhere: the expiry of a picture also changes the images made from it, which are
    // younger.
    let images = sqlx::query_scalar!(
        // No index serves `is not distinct from`. With `=`, Postgres would read all images of the owner, because it
        // expects few.
        r#"select id as "id: ImageId" from images where id = any($1) and owner_id is not distinct from $2
           order by id for update"#,
        &ids,
        owner.uuid(),
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut canceled = Vec::new();
    for image in &images {
        canceled.extend(jobs::cancel_some(&mut tx, CancelScope::Image(*image), i64::MAX).await?);
    }
    doom_and_delete(&mut tx, &images).await?;
    tx.commit().await?;
    Ok(Deleted { images, canceled })
}

/// Deletes up to `limit` images of `owner`, whose account was deleted, and their results. Returns their number.
pub(crate) async fn delete_some(
    conn: &mut PgConnection,
    owner: UserId,
    limit: i64,
) -> sqlx::Result<i64> {
    let some = sqlx::query_scalar!(
        r#"select id as "id: ImageId" from images
           where id in (select id from images where owner_id = $1 order by created_at desc limit $2)
           order by id for update"#,
        owner.uuid(),
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    doom_and_delete(conn, &some).await?;
    Ok(some.len() as i64)
}

/// Deletes the expired images that no active job uses and that have no result younger than an hour. Returns their number.
pub async fn delete_expired(pool: &PgPool) -> sqlx::Result<usize> {
    let mut deleted = 0;
    loop {
        let batch = delete_some_expired(pool).await?;
        deleted += batch;
        if batch < BATCH {
            return Ok(deleted);
        }
    }
}

async fn delete_some_expired(pool: &PgPool) -> sqlx::Result<usize> {
    let mut tx = db::begin(pool).await?;
    // Deleting an image also locks the images made from it. Their owner may be deleting those, and wait for an expired
    // image that is locked here. This gives up before Postgres detects the deadlock and aborts one of the two.
    sqlx::query!("set local lock_timeout = '500ms'").execute(&mut *tx).await?;
    let expired = sqlx::query_scalar!(
        // `offset 0` makes Postgres look up the jobs and results of each image. With statistics from an hour ago, it expects
        // all expiring images to be due, and would read all jobs instead.
        r#"select id as "id: ImageId" from images i
           where expires_at < now()
             and not exists (
                 select from jobs j where j.image_id = i.id and j.state in ('queued', 'running') offset 0
             )
             and not exists (
                 select from results r where r.image_id = i.id and r.created_at > now() - interval '1 hour' offset 0
             )
           order by expires_at limit $1 for update skip locked"#,
        BATCH as i64,
    )
    .fetch_all(&mut *tx)
    .await?;
    doom_and_delete(&mut tx, &expired).await?;
    tx.commit().await?;
    Ok(expired.len())
}

async fn doom_and_delete(conn: &mut PgConnection, ids: &[ImageId]) -> sqlx::Result<()> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    let keys = sqlx::query_scalar!(
        r#"select key as "key!" from (
               select unnest(array[object_key, thumbnail_key, preview_key]) as key from images where id = any($1)
               union
               select unnest(array[object_key, thumbnail_key, preview_key]) from results where image_id = any($1)
           ) keys where key is not null"#,
        &ids,
    )
    .fetch_all(&mut *conn)
    .await?;
    // Only failed jobs still have masks when they have ended.
    sqlx::query!(
        "delete from masks using jobs where jobs.id = masks.job_id and jobs.image_id = any($1)",
        &ids,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("delete from images where id = any($1)", &ids).execute(&mut *conn).await?;
    // Doom the objects after deleting the rows: the database refuses to doom an object that an image made from a result
    // refers to.
    storage::doom(conn, &keys).await
}
