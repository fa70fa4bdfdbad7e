//! How long jobs still need.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use sqlx::PgPool;

use super::{Job, JobState};
use crate::JobId;
use retouch_catalog::{Tier, ToolName};

/// The remaining time of a job that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The number of jobs that start before it; `None` once it runs.
    pub position: Option<i64>,
    /// Seconds until it ends, from the duration of recent jobs; `None` if there are none or no worker is live.
    pub eta_secs: Option<i64>,
}

/// What an estimate is made of.
struct Facts {
    /// Jobs that start before it, if it is queued.
    ahead: i64,
    /// All running jobs.
    running: i64,
    /// The slots of all live workers.
    slots: i64,
    /// The mean duration of the class's last jobs.
    mean_secs: Option<f64>,
    /// Seconds since its start.
    elapsed_secs: Option<f64>,
}

/// Estimates the time `job` still needs. Open event streams ask for it every two seconds, so it only counts.
pub async fn estimate(pool: &PgPool, job: &Job) -> sqlx::Result<Estimate> {
    let facts = sqlx::query_as!(
        Facts,
        r#"select
             (select count(*) from jobs j where j.state = 'queued' and (
                 array_position(array['paid', 'free', 'visitor'], j.tier)
                   < array_position(array['paid', 'free', 'visitor'], $1::text)
                 or j.tier = $1 and case j.tool
                     when $4 then (j.turn, j.created_at, j.id)
                       < ((select turn from jobs where id = $3), $2::timestamptz, $3::uuid)
                     else j.created_at < $2 end)
             ) as "ahead!",
             (select count(*) from jobs where state = 'running') as "running!",
             (select coalesce(sum(slots), 0) from workers where seen_at > now() - interval '20 seconds')
               as "slots!",
             (select avg(extract(epoch from finished_at - started_at))::float8 from (
                select finished_at, started_at from jobs
                where tool = $4 and tier = $1 and state = 'done' order by finished_at desc limit 20
             ) last) as mean_secs,
             extract(epoch from now() - $5::timestamptz)::float8 as elapsed_secs"#,
        job.tier.as_str(),
        job.created_at,
        job.id.uuid(),
        job.tool.name().as_str(),
        job.started_at,
    )
    .fetch_one(pool)
    .await?;
    Ok(from_facts(job, &facts))
}

/// Estimates the time that each of `jobs` still needs, in their order, like [`estimate`] but in two statements: the
/// first ranks the whole queue once, however many jobs are asked for.
pub async fn estimates(pool: &PgPool, jobs: &[Job]) -> sqlx::Result<Vec<Estimate>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = jobs.iter().map(|job| job.id.uuid()).collect();
    let places = sqlx::query!(
        // Before a job start those of higher tiers, those of its class with an earlier turn, and those of the other
        // classes of its tier that were submitted earlier: all of its tier that were, less those of its class.
        r#"select id as "id!: JobId", ahead as "ahead!" from (
               select id, rank() over (order by array_position(array['paid', 'free', 'visitor'], tier)) - 1
                          + row_number() over (partition by tier, tool order by turn, created_at, id) - 1
                          + rank() over (partition by tier order by created_at)
                          - rank() over (partition by tier, tool order by created_at) as ahead
               from jobs where state = 'queued'
           ) queue where id = any($1)"#,
        &ids,
    )
    .fetch_all(pool)
    .await?;
    let places: HashMap<_, _> = places.into_iter().map(|place| (place.id, place.ahead)).collect();
    let classes: HashSet<_> = jobs.iter().map(Job::class).collect();
    let (tools, tiers): (Vec<_>, Vec<_>) = classes
        .into_iter()
        .map(|class| (class.tool.as_str().to_owned(), class.tier.as_str().to_owned()))
        .unzip();
    let classes = sqlx::query!(
        r#"select tool as "tool!: ToolName", tier as "tier!: Tier", now() as "now!",
                  (select count(*) from jobs where state = 'running') as "running!",
                  (select coalesce(sum(slots), 0) from workers where seen_at > now() - interval '20 seconds')
                    as "slots!",
                  (select avg(extract(epoch from finished_at - started_at))::float8 from (
                       select finished_at, started_at from jobs
                       where tool = class.tool and tier = class.tier and state = 'done'
                       order by finished_at desc limit 20
                   ) last) as mean_secs
           from unnest($1::text[], $2::text[]) as class (tool, tier)"#,
        &tools,
        &tiers,
    )
    .fetch_all(pool)
    .await?;
    let estimates = jobs.iter().filter_map(|job| {
        let class =
            classes.iter().find(|class| class.tool == job.tool.name() && class.tier == job.tier)?;
        let elapsed = job.started_at.map(|started| class.now - started);
        let facts = Facts {
            ahead: places.get(&job.id).copied().unwrap_or(0),
            running: class.running,
            slots: class.slots,
            mean_secs: class.mean_secs,
            elapsed_secs: elapsed.map(TimeDelta::as_seconds_f64),
        };
        Some(from_facts(job, &facts))
    });
    Ok(estimates.collect())
}

fn from_facts(job: &Job, facts: &Facts) -> Estimate {
    let position = (job.state == JobState::Queued).then_some(facts.ahead);
    let slots = facts.slots as f64;
    let eta_secs = facts.mean_secs.filter(|_| slots >= 1.0).map(|mean| {
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
    Estimate { position, eta_secs }
}
