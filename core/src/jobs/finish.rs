//! The good end of a job: it is done, its result recorded and its cost debited, all at once or not at all.

use sqlx::PgPool;

use crate::results::NewResult;
use crate::{JobId, WorkerId, db, storage};

/// What became of a finished job's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The job is done, its result recorded and its cost debited.
    Done,
    /// The job was no longer this worker's: the result is not wanted and its objects are doomed.
    NotOurs,
}

/// Marks the job done, records the result and debits the cost, in one transaction: one statement, so that no
/// answer is waited for in between and no crash can come there.
///
/// The fence is the lease: only the worker that holds it can finish, and only once. A second debit of the same
/// job, or a second result, breaks a constraint.
pub async fn finish(
    pool: &PgPool,
    worker: WorkerId,
    job: JobId,
    made: &NewResult,
) -> sqlx::Result<Finish> {
    let ended = sqlx::query_scalar!(
        // The payer is locked before the job, as by whatever ends a job. Whoever cancelled it while this waited for
        // that lock has given the hold back, and the job is no longer running. The hold goes here; the ledger's own
        // trigger, which comes after all of this, lowers the credits.
        r#"with payer as (
               select u.id from users u join jobs j on j.owner_id = u.id where j.id = $2 for update of u
           ), ended as (
               update jobs set state = 'done', finished_at = now(), lease_owner = null, lease_until = null
               where id = $2 and state = 'running' and lease_owner = $1
                 and (owner_id is null or exists (select from payer))
               returning id, image_id, owner_id, tool, factor, mode, prompt, cost
           ), recorded as (
               insert into results (id, job_id, image_id, owner_id, tool, factor, object_key, thumbnail_key,
                                    size_bytes, width, height, model, model_sha256, device, duration_ms,
                                    is_demo, mode, prompt)
               select $3, id, image_id, owner_id, tool, factor, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
                      mode, prompt
               from ended
           ), forgotten as (
               -- A mask is of no use once its job has ended.
               delete from masks where job_id in (select id from ended where tool = 'magic-fix')
           ), released as (
               update users u set reserved = reserved - ended.cost from ended
               where u.id = ended.owner_id and ended.cost > 0
           ), debited as (
               insert into ledger (user_id, kind, amount, job_id)
               select owner_id, 'job', -cost, id from ended where cost > 0
           )
           select exists (select from ended) as "ended!""#,
        worker.uuid(),
        job.uuid(),
        made.id.uuid(),
        made.object_key,
        made.thumbnail_key,
        made.size_bytes,
        made.width,
        made.height,
        made.model,
        made.model_sha256,
        made.device,
        made.duration_ms,
        made.is_demo,
    )
    .fetch_one(pool)
    .await?;
    if ended { Ok(Finish::Done) } else { was_not_ours(pool, made).await }
}

/// The result is either recorded already, by the same call whose answer got lost, or not wanted.
async fn was_not_ours(pool: &PgPool, made: &NewResult) -> sqlx::Result<Finish> {
    let mut tx = db::begin(pool).await?;
    let recorded = sqlx::query!("select id from results where id = $1", made.id.uuid())
        .fetch_optional(&mut *tx)
        .await?;
    if recorded.is_some() {
        return Ok(Finish::Done);
    }
    storage::doom(&mut tx, &[made.object_key.clone(), made.thumbnail_key.clone()]).await?;
    tx.commit().await?;
    Ok(Finish::NotOurs)
}
