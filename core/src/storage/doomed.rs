//! The list of objects for the janitor: those to delete, and those that are being written.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use super::{result_key, result_preview_key, result_thumbnail_key};
use crate::{JobId, db};

/// Dooms objects: the janitor deletes them, unless a row refers to them. Objects that an image made from a result refers
/// to are left out (migration 0035), so the caller deletes such an image first.
pub(crate) async fn doom(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<()> {
    doom_in(conn, keys, Duration::ZERO).await
}

/// Like [`doom`]; the janitor deletes the objects after `delay`.
pub(crate) async fn doom_in(
    conn: &mut PgConnection,
    keys: &[String],
    delay: Duration,
) -> sqlx::Result<()> {
    // A small picture is its own thumbnail, and one statement must not update a row twice.
    let keys: Vec<String> = keys.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
    sqlx::query!(
        // A janitor that is about to take a key off the list, because a row refers to it, holds a lock on the row of the
        // list. The caller may be deleting just that row: the update waits for the janitor, and then inserts a new row. The
        // order prevents a deadlock of two that doom the same keys.
        "insert into doomed_objects (object_key, since)
         select key, now() + $2 from unnest($1::text[]) key order by key
         on conflict (object_key) do update set since = doomed_objects.since",
        &keys,
        db::interval(delay),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Dooms the objects of an attempt that will not finish.
pub async fn doom_attempt(pool: &PgPool, job: JobId, attempt: i32) -> sqlx::Result<()> {
    let mut conn = pool.acquire().await?;
    let keys = [
        result_key(job, attempt),
        result_thumbnail_key(job, attempt),
        result_preview_key(job, attempt),
    ];
    doom(&mut conn, &keys).await
}

/// Announces objects that are about to be written. Unless [`confirm`] takes them off the janitor's list within an
/// hour, the janitor deletes them, so a process that dies before recording them leaves nothing behind.
pub(crate) async fn announce(pool: &PgPool, keys: &[String]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into doomed_objects (object_key, since, is_announced)
         select unnest($1::text[]), now() + interval '1 hour', true
         on conflict do nothing",
        keys,
    )
    .execute(pool)
    .await
    .map(drop)
}

/// Takes announced objects off the janitor's list, in the transaction that writes their row. Returns how many
/// were still announced: the others may already be deleted.
pub(crate) async fn confirm(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<u64> {
    let confirmed = sqlx::query!(
        "delete from doomed_objects where object_key = any($1) and is_announced",
        keys,
    )
    .execute(conn)
    .await?;
    Ok(confirmed.rows_affected())
}

/// Takes keys off the janitor's list.
pub(crate) async fn forget_doomed(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<()> {
    sqlx::query!("delete from doomed_objects where object_key = any($1)", keys)
        .execute(conn)
        .await
        .map(drop)
}

/// The delay before the janitor tries again to delete an object that the store did not delete.
const DOOMED_RETRY: Duration = Duration::from_mins(5);

/// Postpones doomed keys by [`DOOMED_RETRY`].
pub(crate) async fn postpone_doomed(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<()> {
    sqlx::query!(
        "update doomed_objects set since = now() + $2 where object_key = any($1)",
        keys,
        db::interval(DOOMED_RETRY),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Returns up to `limit` doomed keys, the oldest first, locked for the caller's transaction: [`confirm`] waits for
/// that transaction, and other janitors skip these keys.
pub(crate) async fn lock_doomed(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "select object_key from doomed_objects where since <= now()
         order by since limit $1 for update skip locked",
        limit,
    )
    .fetch_all(conn)
    .await
}
