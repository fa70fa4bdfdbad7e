//! Leases: renewing them, handing a job back, and sweeping up jobs whose lease expired.
//!
//! A claim ([`super::claim`]) starts a lease. The worker renews it while the job runs. If it expires, the
//! sweeper requeues the job, and the worker that held it can no longer finish it.

use std::time::Duration;

use sqlx::PgPool;

use super::end::{end_without_result, lock_payer};
use super::retry::MAX_ATTEMPTS;
use super::{Failure, JobState};
use crate::{JobId, WorkerId, db, storage};

/// Renews the leases that `worker` still holds on `jobs` and returns those jobs. The others were canceled or
/// claimed by another worker and must be stopped.
pub async fn renew(
    pool: &PgPool,
    worker: WorkerId,
    jobs: &[JobId],
    lease: Duration,
) -> sqlx::Result<Vec<JobId>> {
    let jobs: Vec<_> = jobs.iter().map(|id| id.uuid()).collect();
    sqlx::query_scalar!(
        r#"update jobs set lease_until = now() + $3
           where id = any($2) and lease_owner = $1 and state = 'running'
           returning id as "id: JobId""#,
        worker.uuid(),
        &jobs,
        db::interval(lease),
    )
    .fetch_all(pool)
    .await
}

/// Requeues an unfinished job without counting the attempt, for a worker that is shutting down. Returns false
/// if `worker` no longer held the lease.
pub async fn hand_back(pool: &PgPool, worker: WorkerId, job: JobId) -> sqlx::Result<bool> {
    let handed = sqlx::query!(
        "update jobs set state = 'queued', attempt = attempt - 1, lease_owner = null, lease_until = null
         where id = $2 and lease_owner = $1 and state = 'running'",
        worker.uuid(),
        job.uuid(),
    )
    .execute(pool)
    .await?;
    Ok(handed.rows_affected() == 1)
}

/// The jobs whose lease had expired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Requeued for another attempt; they are suspects now.
    pub requeued: Vec<JobId>,
    /// Failed, because that was the last attempt.
    pub failed: Vec<JobId>,
}

/// Requeues jobs whose lease expired, or fails them after the last attempt.
pub async fn sweep(pool: &PgPool) -> sqlx::Result<Sweep> {
    let requeued = sqlx::query!(
        r#"update jobs set state = 'queued', losses = losses + 1, lease_owner = null, lease_until = null
           where state = 'running' and lease_until < now() and attempt < $1
           returning id as "id: JobId", attempt"#,
        MAX_ATTEMPTS,
    )
    .fetch_all(pool)
    .await?;
    for lost in &requeued {
        // The worker may have died after writing the objects and before recording them.
        storage::doom_attempt(pool, lost.id, lost.attempt).await?;
    }
    let requeued = requeued.into_iter().map(|lost| lost.id).collect();
    let hopeless = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where state = 'running' and lease_until < now() and attempt >= $1"#,
        MAX_ATTEMPTS,
    )
    .fetch_all(pool)
    .await?;
    let mut failed = Vec::new();
    for job in hopeless {
        let mut tx = db::begin(pool).await?;
        lock_payer(&mut tx, job).await?;
        // Since the query above, another sweeper may have ended the job, or its worker may have renewed the lease.
        let still = sqlx::query!(
            "select id from jobs
             where id = $1 and state = 'running' and lease_until < now() and attempt >= $2 for update",
            job.uuid(),
            MAX_ATTEMPTS,
        )
        .fetch_optional(&mut *tx)
        .await?;
        if still.is_some() {
            end_without_result(&mut tx, job, JobState::Failed, Some(&Failure::crashed())).await?;
            tx.commit().await?;
            storage::doom_attempt(pool, job, MAX_ATTEMPTS).await?;
            failed.push(job);
        }
    }
    Ok(Sweep { requeued, failed })
}
