//! The successful end of a job.

use sqlx::PgPool;

use crate::credits::debit::finish_and_debit;
use crate::results::NewResult;
use crate::{Attempt, db, storage};

/// The outcome of finishing a job.
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
    let mut tx = db::begin(pool).await?;
    let recorded = sqlx::query!("select id from results where id = $1", made.id.uuid())
        .fetch_optional(&mut *tx)
        .await?;
    if recorded.is_some() {
        return Ok(Finish::Done);
    }
    let keys = [Some(&made.object_key), Some(&made.thumbnail_key), made.preview_key.as_ref()];
    storage::doom(&mut tx, &keys.into_iter().flatten().cloned().collect::<Vec<_>>()).await?;
    tx.commit().await?;
    Ok(Finish::LeaseLost)
}
