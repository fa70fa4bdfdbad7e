//! Estimates the time that jobs still need.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use serde::Serialize;
use sqlx::PgPool;

use super::{Job, JobState};
use crate::JobId;
use crate::workers::OBJECT_STORE;
use retouch_catalog::{FixMode, JobClass, Tier, ToolName};

/// The remaining time of a job that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The number of jobs that start before it; `None` once it runs.
    pub position: Option<i64>,
    /// Seconds until it ends, from the duration of recent jobs; `None` if there are none, or if it waits for more than
    /// its turn.
    pub eta_secs: Option<i64>,
    /// What it waits for; `None` once it runs.
    pub waits_for: Option<WaitsFor>,
}

/// What a queued job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum WaitsFor {
    /// A free slot.
    Turn,
    /// The end of its retry delay.
    Retry,
    /// A live worker that serves its tool, tier and mode.
    Worker,
    /// The object store, which no worker that serves it can reach.
    Storage,
}

/// The inputs of an estimate.
struct Facts {
    /// Jobs that start before it, if it is queued.
    ahead: i64,
    running: i64,
    /// The slots of all live workers.
    slots: i64,
    /// The mean duration of the class's last jobs.
    mean_secs: Option<f64>,
    /// Seconds since its start.
    elapsed_secs: Option<f64>,
    /// Whether its retry delay has not ended.
    backs_off: bool,
    /// Whether a live worker that serves it reaches the object store; `None` if no live worker serves it.
    reaches_storage: Option<bool>,
}

/// Maximum number of queued jobs whose places are counted one by one: each takes 2 ms in a queue of 5,000, while
/// ranking the whole queue takes 25 ms.
const FEW: usize = 8;

/// Estimates the time `job` still needs.
pub async fn estimate(pool: &PgPool, job: &Job) -> sqlx::Result<Estimate> {
    let estimates = estimates(pool, std::slice::from_ref(job)).await?;
    estimates.first().copied().ok_or(sqlx::Error::RowNotFound)
}

/// Estimates the time that each of `jobs` still needs, in their order. Open event streams ask for it every two seconds.
pub async fn estimates(pool: &PgPool, jobs: &[Job]) -> sqlx::Result<Vec<Estimate>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let places = places(pool, jobs).await?;
    let demands: HashSet<_> = jobs.iter().map(demand).collect();
    let tools: Vec<_> = demands.iter().map(|(class, _)| class.tool.as_str().to_owned()).collect();
    let tiers: Vec<_> = demands.iter().map(|(class, _)| class.tier.as_str().to_owned()).collect();
    let modes: Vec<_> = demands.iter().map(|(_, mode)| mode.map(|mode| mode.to_string())).collect();
    let demands = sqlx::query!(
        r#"select tool as "tool!: ToolName", tier as "tier!: Tier", mode as "mode?: FixMode", now() as "now!",
                  (select count(*) from jobs where state = 'running') as "running!",
                  (select coalesce(sum(slots), 0) from workers where is_live(workers)) as "slots!",
                  (select avg(extract(epoch from finished_at - started_at))::float8 from (
                       select finished_at, started_at from jobs
                       where tool = demand.tool and tier = demand.tier and state = 'done'
                       order by finished_at desc limit 20
                   ) last) as mean_secs,
                  (select bool_or(not problems @> $4) from workers
                   where is_live(workers) and exists (
                       select from jsonb_array_elements(models) as model
                       where model->>'tool' = demand.tool and model->>'tier' = demand.tier
                         and (demand.mode is null or model->>'mode' = demand.mode)
                   )) as reaches_storage
           from unnest($1::text[], $2::text[], $3::text[]) as demand (tool, tier, mode)"#,
        &tools,
        &tiers,
        &modes as &[Option<String>],
        storage_problem(),
    )
    .fetch_all(pool)
    .await?;
    let estimates = jobs.iter().filter_map(|job| {
        let found = demands.iter().find(|found| {
            let class = JobClass { tool: found.tool, tier: found.tier };
            (class, found.mode) == demand(job)
        })?;
        let elapsed = job.started_at.map(|started| found.now - started);
        let place = places.get(&job.id);
        let facts = Facts {
            ahead: place.map_or(0, |place| place.ahead),
            running: found.running,
            slots: found.slots,
            mean_secs: found.mean_secs,
            elapsed_secs: elapsed.map(TimeDelta::as_seconds_f64),
            backs_off: place.is_some_and(|place| place.backs_off),
            reaches_storage: found.reaches_storage,
        };
        Some(from_facts(job, &facts))
    });
    Ok(estimates.collect())
}

struct Place {
    id: JobId,
    /// Jobs that start before it.
    ahead: i64,
    /// Whether its retry delay has not ended.
    backs_off: bool,
}

/// Returns the places of the queued jobs among `jobs`. A job starts after all jobs of higher tiers, the jobs of its
/// class with an earlier turn, and the earlier submitted jobs of the other classes of its tier.
async fn places(pool: &PgPool, jobs: &[Job]) -> sqlx::Result<HashMap<JobId, Place>> {
    let queued = jobs.iter().filter(|job| job.state == JobState::Queued);
    let ids: Vec<_> = queued.map(|job| job.id.uuid()).collect();
    let places = if ids.is_empty() {
        Vec::new()
    } else if ids.len() <= FEW {
        sqlx::query_as!(
            Place,
            r#"select id as "id!: JobId", run_after > now() as "backs_off!", (
                   select count(*) from jobs j where j.state = 'queued' and (
                       array_position(array['paid', 'free', 'visitor'], j.tier)
                         < array_position(array['paid', 'free', 'visitor'], queued.tier)
                       or j.tier = queued.tier and case j.tool
                           when queued.tool then (j.turn, j.created_at, j.id) < (queued.turn, queued.created_at, queued.id)
                           else j.created_at < queued.created_at end)
               ) as "ahead!"
               from jobs queued where id = any($1) and state = 'queued'"#,
            &ids,
        )
        .fetch_all(pool)
        .await?
    } else {
        sqlx::query_as!(
            Place,
            // The jobs ahead in other classes: all earlier submitted jobs of the tier, minus the earlier jobs of the
            // same class.
            r#"select id as "id!: JobId", ahead as "ahead!", run_after > now() as "backs_off!" from (
                   select id, run_after, rank() over (order by array_position(array['paid', 'free', 'visitor'], tier)) - 1
                              + row_number() over (partition by tier, tool order by turn, created_at, id) - 1
                              + rank() over (partition by tier order by created_at)
                              - rank() over (partition by tier, tool order by created_at) as ahead
                   from jobs where state = 'queued'
               ) queue where id = any($1)"#,
            &ids,
        )
        .fetch_all(pool)
        .await?
    };
    Ok(places.into_iter().map(|place| (place.id, place)).collect())
}

/// The models that a worker must serve to run `job`.
fn demand(job: &Job) -> (JobClass, Option<FixMode>) {
    (job.class(), job.tool.mode())
}

/// Matches the problems of a worker that cannot reach the object store.
fn storage_problem() -> serde_json::Value {
    serde_json::json!([{ "model": OBJECT_STORE }])
}

fn from_facts(job: &Job, facts: &Facts) -> Estimate {
    let is_queued = job.state == JobState::Queued;
    let position = is_queued.then_some(facts.ahead);
    let waits_for = is_queued.then_some(match facts.reaches_storage {
        None => WaitsFor::Worker,
        Some(false) => WaitsFor::Storage,
        Some(true) if facts.backs_off => WaitsFor::Retry,
        Some(true) => WaitsFor::Turn,
    });
    let slots = facts.slots as f64;
    let is_predictable = slots >= 1.0 && waits_for.is_none_or(|what| what == WaitsFor::Turn);
    let eta_secs = facts.mean_secs.filter(|_| is_predictable).map(|mean| {
        let secs = match (position, facts.elapsed_secs) {
            (None, Some(elapsed)) => (mean - elapsed).max(1.0),
            // The jobs ahead and the running ones share the slots; the job itself takes one more run.
            (ahead, _) => {
                let before = ahead.unwrap_or(0) + (facts.running - facts.slots + 1).max(0);
                mean * (before as f64 / slots + 1.0)
            }
        };
        secs.ceil() as i64
    });
    Estimate { position, eta_secs, waits_for }
}
