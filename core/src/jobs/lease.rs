//! Taking a job, keeping it, giving it back, and finding those whose worker vanished.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

use super::end::{end_without_result, lock_payer};
use super::{Failure, JobState, MAX_ATTEMPTS};
use crate::magic_fix::FixMode;
use crate::tool::{JobClass, Tier, Tool, ToolName};
use crate::{ImageId, JobId, UserId, WorkerId, db, storage};

/// Which jobs a worker asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Jobs that have never lost a worker; they may run beside others. There is none for whoever could take
    /// one that must run alone: that one comes first.
    Beside,
    /// Jobs that have: the caller runs nothing else meanwhile, so that a picture that kills its process
    /// cannot use up the attempts of its neighbours.
    Alone,
}

/// A job in the hands of a worker.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The job.
    pub id: JobId,
    /// Who pays; nobody for a visitor's.
    pub owner: Option<UserId>,
    /// The picture.
    pub image: ImageId,
    /// Where the picture is in S3.
    pub object_key: String,
    /// The picture's size, in pixels.
    pub width: i32,
    /// The picture's size, in pixels.
    pub height: i32,
    /// What is to be done.
    pub tool: Tool,
    /// The words of a Magic Fix; its mask is at [`super::mask`].
    pub prompt: Option<String>,
    /// For whom.
    pub tier: Tier,
    /// Which start this is, from 1.
    pub attempt: i32,
    /// How long it waited, in seconds.
    pub waited_secs: f64,
    /// The trace of the request that it was submitted by; see [`crate::telemetry::continue_trace`].
    pub traceparent: Option<String>,
}

/// Takes the next fair job of `classes`: paid before free, whoever has least running first, then by age. Of
/// Magic Fixes only those of `modes`: what this worker has no model for is left to one that has.
///
/// The attempt is counted here, before anything touches the picture. `None` when nothing waits.
pub async fn claim(
    pool: &PgPool,
    worker: WorkerId,
    classes: &[JobClass],
    modes: &[FixMode],
    turn: Turn,
    lease: Duration,
) -> sqlx::Result<Option<Claimed>> {
    let (classes, modes) = (names(classes), names(modes));
    let row = sqlx::query!(
        r#"with busy as (
               select owner_id, count(*) as running from jobs where state = 'running' group by owner_id
           ), next as (
               select j.id from jobs j left join busy b on b.owner_id = j.owner_id
               where j.state = 'queued' and j.run_after <= now() and j.attempt < $5
                 and j.tool || ':' || j.tier = any($2) and (j.losses > 0) = $3
                 and (j.mode is null or j.mode = any($6))
                 and ($3 or not exists (
                     select from jobs s where s.state = 'queued' and s.losses > 0 and s.run_after <= now()
                       and s.attempt < $5 and s.tool || ':' || s.tier = any($2)
                       and (s.mode is null or s.mode = any($6))
                 ))
               order by array_position(array['paid', 'free', 'visitor'], j.tier),
                        coalesce(b.running, 0), j.created_at, j.id
               limit 1 for update of j skip locked
           )
           update jobs set state = 'running', attempt = attempt + 1, lease_owner = $1,
                           lease_until = now() + $4, started_at = coalesce(started_at, now())
           from next, images i
           where jobs.id = next.id and i.id = jobs.image_id
           returning jobs.id as "id: JobId", jobs.owner_id as "owner: UserId", i.id as "image: ImageId",
                     i.object_key, i.width, i.height, tool as "tool: ToolName", factor, mode as "mode: FixMode", prompt,
                     tier as "tier: Tier", attempt, traceparent,
                     extract(epoch from now() - jobs.created_at)::float8 as "waited_secs!""#,
        worker.uuid(),
        &classes,
        turn == Turn::Alone,
        interval(lease),
        MAX_ATTEMPTS,
        &modes,
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let tool = Tool::from_columns(row.tool, row.factor, row.mode).ok_or_else(|| {
        sqlx::Error::Decode(format!("job {} is of no tool this version knows", row.id).into())
    })?;
    Ok(Some(Claimed {
        id: row.id,
        owner: row.owner,
        image: row.image,
        object_key: row.object_key,
        width: row.width,
        height: row.height,
        tool,
        prompt: row.prompt,
        tier: row.tier,
        attempt: row.attempt,
        waited_secs: row.waited_secs,
        traceparent: row.traceparent,
    }))
}

/// Whether a job of `classes`, and of `modes` where it is a Magic Fix, waits that must run alone.
pub async fn suspects_waiting(
    pool: &PgPool,
    classes: &[JobClass],
    modes: &[FixMode],
) -> sqlx::Result<bool> {
    let (classes, modes) = (names(classes), names(modes));
    sqlx::query_scalar!(
        r#"select exists (
               select from jobs where state = 'queued' and losses > 0 and run_after <= now() and attempt < $3
                 and tool || ':' || tier = any($1) and (mode is null or mode = any($2))
           ) as "waiting!""#,
        &classes,
        &modes,
        MAX_ATTEMPTS,
    )
    .fetch_one(pool)
    .await
}

/// Extends the leases that `worker` still has on `jobs`; returns those. The others were cancelled or
/// given to another worker: stop them.
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
        interval(lease),
    )
    .fetch_all(pool)
    .await
}

/// Puts an unfinished job back without counting the attempt: for a worker that is told to stop. False
/// when the job was no longer `worker`'s.
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

/// What became of a job whose attempt met a passing fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It waits for another attempt.
    Queued,
    /// That was its last attempt; it has failed.
    Failed,
    /// It was no longer this worker's.
    NotOurs,
}

/// Puts a job back after a passing fault (storage or database out of reach); the attempt counts, and the
/// next one waits a little. After the last attempt the job fails with `failure`.
pub async fn retry(
    pool: &PgPool,
    worker: WorkerId,
    job: JobId,
    failure: &Failure,
) -> sqlx::Result<Retry> {
    let queued = sqlx::query!(
        "update jobs set state = 'queued', lease_owner = null, lease_until = null,
                         run_after = now() + make_interval(secs => 2 ^ attempt)
         where id = $2 and lease_owner = $1 and state = 'running' and attempt < $3",
        worker.uuid(),
        job.uuid(),
        MAX_ATTEMPTS,
    )
    .execute(pool)
    .await?;
    if queued.rows_affected() == 1 {
        return Ok(Retry::Queued);
    }
    let failed = super::fail(pool, worker, job, failure).await?;
    Ok(if failed { Retry::Failed } else { Retry::NotOurs })
}

/// What a sweep found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Jobs that wait again because their worker vanished.
    pub requeued: Vec<JobId>,
    /// Jobs given up because that was the third time.
    pub died: Vec<JobId>,
}

/// Finds jobs whose lease ran out: they wait again, or fail after the third start.
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
        // Its worker may have died between the objects and their row.
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
    let mut died = Vec::new();
    for job in hopeless {
        let mut tx = db::begin(pool).await?;
        lock_payer(&mut tx, job).await?;
        // Another sweeper may have been here, or the worker have come back, since it was found.
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
            died.push(job);
        }
    }
    Ok(Sweep { requeued, died })
}

/// How many jobs wait in each class, so that whoever counts fewer doorbells can ring for the rest.
pub async fn queued_by_class(pool: &PgPool) -> sqlx::Result<Vec<(JobClass, i64)>> {
    let rows = sqlx::query!(
        r#"select tool as "tool: ToolName", tier as "tier: Tier", count(*) as "count!" from jobs
           where state = 'queued' and run_after <= now() group by tool, tier"#,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (JobClass { tier: row.tier, tool: row.tool }, row.count))
        .collect())
}

fn names<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(T::to_string).collect()
}

fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
