//! Retries: the number of attempts a job gets, and the backoff between them.

use std::time::Duration;

use sqlx::PgPool;

use super::Failure;
use crate::{JobId, WorkerId, db};

/// The most attempts a job gets before it fails.
pub const MAX_ATTEMPTS: i32 = 3;

/// Returns the backoff after failed attempt number `attempt` (from 1): 2^`attempt` seconds.
///
/// With [`MAX_ATTEMPTS`] = 3 that is 2 s after the first attempt and 4 s after the second.
pub fn retry_delay(attempt: i32) -> Duration {
    Duration::from_secs(1 << attempt.clamp(1, MAX_ATTEMPTS))
}

/// The outcome of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The job is queued for another attempt.
    Queued,
    /// That was the last attempt; the job has failed.
    Failed,
    /// The worker no longer held the lease.
    LeaseLost,
}

/// Requeues a job after a transient fault (storage or database unreachable) in attempt number `attempt`.
///
/// The attempt counts, and the next one starts after [`retry_delay`]. After the last attempt the job fails
/// with `failure`.
pub async fn retry(
    pool: &PgPool,
    worker: WorkerId,
    job: JobId,
    attempt: i32,
    failure: &Failure,
) -> sqlx::Result<Retry> {
    let queued = sqlx::query!(
        "update jobs set state = 'queued', lease_owner = null, lease_until = null, run_after = now() + $4
         where id = $2 and lease_owner = $1 and state = 'running' and attempt < $3",
        worker.uuid(),
        job.uuid(),
        MAX_ATTEMPTS,
        db::interval(retry_delay(attempt)),
    )
    .execute(pool)
    .await?;
    if queued.rows_affected() == 1 {
        return Ok(Retry::Queued);
    }
    let failed = super::fail(pool, worker, job, failure).await?;
    Ok(if failed { Retry::Failed } else { Retry::LeaseLost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_with_each_attempt() {
        assert_eq!([1, 2].map(retry_delay), [2, 4].map(Duration::from_secs));
    }
}
