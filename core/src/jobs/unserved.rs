//! Jobs that no worker can run: a model was unbound, or its machine is gone. They end instead of holding credits
//! forever.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::PgPool;

use super::end::end_active_in;
use super::{Failure, JobState};
use crate::{JobId, UserId, db};

/// Maximum wait of a job for a worker that serves its tool, tier and mode.
pub const UNSERVED_AFTER: Duration = Duration::from_mins(15);

/// The code of such a job's failure.
pub const UNSERVED_CODE: &str = "tool_unavailable";

/// Maximum number of jobs that one call ends.
const BATCH: i64 = 100;

/// Fails queued jobs that no worker has been able to run for `after`, at no cost, and returns them. Leaves out jobs
/// whose owner's row is locked.
pub async fn end_unserved(pool: &PgPool, after: Duration) -> sqlx::Result<Vec<JobId>> {
    let unserved = sqlx::query!(
        r#"with served as (
               select distinct model->>'tool' as tool, model->>'tier' as tier, model->>'mode' as mode
               from workers, jsonb_array_elements(models) as model where seen_at > now() - $1::interval
           )
           select id as "id: JobId", owner_id as "owner: UserId" from jobs
           where state = 'queued' and created_at < now() - $1::interval and run_after < now()
             -- During an outage of the database, workers cannot report what they serve.
             and exists (select from reachability where since < now() - $1::interval)
             and not exists (
                 select from served
                 where served.tool = jobs.tool and served.tier = jobs.tier
                   and (jobs.mode is null or served.mode = jobs.mode)
             )
           order by created_at limit $2"#,
        db::interval(after),
        BATCH,
    )
    .fetch_all(pool)
    .await?;
    let failure = Failure {
        code: UNSERVED_CODE.into(),
        detail: "This tool is not available at the moment. You have not been charged; please try again later."
            .into(),
    };
    let (mut ended, mut locked) = (Vec::new(), HashSet::<UserId>::new());
    for job in unserved {
        if job.owner.is_some_and(|owner| locked.contains(&owner)) {
            continue;
        }
        match end_queued(pool, job.id, &failure).await {
            Ok(true) => ended.push(job.id),
            // A worker may have started it since.
            Ok(false) => {}
            // The next call tries again; the jobs of others must not wait for that, nor be left unreported.
            Err(error) => {
                tracing::warn!(job.id = %job.id, "Cannot end unserved job {}: {error}", job.id);
                locked.extend(job.owner);
            }
        }
    }
    Ok(ended)
}

/// Fails a queued job. Returns false if it is not queued.
async fn end_queued(pool: &PgPool, job: JobId, failure: &Failure) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    // The owner's row may stay locked for longer than all jobs together may take.
    sqlx::query!("set local lock_timeout = '500ms'").execute(&mut *tx).await?;
    let ended =
        end_active_in(&mut tx, job, &[JobState::Queued], JobState::Failed, Some(failure)).await?;
    tx.commit().await?;
    Ok(ended)
}
