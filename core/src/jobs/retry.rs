//! Retries: the number of attempts a job gets, and the backoff between them.
//!
//! An attempt ends early for one of three causes. A *fault* (a model that fails to load, a lost worker) counts
//! toward [`MAX_ATTEMPTS`]. So does a *lost device*, which also makes the job a suspect ([`super::claim`]). An *outage*
//! (object store or database unavailable) is nobody's fault and does not count; the job waits it out, for up to
//! [`MAX_OUTAGES`] retries.

use std::time::Duration;

use sqlx::PgPool;

use super::Failure;
use super::claim::{Claimed, MAX_ATTEMPTS};
use crate::db;

/// Maximum number of attempts that outages interrupt before the job fails. With [`retry_delay`], they span 16 minutes.
pub const MAX_OUTAGES: i32 = 20;

/// Maximum backoff.
const LONGEST_DELAY: Duration = Duration::from_mins(1);

/// Why an attempt ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something is wrong with this attempt; the next one may succeed.
    Fault,
    /// The device stopped working in the worker's process. Every job that ran there failed; one of the pictures may be
    /// the cause.
    DeviceLost,
    /// The object store or the database was unavailable.
    Outage,
}

/// Returns the backoff after the `count`-th attempt (from 1) that ended for the same cause: 2^`count` seconds, at
/// most one minute. [`retry`] varies it by a quarter either way, so that jobs do not return all at once.
pub fn retry_delay(count: i32) -> Duration {
    Duration::from_secs(1 << count.clamp(1, 6)).min(LONGEST_DELAY)
}

/// Returns the number of attempts that ended for `cause`, this one included.
const fn count(job: &Claimed, cause: Cause) -> i32 {
    match cause {
        Cause::Fault | Cause::DeviceLost => job.attempt - job.interruptions,
        Cause::Outage => job.outages + 1,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The job is queued for another attempt.
    Queued,
    /// That was the last attempt; the job has failed.
    Failed,
    /// The attempt no longer held the lease.
    LeaseLost,
}

/// Requeues a job after an attempt that ended early. The next one starts after [`retry_delay`]. After the last attempt the
/// job fails with `failure`.
///
/// Safe to repeat: a worker that lost the answer gets [`Retry::LeaseLost`], even if it runs the next attempt by then.
pub async fn retry(
    pool: &PgPool,
    job: &Claimed,
    cause: Cause,
    failure: &Failure,
) -> sqlx::Result<Retry> {
    let held = sqlx::query!(
        r#"with held as (
               select id from jobs where id = $2 and lease_owner = $1 and state = 'running' and attempt = $7 for update
           ), queued as (
               update jobs set state = 'queued', lease_owner = null, lease_until = null,
                               interruptions = interruptions + $3::boolean::integer,
                               outages = outages + $3::boolean::integer,
                               losses = losses + $8::boolean::integer,
                               run_after = now() + $4::interval * (0.75 + random() / 2)
               from held
               where jobs.id = held.id
                 and case when $3 then outages < $6 else attempt - interruptions < $5 end
               returning jobs.id
           )
           select exists (select from queued) as "queued!" from held"#,
        job.worker.uuid(),
        job.id.uuid(),
        cause == Cause::Outage,
        db::interval(retry_delay(count(job, cause))),
        MAX_ATTEMPTS,
        MAX_OUTAGES,
        job.attempt,
        cause == Cause::DeviceLost,
    )
    .fetch_optional(pool)
    .await?;
    match held {
        None => Ok(Retry::LeaseLost),
        Some(held) if held.queued => Ok(Retry::Queued),
        Some(_) => {
            let failed = super::fail(pool, job.as_attempt(), failure).await?;
            Ok(if failed { Retry::Failed } else { Retry::LeaseLost })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_up_to_a_minute() {
        assert_eq!([1, 2, 5].map(retry_delay), [2, 4, 32].map(Duration::from_secs));
        assert_eq!([6, 7, MAX_OUTAGES].map(retry_delay), [LONGEST_DELAY; 3]);
    }

    #[test]
    fn outages_are_waited_out_for_ten_minutes() {
        let shortest: Duration = (1..=MAX_OUTAGES).map(retry_delay).sum::<Duration>() * 3 / 4;
        assert!(shortest > Duration::from_mins(10), "{shortest:?}");
    }
}
