//! Retries: the number of attempts a job gets, and the backoff between them.
//!
//! An attempt ends early for one of two causes. A *fault* (a model that fails to load, a lost worker) counts
//! toward [`MAX_ATTEMPTS`]. An *outage* (object store or database unavailable) is nobody's fault and does not count;
//! the job waits it out, for up to [`MAX_INTERRUPTIONS`] retries.

use std::time::Duration;

use sqlx::PgPool;

use super::Failure;
use crate::{JobId, WorkerId, db};

/// The most attempts a job gets before it fails, not counting those that an outage interrupted.
pub const MAX_ATTEMPTS: i32 = 3;

/// The most attempts that outages may interrupt before the job fails. With [`retry_delay`] that is 16 minutes.
pub const MAX_INTERRUPTIONS: i32 = 20;

/// The longest backoff.
const LONGEST_DELAY: Duration = Duration::from_mins(1);

/// Why an attempt ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something is wrong with this attempt; the next one may succeed.
    Fault,
    /// The object store or the database was unavailable.
    Outage,
}

/// Returns the backoff after the `count`-th attempt (from 1) that ended for the same cause: 2^`count` seconds, at
/// most one minute. [`retry`] varies it by a quarter either way, so that jobs do not return all at once.
pub fn retry_delay(count: i32) -> Duration {
    Duration::from_secs(1 << count.clamp(1, 6)).min(LONGEST_DELAY)
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

/// Requeues a job after an attempt that ended early. `count` is the number of its attempts that ended for the same
/// cause, this one included; the next one starts after [`retry_delay`]. After the last attempt the job fails with
/// `failure`.
pub async fn retry(
    pool: &PgPool,
    worker: WorkerId,
    job: JobId,
    cause: Cause,
    count: i32,
    failure: &Failure,
) -> sqlx::Result<Retry> {
    let queued = sqlx::query!(
        "update jobs set state = 'queued', lease_owner = null, lease_until = null,
                         interruptions = interruptions + $3::boolean::integer,
                         run_after = now() + $4::interval * (0.75 + random() / 2)
         where id = $2 and lease_owner = $1 and state = 'running'
           and case when $3 then interruptions < $6 else attempt - interruptions < $5 end",
        worker.uuid(),
        job.uuid(),
        cause == Cause::Outage,
        db::interval(retry_delay(count)),
        MAX_ATTEMPTS,
        MAX_INTERRUPTIONS,
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
    fn the_backoff_doubles_up_to_a_minute() {
        assert_eq!([1, 2, 5].map(retry_delay), [2, 4, 32].map(Duration::from_secs));
        assert_eq!([6, 7, MAX_INTERRUPTIONS].map(retry_delay), [LONGEST_DELAY; 3]);
    }

    #[test]
    fn outages_are_waited_out_for_ten_minutes() {
        let shortest: Duration = (1..=MAX_INTERRUPTIONS).map(retry_delay).sum::<Duration>() * 3 / 4;
        assert!(shortest > Duration::from_mins(10), "{shortest:?}");
    }
}
