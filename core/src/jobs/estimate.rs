//! How long jobs still need.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::{Job, JobState};

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

/// Estimates the time that each of `jobs` still needs, in their order, like [`estimate`] but in one statement: it ranks
/// the whole queue once, however many jobs are asked for.
pub async fn estimates(pool: &PgPool, jobs: &[Job]) -> sqlx::Result<Vec<Estimate>> {
    let ids: Vec<_> = jobs.iter().map(|job| job.id.uuid()).collect();
    let tools: Vec<_> = jobs.iter().map(|job| job.tool.name().as_str().to_owned()).collect();
    let tiers: Vec<_> = jobs.iter().map(|job| job.tier.as_str().to_owned()).collect();
    let starts: Vec<_> = jobs.iter().map(|job| job.started_at).collect();
    let all = sqlx::query_as!(
        Facts,
        // Before a job start those of its class with an earlier turn, and those of the other classes of its tier that
        // were submitted earlier: all of its tier that were, less those of its class.
        r#"with asked as (
               select * from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[])
                   with ordinality as asked (id, tool, tier, started_at, nth)
           ), queue as (
               select id, row_number() over (partition by tier, tool order by turn, created_at, id) - 1
                          + rank() over (partition by tier order by created_at)
                          - rank() over (partition by tier, tool order by created_at) as ahead
               from jobs where state = 'queued'
           ), waiting as (
               select array_position(array['paid', 'free', 'visitor'], tier) as rank, count(*) as count
               from jobs where state = 'queued' group by tier
           ), class as (
               select tool, tier, (
                          select avg(extract(epoch from finished_at - started_at))::float8 from (
                              select finished_at, started_at from jobs
                              where tool = wanted.tool and tier = wanted.tier and state = 'done'
                              order by finished_at desc limit 20
                          ) last
                      ) as mean_secs,
                      (select coalesce(sum(count), 0)::bigint from waiting
                       where rank < array_position(array['paid', 'free', 'visitor'], wanted.tier)) as before
               from (select distinct tool, tier from asked) wanted
           )
           select coalesce(queue.ahead, 0) + class.before as "ahead!",
                  (select count(*) from jobs where state = 'running') as "running!",
                  (select coalesce(sum(slots), 0) from workers where seen_at > now() - interval '20 seconds')
                    as "slots!",
                  class.mean_secs, extract(epoch from now() - started_at)::float8 as elapsed_secs
           from asked join class using (tool, tier) left join queue using (id) order by nth"#,
        &ids,
        &tools,
        &tiers,
        &starts as &[Option<DateTime<Utc>>],
    )
    .fetch_all(pool)
    .await?;
    Ok(jobs.iter().zip(&all).map(|(job, facts)| from_facts(job, facts)).collect())
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
