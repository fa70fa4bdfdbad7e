//! Claiming the next job: fair queueing, and suspects that run alone.
//!
//! # Fair queueing
//!
//! Self-clocked fair queueing (S. J. Golestani, INFOCOM 1994), with every job counted as one unit. Submission
//! gives a job its `turn`: one more than the turn being served in its class (a tool and a tier), or one more
//! than its owner's highest active turn, whichever is greater. Within a class the lowest turn goes first, and
//! the oldest job among equals. A newcomer therefore waits for about one job of each other user, newcomers
//! cannot starve a long list, and a claim costs one index lookup per class however many jobs wait.
//!
//! Higher tiers go first. Among classes of one tier, the job that has waited longest goes first.
//!
//! # Suspects
//!
//! A *suspect* is a job whose worker vanished while it ran (`losses > 0`). Its picture may kill the process
//! that opens it, so it runs alone: otherwise it would use up the attempts of its neighbors.

use std::time::Duration;

use sqlx::PgPool;

use super::retry::MAX_ATTEMPTS;
use super::tool_from_columns;
use crate::{ImageId, JobId, UserId, WorkerId, db};
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};

/// Which jobs a worker can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Jobs that may run beside others. A claim finds none while a suspect of these classes waits: suspects
    /// go first.
    Shared,
    /// Suspects only; the worker runs nothing else meanwhile.
    Alone,
}

/// A job that a worker has claimed.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Its id.
    pub id: JobId,
    /// The paying user; `None` for visitors.
    pub owner: Option<UserId>,
    /// The uploaded image.
    pub image: ImageId,
    /// The image's S3 key.
    pub object_key: String,
    /// The image's width in pixels.
    pub width: i32,
    /// The image's height in pixels.
    pub height: i32,
    /// The tool and its parameters.
    pub tool: Tool,
    /// The prompt of a Magic Fix; [`super::mask`] returns its mask.
    pub prompt: Option<String>,
    /// The tier.
    pub tier: Tier,
    /// The number of this attempt, from 1.
    pub attempt: i32,
    /// Seconds since submission.
    pub waited_secs: f64,
    /// The trace of the request that submitted it; see [`crate::telemetry::continue_trace`].
    pub traceparent: Option<String>,
}

/// How many jobs of a class one claim considers: more than other claims can be taking at the same moment.
const CANDIDATES: i64 = 64;

/// Claims the next job of `classes` in fair order and leases it to `worker` for `lease`.
///
/// Takes only Magic Fixes of `modes`, the modes this worker has a model for. Counts the attempt before
/// anything touches the picture. Returns `None` if no job is available.
pub async fn claim(
    pool: &PgPool,
    worker: WorkerId,
    classes: &[JobClass],
    modes: &[FixMode],
    isolation: Isolation,
    lease: Duration,
) -> sqlx::Result<Option<Claimed>> {
    let ((tools, tiers), modes) = (columns(classes), names(modes));
    let row = sqlx::query!(
        // Reads the first jobs of each class from an index, in order, and merges the classes: the position of a
        // job is the longest wait among the jobs of its class up to it. Locks only the job it takes.
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
        isolation == Isolation::Alone,
        db::interval(lease),
        MAX_ATTEMPTS,
        &modes,
        CANDIDATES,
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let tool = tool_from_columns(row.id, row.tool, row.factor, row.mode)?;
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

/// Returns true if a suspect of `classes` is ready to run; of Magic Fixes only those of `modes` count.
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

/// Returns the number of jobs ready to run in each class. The sweeper rings for those without a doorbell.
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

/// Splits classes into two columns, tools and tiers.
fn columns(classes: &[JobClass]) -> (Vec<String>, Vec<String>) {
    let column =
        |class: &JobClass| (class.tool.as_str().to_owned(), class.tier.as_str().to_owned());
    classes.iter().map(column).unzip()
}

fn names<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(T::to_string).collect()
}
