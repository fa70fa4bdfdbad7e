//! How long a job still needs.

use sqlx::PgPool;

use super::{Job, JobState};

/// The remaining time of a job that has not ended.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The number of jobs that start before it; `None` once it runs.
    pub position: Option<i64>,
    /// Seconds until it ends, from the duration of recent jobs; `None` if there are none or no worker is live.
    pub eta_secs: Option<i64>,
}

/// Estimates the time `job` still needs.
pub async fn estimate(pool: &PgPool, job: &Job) -> sqlx::Result<Estimate> {
    let row = sqlx::query!(
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
    let position = (job.state == JobState::Queued).then_some(row.ahead);
    let slots = row.slots as f64;
    let eta_secs = row.mean_secs.filter(|_| slots >= 1.0).map(|mean| {
        let secs = match (position, row.elapsed_secs) {
            (None, Some(elapsed)) => (mean - elapsed).max(1.0),
            // The jobs ahead and the running ones share the slots; the job itself takes one more run.
            (ahead, _) => {
                let before = ahead.unwrap_or(0) + (row.running - slots as i64 + 1).max(0);
                mean * (before as f64 / slots + 1.0)
            }
        };
        secs.ceil() as i64
    });
    Ok(Estimate { position, eta_secs })
}
