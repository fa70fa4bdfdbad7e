//! The successful end of a job.

use sqlx::PgPool;

use crate::credits::debit::finish_and_debit;
use crate::results::NewResult;
use crate::{Attempt, storage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The job is done, its result recorded and its price debited.
    Done,
    /// The attempt no longer held the lease: the result is discarded and its objects are doomed.
    LeaseLost,
}

/// Marks the job done, records the result and debits the price, all at once.
///
/// Safe to repeat with the same `made`: a worker that lost the answer gets [`Finish::Done`] again.
pub async fn finish(pool: &PgPool, attempt: Attempt, made: &NewResult) -> sqlx::Result<Finish> {
    if finish_and_debit(pool, attempt, made).await? {
        return Ok(Finish::Done);
    }
    let recorded = sqlx::query!("select id from results where id = $1", made.id.uuid())
        .fetch_optional(pool)
        .await?;
    if recorded.is_some() {
        return Ok(Finish::Done);
    }
    storage::doom_attempt(pool, attempt.job, attempt.number).await?;
    Ok(Finish::LeaseLost)
}
