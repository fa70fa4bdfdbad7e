//! Cleaning up behind everybody. Each task is a function of its own, safe to repeat and to stop anywhere.
//!
//! | what | when |
//! |---|---|
//! | pictures of visitors and programs, an hour old | every round (10 s), by every worker |
//! | workers that fell silent an hour ago | every round |
//! | objects whose rows are gone, and uploads to their keys | every round |
//! | objects that no row names, after 24 hours | hourly, by one worker |
//! | uploads that nobody ended, after 24 hours | hourly |
//! | orders that nobody paid | hourly |
//! | jobs that left nothing, after 90 days; idempotency keys, after 7 | hourly |
//! | who deleted an account, after 12 months | hourly |
//!
//! Messages of the payment provider stay.

use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use sqlx::PgPool;
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockKey};
use tokio_util::sync::CancellationToken;

use crate::storage::{self, Page, Storage, StorageError, Unfinished};
use crate::{accounts, db, images, jobs, orders, workers};

/// How often the janitor looks.
const ROUND: Duration = Duration::from_secs(10);
/// How often it asks whether the hourly tasks are due.
const IS_IT_TIME: Duration = Duration::from_mins(5);
/// Objects that are deleted in one transaction, and how many of them at once.
const BATCH: i64 = 32;
const AT_ONCE: usize = 8;
/// How old an object must be before anybody asks whose it is. The rows alone would be enough; a day more
/// keeps what a database restored from a backup does not know of yet.
pub const ORPHAN_AGE: Duration = Duration::from_hours(24);
/// Nobody is at an upload for longer.
const UPLOAD_HOURS: i32 = 24;
/// How long jobs that left nothing are kept.
pub const JOB_DAYS: i32 = 90;
/// How long a repeat of a request is recognised.
pub const KEY_DAYS: i32 = 7;
/// What makes the hourly tasks one process's at a time: any number, as long as nobody else uses it.
const HOURLY_LOCK: PgAdvisoryLockKey = PgAdvisoryLockKey::BigInt(0x7265_746f_7563_6801);

/// Cleans until `stop`.
pub async fn run(pool: PgPool, storage: Storage, stop: CancellationToken) {
    // The hourly tasks on their own: looking through a large bucket takes minutes.
    let both = async { tokio::join!(rounds(&pool, &storage), hours(&pool, &storage)) };
    stop.run_until_cancelled(both).await;
}

async fn rounds(pool: &PgPool, storage: &Storage) {
    let mut times = tokio::time::interval(ROUND);
    loop {
        times.tick().await;
        if let Err(error) = round(pool, storage).await {
            tracing::warn!("Cleaning up broke off; the next round goes on: {error:#}");
        }
    }
}

async fn hours(pool: &PgPool, storage: &Storage) {
    let mut times = tokio::time::interval(IS_IT_TIME);
    loop {
        times.tick().await;
        if let Err(error) = hourly(pool, storage).await {
            tracing::warn!("The hourly tasks broke off; the next hour's go on: {error:#}");
        }
    }
}

/// What is done all the time.
pub async fn round(pool: &PgPool, storage: &Storage) -> anyhow::Result<()> {
    images::delete_expired(pool).await?;
    workers::forget_silent(pool).await?;
    delete_doomed(pool, storage).await.map(drop)
}

/// What is done once an hour, by whichever process comes first. False when it was not due, or another
/// process is at it.
pub async fn hourly(pool: &PgPool, storage: &Storage) -> anyhow::Result<bool> {
    let lock = PgAdvisoryLock::with_key(HOURLY_LOCK);
    let conn = pool.acquire().await?;
    let Some(held) = lock.try_acquire(conn).await?.left() else { return Ok(false) };
    let due = is_due(pool, "hourly").await?;
    if due {
        // One that fails must not keep the others from their turn.
        let ends = [
            ("orphans", delete_orphans(pool, storage, ORPHAN_AGE).await),
            ("uploads", storage::abort_stale(storage, pool, UPLOAD_HOURS).await),
            ("orders", counted(orders::expire_abandoned(pool).await)),
            ("jobs", counted(jobs::forget_old(pool, JOB_DAYS).await)),
            ("idempotency keys", counted(jobs::forget_keys(pool, KEY_DAYS).await)),
            ("former users", counted(accounts::forget_former(pool).await)),
        ];
        for (what, end) in ends {
            match end {
                Ok(0) => {}
                Ok(count) => tracing::info!(what, count, "Tidied up {count} {what}"),
                Err(error) => tracing::warn!(what, "Could not tidy up {what}: {error:#}"),
            }
        }
    }
    held.release_now().await.context("releasing the janitor's lock")?;
    Ok(due)
}

fn counted(rows: sqlx::Result<u64>) -> anyhow::Result<usize> {
    Ok(usize::try_from(rows?)?)
}

/// Whether nobody has begun the chore within the hour; notes that it is begun now.
async fn is_due(pool: &PgPool, chore: &str) -> sqlx::Result<bool> {
    let begun = sqlx::query!(
        "insert into chores (name) values ($1)
         on conflict (name) do update set begun_at = now() where chores.begun_at < now() - interval '1 hour'",
        chore,
    )
    .execute(pool)
    .await?;
    Ok(begun.rows_affected() == 1)
}

/// Deletes objects whose time has come, with what was uploaded of them and never completed. One that a row
/// names after all is only taken off the list. Returns how many were deleted.
pub async fn delete_doomed(pool: &PgPool, storage: &Storage) -> anyhow::Result<usize> {
    let mut deleted = 0;
    loop {
        // The rows stay locked while their objects go: nobody can record what is being deleted. Whoever tries
        // waits with a connection in hand, so that this one must do.
        let mut tx = db::begin(pool).await?;
        let doomed = storage::lock_doomed(&mut tx, BATCH).await?;
        if doomed.is_empty() {
            return Ok(deleted);
        }
        let named = storage::named(&mut tx, &doomed).await?;
        let (mut settled, unwanted): (Vec<_>, Vec<_>) =
            doomed.into_iter().partition(|key| named.contains(key));
        let uploads = storage::unfinished(&mut tx, &unwanted).await?;
        let deletions = unwanted.into_iter().map(|key| {
            let uploads = uploads.iter().filter(|upload| upload.object_key == key).cloned();
            delete(storage.clone(), key.clone(), uploads.collect())
        });
        let ends: Vec<_> =
            futures::stream::iter(deletions).buffer_unordered(AT_ONCE).collect().await;
        let (mut aborted, mut failure) = (Vec::new(), None);
        for end in ends {
            match end {
                Ok((key, uploads)) => {
                    deleted += 1;
                    settled.push(key);
                    aborted.extend(uploads);
                }
                Err(error) => failure = Some(error),
            }
        }
        storage::forget_uploads(&mut tx, &aborted).await?;
        storage::forget_doomed(&mut tx, &settled).await?;
        tx.commit().await?;
        if let Some(error) = failure {
            return Err(error).context("deleting objects");
        }
    }
}

async fn delete(
    storage: Storage,
    key: String,
    uploads: Vec<Unfinished>,
) -> Result<(String, Vec<Unfinished>), StorageError> {
    for upload in &uploads {
        storage.abort(upload).await?;
    }
    storage.delete(&key).await?;
    Ok((key, uploads))
}

/// Looks through the whole bucket for objects of ours that no row names and that are older than `age`, and
/// dooms them. Returns how many.
pub async fn delete_orphans(
    pool: &PgPool,
    storage: &Storage,
    age: Duration,
) -> anyhow::Result<usize> {
    let mut found = 0;
    for folder in storage::FOLDERS {
        let mut from = None;
        loop {
            let page = storage.page(folder, from, 1000).await?;
            found += doom_orphans(pool, &page, age).await?;
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

/// Dooms the orphans among the objects of one page, however long ago it was read. Returns how many.
pub async fn doom_orphans(pool: &PgPool, page: &Page, age: Duration) -> anyhow::Result<usize> {
    let newest = sqlx::query_scalar!(
        r#"select now() - make_interval(secs => $1) as "time!""#,
        age.as_secs_f64(),
    )
    .fetch_one(pool)
    .await?;
    let old = page.objects.iter().filter(|object| object.written_at <= newest);
    let keys: Vec<String> = old.map(|object| object.key.clone()).collect();
    let orphans = storage::orphans(pool, &keys).await?;
    storage::doom(&mut *pool.acquire().await?, &orphans).await?;
    Ok(orphans.len())
}
