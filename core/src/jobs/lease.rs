//! Taking a job, keeping it, giving it back, and finding those whose worker vanished.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

use super::end::{end_without_result, lock_payer};
use super::{Failure, JobState, MAX_ATTEMPTS};
use crate::{ImageId, JobId, UserId, WorkerId, db, storage};
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};

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

/// How many jobs of a class one claim looks at: more than can be in the middle of being taken by others.
const LOOK_AT: i64 = 64;

/// Takes the next fair job of `classes`: paid before free; within a class by turn (fair queueing, see
/// `migrations/0014_turns.sql`), and of the classes of a tier whichever has waited longest. Of Magic Fixes only
/// those of `modes`: what this worker has no model for is left to one that has.
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
    let ((tools, tiers), modes) = (columns(classes), names(modes));
    let row = sqlx::query!(
        // The first of each class come out of an index in their order, and are merged: a class stands where the
        // longest wait among those that it has had so far puts it. Only the one that is taken is locked.
        r#"with class as (
               select tool, tier, array_position(array['paid', 'free', 'visitor'], tier) as rank
               from unnest($2::text[], $3::text[]) as class (tool, tier)
           ), first as (
               select job.id, class.rank, row_number() over in_turn as nth,
                      max(job.created_at) over in_turn as since
               from class cross join lateral (
                   select id, turn, created_at from jobs
                   where state = 'queued' and tier = class.tier and tool = class.tool and run_after <= now()
                     and attempt < $6 and (losses > 0) = $4 and (mode is null or mode = any($7))
                   order by turn, created_at, id limit $8
               ) job
               window in_turn as (partition by class.tool, class.tier order by job.turn, job.created_at, job.id)
               order by rank, since, nth
           ), next as (
               select j.id from first join jobs j on j.id = first.id
               where j.state = 'queued' and ($4 or not exists (
                   select from jobs s join class on s.tier = class.tier and s.tool = class.tool
                   where s.state = 'queued' and s.losses > 0 and s.run_after <= now() and s.attempt < $6
                     and (s.mode is null or s.mode = any($7))
               ))
               order by first.rank, first.since, first.nth
               limit 1 for update of j skip locked
           )
           update jobs set state = 'running', attempt = attempt + 1, lease_owner = $1,
                           lease_until = now() + $5, started_at = coalesce(started_at, now())
           from next, images i
           where jobs.id = next.id and i.id = jobs.image_id
           returning jobs.id as "id: JobId", jobs.owner_id as "owner: UserId", i.id as "image: ImageId",
                     i.object_key, i.width, i.height, tool as "tool: ToolName", factor, mode as "mode: FixMode", prompt,
                     tier as "tier: Tier", attempt, traceparent,
                     extract(epoch from now() - jobs.created_at)::float8 as "waited_secs!""#,
        worker.uuid(),
        &tools,
        &tiers,
        turn == Turn::Alone,
        interval(lease),
        MAX_ATTEMPTS,
        &modes,
        LOOK_AT,
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
    let ((tools, tiers), modes) = (columns(classes), names(modes));
    sqlx::query_scalar!(
        r#"select exists (
               select from jobs s join unnest($1::text[], $2::text[]) as class (tool, tier)
                 on s.tier = class.tier and s.tool = class.tool
               where s.state = 'queued' and s.losses > 0 and s.run_after <= now() and s.attempt < $4
                 and (s.mode is null or s.mode = any($3))
           ) as "waiting!""#,
        &tools,
        &tiers,
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

/// The classes as two columns, tools and tiers.
fn columns(classes: &[JobClass]) -> (Vec<String>, Vec<String>) {
    let column =
        |class: &JobClass| (class.tool.as_str().to_owned(), class.tier.as_str().to_owned());
    classes.iter().map(column).unzip()
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
