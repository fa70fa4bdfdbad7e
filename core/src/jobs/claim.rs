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
//! A *suspect* is a job whose worker vanished or lost its device while running it (`losses > 0`). Its picture may kill the
//! process that opens it, so it runs alone: otherwise it would use up the attempts of its neighbors. It never runs before
//! paid work of others, except that a paid suspect waits for [`PATIENCE`] at most. An unpaid suspect waits for an idle
//! worker, and after [`UNPAID_PATIENCE`] only for paid work. In the whole fleet one worker at a time has the right to run
//! a suspect ([`super::with_suspect_right`]); the others continue to claim jobs.

use std::time::Duration;

use sqlx::PgPool;

use super::tool_from_columns;
use crate::{Attempt, ImageId, JobId, UserId, WorkerId, db};
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};

/// Which jobs a worker can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Jobs that may run beside others. Finds no unpaid job while a paid suspect waits.
    Shared,
    /// Jobs that may run beside others, for a worker that cannot run the waiting suspect.
    Unyielding,
    /// Suspects only; the worker runs nothing else at the same time.
    Alone,
}

/// Maximum number of attempts of a job, not counting interrupted ones.
pub const MAX_ATTEMPTS: i32 = 3;

/// Maximum wait of a paid suspect while other paid jobs are ready.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum wait of an unpaid suspect while other unpaid jobs are ready and no paid ones are.
pub const UNPAID_PATIENCE: Duration = Duration::from_mins(5);

/// The suspects that a worker could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspects {
    /// No suspect, or one that must wait for paid work of others.
    None,
    /// An unpaid suspect, for a worker that happens to be idle.
    WhenIdle,
    /// A paid suspect, or an unpaid one that has waited for long: a worker may let its other jobs finish and then run it.
    Due,
}

/// A job that a worker has claimed.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub id: JobId,
    pub worker: WorkerId,
    /// The paying user; `None` for visitors.
    pub owner: Option<UserId>,
    pub image: ImageId,
    pub object_key: String,
    pub width: i32,
    pub height: i32,
    pub tool: Tool,
    /// The prompt of a Magic Fix; [`super::mask`] returns its mask.
    pub prompt: Option<String>,
    /// Whether a Magic Fix may change no pixel outside its mask.
    pub is_mask_exact: bool,
    pub tier: Tier,
    /// The number of this attempt, from 1.
    pub attempt: i32,
    /// How many attempts before it do not count, because an outage interrupted them or their worker handed the job back.
    pub interruptions: i32,
    /// How many of these attempts were interrupted by outages.
    pub outages: i32,
    /// Seconds since submission.
    pub waited_secs: f64,
    /// The trace of the request that submitted it; see [`crate::telemetry::continue_trace`].
    pub traceparent: Option<String>,
}

impl Claimed {
    /// Returns what identifies this attempt.
    pub const fn as_attempt(&self) -> Attempt {
        Attempt { job: self.id, worker: self.worker, number: self.attempt }
    }
}

/// How many jobs of a class one claim considers: more than other claims can be taking at the same moment.
const CANDIDATES: i64 = 64;

/// Claims the next job of `classes` in fair order and leases it to `worker` for `lease`.
///
/// Takes only Magic Fixes of `modes`, the modes this worker has a model for. Counts the attempt before
/// anything touches the picture. Returns `None` if no job is available. To claim suspects, hold the
/// right to run them ([`super::with_suspect_right`]).
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
                     and attempt - interruptions < $6 and (losses > 0) = $4 and (mode is null or mode = any($7))
                   order by turn, created_at, id limit $8
               ) job
               window in_turn as (partition by class.tool, class.tier order by job.turn, job.created_at, job.id)
               order by rank, since, nth
           ), next as (
               select j.id from first join jobs j on j.id = first.id
               -- The expression keeps the planner from reading the queue: with statistics from before it filled up, that looks cheaper
               -- than finding a few jobs by their ids.
               where j.state || '' = 'queued' and ($4 or $9 or j.tier = 'paid' or not exists (
                   select from jobs s join class on s.tier = class.tier and s.tool = class.tool
                   where s.state = 'queued' and s.losses > 0 and s.tier = 'paid' and s.run_after <= now()
                     and s.attempt - s.interruptions < $6 and (s.mode is null or s.mode = any($7))
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
                     exact_mask, tier as "tier: Tier", attempt, interruptions, outages, traceparent,
                     extract(epoch from now() - jobs.created_at)::float8 as "waited_secs!""#,
        worker.uuid(),
        &tools,
        &tiers,
        isolation == Isolation::Alone,
        db::interval(lease),
        MAX_ATTEMPTS,
        &modes,
        CANDIDATES,
        isolation == Isolation::Unyielding,
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let tool = tool_from_columns(row.id, row.tool, row.factor, row.mode)?;
    Ok(Some(Claimed {
        id: row.id,
        worker,
        owner: row.owner,
        image: row.image,
        object_key: row.object_key,
        width: row.width,
        height: row.height,
        tool,
        prompt: row.prompt,
        is_mask_exact: row.exact_mask,
        tier: row.tier,
        attempt: row.attempt,
        interruptions: row.interruptions,
        outages: row.outages,
        waited_secs: row.waited_secs,
        traceparent: row.traceparent,
    }))
}

/// Returns whether a suspect of `classes` should run now; of Magic Fixes only those of `modes` count.
pub async fn suspects(
    pool: &PgPool,
    classes: &[JobClass],
    modes: &[FixMode],
) -> sqlx::Result<Suspects> {
    let ((tools, tiers), modes) = (columns(classes), names(modes));
    let waiting = sqlx::query!(
        // Otherwise Postgres reads the whole queue, because the query refers to `ready` five times.
        r#"with ready as not materialized (
               select s.tier, s.losses, s.run_after
               from jobs s join unnest($1::text[], $2::text[]) as class (tool, tier)
                 on s.tier = class.tier and s.tool = class.tool
               where s.state = 'queued' and s.run_after <= now() and s.attempt - s.interruptions < $4
                 and (s.mode is null or s.mode = any($3))
           )
           select exists (select from ready where losses > 0) as "any!",
                  exists (select from ready where losses > 0 and tier = 'paid') as "paid!",
                  exists (select from ready where losses > 0 and tier = 'paid' and run_after <= now() - $5::interval)
                    as "overdue!",
                  exists (select from ready where losses > 0 and run_after <= now() - $6::interval) as "unpaid_overdue!",
                  exists (select from ready where losses = 0 and tier = 'paid') as "others!""#,
        &tools,
        &tiers,
        &modes,
        MAX_ATTEMPTS,
        db::interval(PATIENCE),
        db::interval(UNPAID_PATIENCE),
    )
    .fetch_one(pool)
    .await?;
    let is_due = waiting.paid || waiting.unpaid_overdue;
    Ok(if waiting.overdue || is_due && !waiting.others {
        Suspects::Due
    } else if waiting.any && !waiting.others {
        Suspects::WhenIdle
    } else {
        Suspects::None
    })
}

/// Returns the number of jobs ready to run in each of `classes`; of Magic Fixes only those of `modes` count. The
/// sweeper rings for those without a doorbell.
pub async fn queued_by_class(
    pool: &PgPool,
    classes: &[JobClass],
    modes: &[FixMode],
) -> sqlx::Result<Vec<(JobClass, i64)>> {
    let ((tools, tiers), modes) = (columns(classes), names(modes));
    let rows = sqlx::query!(
        r#"select j.tool as "tool: ToolName", j.tier as "tier: Tier", count(*) as "count!"
           from jobs j join unnest($1::text[], $2::text[]) as class (tool, tier)
             on j.tier = class.tier and j.tool = class.tool
           where j.state = 'queued' and j.run_after <= now() and (j.mode is null or j.mode = any($3))
           group by j.tool, j.tier"#,
        &tools,
        &tiers,
        &modes,
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
