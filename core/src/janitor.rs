//! The janitor: deletes what is no longer needed. Each task is safe to repeat and to interrupt.
//!
//! | what it deletes | when |
//! |---|---|
//! | images of visitors and programs, an hour after the upload and the last result | every round (10 s), in every worker |
//! | workers that have not reported for an hour | every round |
//! | data left over from deleted accounts | every round |
//! | prompts of jobs whose image or result was deleted | every round |
//! | doomed objects, and unfinished uploads to their keys | every round |
//! | objects that no row refers to, 24 hours after they were found | hourly, in one worker |
//! | unfinished uploads, after 24 hours | hourly, in one worker |
//! | unpaid orders, which expire | hourly, in one worker |
//! | jobs that left nothing behind, after 90 days; idempotency keys, after 7 days | hourly, in one worker |
//! | masks of failed jobs, after 7 days | hourly, in one worker |
//! | deliveries to webhooks, after 14 days or 1,000 newer ones | hourly, in one worker |
//! | identity hashes of deleted accounts, after 12 months | hourly, in one worker |
//! | the text of payment messages that belong to no order, after 30 days | hourly, in one worker |
//!
//! Other messages of the payment provider are kept. No object is deleted from a bucket that does not belong to this database.

use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::chores::{HOURLY, ORPHANS};
use crate::storage::{self, Page, Storage, StorageError, UnfinishedUpload};
use crate::{accounts, db, images, jobs, orders, webhooks, with_causes, workers};

/// The interval between rounds.
const ROUND: Duration = Duration::from_secs(10);
/// How often to check whether the hourly tasks are due.
const HOURLY_CHECK: Duration = Duration::from_mins(5);
/// How often one of the processes runs the hourly tasks, and looks for orphans.
const HOURLY_INTERVAL: Duration = Duration::from_hours(1);
/// Maximum time for a task of a round before it is interrupted, so that neither a silent connection nor a long task
/// holds up the others. The next round continues.
const TASK_LIMIT: Duration = Duration::from_mins(2);
/// Maximum time for all hourly tasks together.
const HOURLY_LIMIT: Duration = Duration::from_hours(3);
/// Maximum time for the search for orphans: listing 100 million objects takes hours.
const ORPHANS_LIMIT: Duration = Duration::from_hours(20);
/// Objects deleted per transaction.
const BATCH: i64 = 32;
/// Objects deleted concurrently.
const CONCURRENCY: usize = 8;
/// Maximum wait of a transaction for the store: shorter than the server's timeout for idle transactions.
const BATCH_LIMIT: Duration = Duration::from_secs(30);
/// How long an orphan is kept after it was found. The missing row would be sufficient evidence; but if the database was set
/// back to an earlier moment, its operator may want to set it to a later one.
pub const ORPHAN_GRACE: Duration = Duration::from_hours(24);
/// The age at which an unfinished upload is aborted.
const UPLOAD_HOURS: i32 = 24;
/// How long jobs that left nothing behind are kept.
pub const JOB_DAYS: i32 = 90;
/// How long the text of a payment message that belongs to no order is kept.
const MESSAGE_DAYS: i32 = 30;
/// How long an operator can retry a failed Magic Fix.
pub const MASK_DAYS: i32 = 7;
/// How long a repeated request is recognized.
pub const KEY_DAYS: i32 = 7;

/// Cleans up until `stop`.
pub async fn run(pool: PgPool, storage: Storage, stop: CancellationToken) {
    // Run concurrently, because listing a large bucket takes long.
    let all = async {
        tokio::join!(
            run_rounds(&pool, &storage),
            run_hourly(&pool, &storage),
            run_orphans(&pool, &storage)
        )
    };
    stop.run_until_cancelled(all).await;
}

async fn run_rounds(pool: &PgPool, storage: &Storage) {
    let mut interval = tokio::time::interval(ROUND);
    loop {
        interval.tick().await;
        if let Err(error) = round(pool, storage).await {
            tracing::warn!("{error}; retrying in the next round");
        }
    }
}

async fn run_hourly(pool: &PgPool, storage: &Storage) {
    let mut interval = tokio::time::interval(HOURLY_CHECK);
    loop {
        interval.tick().await;
        if let Err(error) = interrupted_after(HOURLY_LIMIT, hourly(pool, storage)).await {
            tracing::warn!(
                "The hourly cleanup failed; retrying in the next hour: {}",
                with_causes(error.as_ref())
            );
        }
    }
}

async fn run_orphans(pool: &PgPool, storage: &Storage) {
    let mut interval = tokio::time::interval(HOURLY_CHECK);
    loop {
        interval.tick().await;
        match interrupted_after(ORPHANS_LIMIT, orphans(pool, storage)).await {
            Ok(None | Some(0)) => {}
            Ok(Some(count)) => {
                tracing::info!(count, "Found {count} orphans, which are deleted in a day");
            }
            Err(error) => {
                tracing::warn!(
                    "Could not look for orphans; retrying in the next hour: {}",
                    with_causes(error.as_ref())
                );
            }
        }
    }
}

async fn interrupted_after<T, E: Into<anyhow::Error>>(
    limit: Duration,
    tasks: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    let done = tokio::time::timeout(limit, tasks).await;
    done.with_context(|| format!("interrupted after {limit:?}"))?.map_err(Into::into)
}

/// Runs the tasks of one round. The error names those that failed.
pub async fn round(pool: &PgPool, storage: &Storage) -> anyhow::Result<()> {
    // A failed task must not prevent the others.
    let limit = TASK_LIMIT;
    let outcomes = [
        ("expired images", interrupted_after(limit, images::delete_expired(pool)).await.map(drop)),
        ("silent workers", interrupted_after(limit, workers::delete_silent(pool)).await.map(drop)),
        ("deleted accounts", interrupted_after(limit, accounts::erase_deleted(pool)).await),
        ("prompts", interrupted_after(limit, jobs::delete_prompts(pool)).await.map(drop)),
        ("doomed objects", interrupted_after(limit, delete_our_doomed(pool, storage)).await),
    ];
    let failures: Vec<_> = outcomes
        .into_iter()
        .filter_map(|(what, outcome)| {
            Some(format!("{what} ({})", with_causes(outcome.err()?.as_ref())))
        })
        .collect();
    anyhow::ensure!(failures.is_empty(), "Could not clean up {}", failures.join(", "));
    Ok(())
}

/// Runs the hourly tasks. Returns false if they were not due or another process is running them.
pub async fn hourly(pool: &PgPool, storage: &Storage) -> anyhow::Result<bool> {
    let round = HOURLY.alone(pool, async {
        if !HOURLY.is_due(pool, HOURLY_INTERVAL).await? {
            return anyhow::Ok(false);
        }
        // A failed task must not prevent the others.
        let outcomes = [
            ("uploads", storage::abort_stale(storage, pool, UPLOAD_HOURS).await),
            ("orders", counted(orders::expire_abandoned(pool).await)),
            ("masks", counted(jobs::delete_old_masks(pool, MASK_DAYS).await)),
            ("jobs", counted(jobs::delete_old(pool, JOB_DAYS).await)),
            ("idempotency keys", counted(jobs::clear_old_keys(pool, KEY_DAYS).await)),
            ("deliveries", counted(webhooks::delete_old(pool).await)),
            ("payment messages", counted(orders::forget_texts(pool, MESSAGE_DAYS).await)),
            ("former users", counted(accounts::forget_former_users(pool).await)),
        ];
        for (what, outcome) in outcomes {
            match outcome {
                Ok(0) => {}
                Ok(count) => tracing::info!(what, count, "Cleaned up {count} {what}"),
                Err(error) => {
                    let reason = with_causes(error.as_ref());
                    tracing::warn!(what, "Could not clean up {what}: {reason}");
                }
            }
        }
        Ok(true)
    });
    Ok(round.await?.unwrap_or(false))
}

/// Looks for orphans, unless that is not due or another process is doing it; then returns `None`.
pub async fn orphans(pool: &PgPool, storage: &Storage) -> anyhow::Result<Option<usize>> {
    let search = ORPHANS.alone(pool, async {
        if !ORPHANS.is_due(pool, HOURLY_INTERVAL).await? {
            return anyhow::Ok(None);
        }
        storage::check_owner(pool, storage).await?;
        delete_orphans(pool, storage, ORPHAN_GRACE).await.map(Some)
    });
    Ok(search.await?.flatten())
}

fn counted(rows: sqlx::Result<u64>) -> anyhow::Result<usize> {
    Ok(usize::try_from(rows?)?)
}

async fn delete_our_doomed(pool: &PgPool, storage: &Storage) -> anyhow::Result<()> {
    storage::check_owner(pool, storage).await?;
    delete_doomed(pool, storage).await.map(drop)
}

/// Deletes doomed objects and aborts unfinished uploads to their keys. Takes a key off the list without deleting its
/// object if a row refers to it. Returns the number of deleted objects.
///
/// # Errors
/// If the store did not delete some objects: the last reason. [`storage::postpone_doomed`] postpones these objects,
/// so that they do not hold up the others.
pub async fn delete_doomed(pool: &PgPool, storage: &Storage) -> anyhow::Result<usize> {
    let (mut deleted, mut failure) = (0, None);
    loop {
        // The rows stay locked during the deletion, so nobody can record an object that is being deleted. A process
        // that tries waits with a pooled connection; using only this one connection prevents a deadlock.
        let mut tx = db::begin(pool).await?;
        let doomed = storage::lock_doomed(&mut tx, BATCH).await?;
        if doomed.is_empty() {
            break;
        }
        let referenced = storage::referenced(&mut tx, &doomed).await?;
        let (mut settled, unwanted): (Vec<_>, Vec<_>) =
            doomed.into_iter().partition(|key| referenced.contains(key));
        let uploads = storage::unfinished_uploads(&mut tx, &unwanted).await?;
        let deadline = Instant::now() + BATCH_LIMIT;
        let deletions = unwanted.into_iter().map(|key| {
            let uploads = uploads.iter().filter(|upload| upload.object_key == key).cloned();
            let deletion = delete(storage.clone(), key.clone(), uploads.collect());
            async move { (key, tokio::time::timeout_at(deadline, deletion).await) }
        });
        let outcomes: Vec<_> =
            futures::stream::iter(deletions).buffer_unordered(CONCURRENCY).collect().await;
        let (mut aborted, mut postponed) = (Vec::new(), Vec::new());
        for (key, outcome) in outcomes {
            match outcome.context("the store is too slow").and_then(|deleted| Ok(deleted?)) {
                Ok(uploads) => {
                    deleted += 1;
                    settled.push(key);
                    aborted.extend(uploads);
                }
                Err(error) => {
                    failure = Some(error);
                    postponed.push(key);
                }
            }
        }
        storage::forget_uploads(&mut tx, &aborted).await?;
        storage::forget_doomed(&mut tx, &settled).await?;
        storage::postpone_doomed(&mut tx, &postponed).await?;
        tx.commit().await?;
        // The store is unavailable; the next batch would only wait for it.
        if settled.is_empty() {
            break;
        }
    }
    match failure {
        Some(error) => Err(error).context("deleting objects"),
        None => Ok(deleted),
    }
}

/// Deletes an object and aborts the unfinished uploads to its key, which it returns.
async fn delete(
    storage: Storage,
    key: String,
    uploads: Vec<UnfinishedUpload>,
) -> Result<Vec<UnfinishedUpload>, StorageError> {
    for upload in &uploads {
        storage.abort(upload).await?;
    }
    storage.delete(&key).await?;
    Ok(uploads)
}

/// Lists the whole bucket and dooms our objects that no row refers to, to be deleted after `grace`. Returns their number.
pub async fn delete_orphans(
    pool: &PgPool,
    storage: &Storage,
    grace: Duration,
) -> anyhow::Result<usize> {
    let mut found = 0;
    for folder in storage::FOLDERS {
        let mut from = None;
        loop {
            let page = storage.page(folder, from, 1000).await?;
            found += doom_orphans(pool, &page, grace).await?;
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

/// Dooms the orphans of one page, however long ago it was listed. Returns their number.
pub async fn doom_orphans(pool: &PgPool, page: &Page, grace: Duration) -> sqlx::Result<usize> {
    let keys: Vec<String> = page.objects.iter().map(|object| object.key.clone()).collect();
    let orphans = storage::orphans(pool, &keys).await?;
    storage::doom_in(&mut *pool.acquire().await?, &orphans, grace).await?;
    Ok(orphans.len())
}
