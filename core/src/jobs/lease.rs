//! Leases: renewing them, handing a job back, and sweeping up jobs whose lease expired.
//!
//! A claim ([`super::claim`]) starts a lease. The worker renews it while the job runs. If it expires, the
//! sweeper requeues the job, and the worker that held it can no longer finish it. Until then the worker may still
//! renew the lease or finish the job, however late.

use std::time::Duration;

use sqlx::PgPool;

use super::claim::MAX_ATTEMPTS;
use super::end::{end_without_result, lock_payer};
use super::reachability::LONGEST_GAP;
use super::retry::MAX_OUTAGES;
use super::{Failure, JobState};
use crate::{Attempt, JobId, WorkerId, db, storage};

/// Renews the leases that `worker` still holds on `jobs` and returns those jobs. The others were canceled or
/// claimed by another worker and must be stopped.
///
/// A job whose row is locked keeps its lease unchanged: a cancellation that hangs must not cost the worker its other
/// leases. The sweeper skips locked rows, too.
pub async fn renew(
    pool: &PgPool,
    worker: WorkerId,
    jobs: &[JobId],
    lease: Duration,
) -> sqlx::Result<Vec<JobId>> {
    let jobs: Vec<_> = jobs.iter().map(|id| id.uuid()).collect();
    sqlx::query_scalar!(
        r#"with held as (
               select id from jobs where id = any($2) and lease_owner = $1 and state = 'running'
           ), free as (
               select id from jobs where id in (select id from held) for update skip locked
           ), renewed as (
               update jobs set lease_until = now() + $3 from free where jobs.id = free.id
           )
           select id as "id!: JobId" from held"#,
        worker.uuid(),
        &jobs,
        db::interval(lease),
    )
    .fetch_all(pool)
    .await
}

/// Requeues an unfinished job without counting the attempt, for a worker that is shutting down. Returns false
/// if the attempt no longer held the lease.
pub async fn hand_back(
    pool: &PgPool,
    Attempt { job, worker, number }: Attempt,
) -> sqlx::Result<bool> {
    let handed = sqlx::query!(
        // The number of the attempt is used up: it is part of the keys of the objects that the attempt wrote.
        "update jobs set state = 'queued', interruptions = interruptions + 1, lease_owner = null, lease_until = null
         where id = $1 and lease_owner = $2 and state = 'running' and attempt = $3",
        job.uuid(),
        worker.uuid(),
        number,
    )
    .execute(pool)
    .await?;
    Ok(handed.rows_affected() == 1)
}

/// Requeues jobs whose lease `worker` holds without running them: the answer to its claim was lost, or the database was
/// unavailable when the attempt ended. These are the jobs that were claimed or renewed more than `age` ago, which must be
/// longer than a claim may take, and for which `is_held`, called after they were read, returns false. Like an outage, this
/// uses up no attempt and makes no job a suspect, because the worker lives.
///
/// A job whose row is locked waits for the next call: a cancellation that hangs must not hold up the worker's renewals.
pub async fn release_unknown(
    pool: &PgPool,
    worker: WorkerId,
    is_held: impl Fn(JobId) -> bool,
    lease: Duration,
    age: Duration,
) -> sqlx::Result<Vec<JobId>> {
    let remaining = db::interval(lease.saturating_sub(age));
    let found = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where lease_owner = $1 and state = 'running' and lease_until < now() + $2::interval"#,
        worker.uuid(),
        remaining,
    )
    .fetch_all(pool)
    .await?;
    // By now the worker holds each job whose claim was answered in time, however long this query took.
    let unknown: Vec<_> = found.into_iter().filter(|job| !is_held(*job)).map(JobId::uuid).collect();
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    let released = sqlx::query!(
        r#"with unknown as (
               select id from jobs
               where lease_owner = $1 and state = 'running' and id = any($2) and lease_until < now() + $3::interval
                 and outages < $4
               for update skip locked
           )
           update jobs set state = 'queued', lease_owner = null, lease_until = null, run_after = now(),
                           interruptions = interruptions + 1, outages = outages + 1
           from unknown
           where jobs.id = unknown.id
           returning jobs.id as "id: JobId", attempt"#,
        worker.uuid(),
        &unknown,
        remaining,
        MAX_OUTAGES,
    )
    .fetch_all(pool)
    .await?;
    for job in &released {
        // If the attempt ran, it has written objects.
        storage::doom_attempt(pool, job.id, job.attempt).await?;
    }
    Ok(released.into_iter().map(|job| job.id).collect())
}

/// The jobs whose lease had expired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Requeued for another attempt; they are suspects now.
    pub requeued: Vec<JobId>,
    /// Requeued for another attempt after an outage; they are not suspects, and the attempt does not count.
    pub interrupted: Vec<JobId>,
    /// Failed, because that was the last attempt.
    pub failed: Vec<JobId>,
}

impl Sweep {
    /// Logs and counts them. The first sweep that finds none makes the counters appear at 0, so that later jobs show as an
    /// increase.
    pub fn report(&self) {
        for job in &self.requeued {
            tracing::warn!(job.id = %job, "Job {job} lost its worker and was requeued");
        }
        for job in &self.interrupted {
            tracing::warn!(job.id = %job, "An outage interrupted job {job}; requeued it");
        }
        for job in &self.failed {
            tracing::error!(job.id = %job, "Job {job} lost its worker for the third time and failed");
        }
        metrics::counter!("retouch_jobs_lost_total").increment(self.requeued.len() as u64);
        metrics::counter!("retouch_jobs_interrupted_total")
            .increment(self.interrupted.len() as u64);
        metrics::counter!("retouch_jobs_dead_total").increment(self.failed.len() as u64);
    }

    /// Returns all of them.
    pub fn all(&self) -> impl Iterator<Item = JobId> {
        [&self.requeued, &self.interrupted, &self.failed].into_iter().flatten().copied()
    }
}

/// Requeues jobs whose lease expired, or fails them after the last attempt. `lease` is the length of a lease.
///
/// Does nothing during an outage and for one `lease` after it, so that workers can renew first. A job whose lease ran
/// during an outage did not necessarily lose its worker, so it does not become a suspect.
pub async fn sweep(pool: &PgPool, lease: Duration) -> sqlx::Result<Sweep> {
    let expired = sqlx::query!(
        r#"with reachable as (
               select since from reachability where seen_at > now() - $1::interval and since <= now() - $2::interval
           ), expired as (
               select jobs.id, since > lease_until - $2::interval and outages < $4 as in_outage
               from jobs, reachable where state = 'running' and lease_until < now()
               for update of jobs skip locked
           )
           update jobs set state = 'queued', lease_owner = null, lease_until = null, run_after = now(),
                           losses = losses + (not in_outage)::integer,
                           interruptions = interruptions + in_outage::integer,
                           outages = outages + in_outage::integer
           from expired
           where jobs.id = expired.id and (in_outage or attempt - interruptions < $3)
           returning jobs.id as "id: JobId", attempt, in_outage as "in_outage!""#,
        db::interval(LONGEST_GAP),
        db::interval(lease),
        MAX_ATTEMPTS,
        MAX_OUTAGES,
    )
    .fetch_all(pool)
    .await?;
    let mut swept = Sweep::default();
    for job in expired {
        // The worker may have died after writing the objects and before recording them.
        storage::doom_attempt(pool, job.id, job.attempt).await?;
        let list = if job.in_outage { &mut swept.interrupted } else { &mut swept.requeued };
        list.push(job.id);
    }
    let hopeless = sqlx::query!(
        r#"select jobs.id as "id: JobId", attempt from jobs, reachability
           where state = 'running' and lease_until < now() and attempt - interruptions >= $3
             and seen_at > now() - $1::interval and since <= now() - $2::interval
             and (since <= lease_until - $2::interval or outages >= $4)"#,
        db::interval(LONGEST_GAP),
        db::interval(lease),
        MAX_ATTEMPTS,
        MAX_OUTAGES,
    )
    .fetch_all(pool)
    .await?;
    for job in hopeless {
        match fail_lost(pool, job.id, job.attempt).await {
            Ok(true) => swept.failed.push(job.id),
            Ok(false) => {}
            // The next sweep tries again; the others must not wait for that.
            Err(error) => {
                tracing::warn!(job.id = %job.id, "Cannot end lost job {}: {error}", job.id);
            }
        }
    }
    Ok(swept)
}

/// Fails a job whose last attempt lost its worker. Returns false if another sweeper has ended the job, or its worker has
/// renewed the lease.
async fn fail_lost(pool: &PgPool, job: JobId, attempt: i32) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    // The payer's row may stay locked for longer than a sweep may take.
    sqlx::query!("set local lock_timeout = '500ms'").execute(&mut *tx).await?;
    lock_payer(&mut tx, job).await?;
    let still = sqlx::query!(
        "select id from jobs
         where id = $1 and state = 'running' and lease_until < now() and attempt = $2 for update",
        job.uuid(),
        attempt,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if still.is_none() {
        return Ok(false);
    }
    end_without_result(&mut tx, &[job], JobState::Failed, Some(&Failure::crashed())).await?;
    tx.commit().await?;
    storage::doom_attempt(pool, job, attempt).await?;
    Ok(true)
}
