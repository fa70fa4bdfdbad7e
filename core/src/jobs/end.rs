//! Ending a job without a result: failed or canceled. It costs nothing.

use sqlx::{PgConnection, PgPool};

use super::{Failure, JobState};
use crate::webhooks::announce::announce_ended;
use crate::{Attempt, ImageId, JobId, UserId, credits, db};

/// Fails the job and releases its hold. Returns false if `attempt` no longer held the lease.
pub async fn fail(pool: &PgPool, attempt: Attempt, failure: &Failure) -> sqlx::Result<bool> {
    let Attempt { job, worker, number } = attempt;
    let mut tx = db::begin(pool).await?;
    lock_payer(&mut tx, job).await?;
    let leased = sqlx::query!(
        "select id from jobs
         where id = $1 and state = 'running' and lease_owner = $2 and attempt = $3 for update",
        job.uuid(),
        worker.uuid(),
        number,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if leased.is_none() {
        return Ok(false);
    }
    end_without_result(&mut tx, &[job], JobState::Failed, Some(failure)).await?;
    tx.commit().await?;
    Ok(true)
}

/// Cancels the job, releases its hold, and frees its idempotency key. Returns false if it had already ended.
pub async fn cancel(pool: &PgPool, job: JobId) -> sqlx::Result<bool> {
    end_active(pool, job, &ACTIVE, JobState::Cancelled, None).await
}

/// The states of a job that has not ended.
pub(super) const ACTIVE: [JobState; 2] = [JobState::Queued, JobState::Running];

/// Ends a job that is in one of the active states `from`, without a result. Returns false if it is not.
pub(super) async fn end_active(
    pool: &PgPool,
    job: JobId,
    from: &[JobState],
    state: JobState,
    failure: Option<&Failure>,
) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    let ended = end_active_in(&mut tx, job, from, state, failure).await?;
    tx.commit().await?;
    Ok(ended)
}

/// Does what [`end_active`] does, in the caller's transaction.
pub(super) async fn end_active_in(
    tx: &mut PgConnection,
    job: JobId,
    from: &[JobState],
    state: JobState,
    failure: Option<&Failure>,
) -> sqlx::Result<bool> {
    lock_payer(tx, job).await?;
    let from: Vec<_> = from.iter().map(|state| state.as_str().to_owned()).collect();
    let active = sqlx::query!(
        "select id from jobs where id = $1 and state = any($2) for update",
        job.uuid(),
        &from,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if active.is_none() {
        return Ok(false);
    }
    end_without_result(tx, &[job], state, failure).await?;
    Ok(true)
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum CancelScope {
    /// The jobs of one image, which is being deleted.
    Image(ImageId),
    /// The jobs of one user, whose account is being deleted.
    Owner(UserId),
}

/// Cancels up to `limit` active jobs in `scope` and returns them. The caller has locked the owner's row.
pub(crate) async fn cancel_some(
    conn: &mut PgConnection,
    scope: CancelScope,
    limit: i64,
) -> sqlx::Result<Vec<JobId>> {
    let (image, owner) = match scope {
        CancelScope::Image(image) => (Some(image.uuid()), None),
        CancelScope::Owner(owner) => (None, Some(owner.uuid())),
    };
    let jobs = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where (image_id = $1 or owner_id = $2) and state in ('queued', 'running')
           order by id limit $3 for update"#,
        image,
        owner,
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    end_without_result(conn, &jobs, JobState::Cancelled, None).await?;
    Ok(jobs)
}

/// Locks the row of the user who pays for `job`. Everything that ends a job locks the payer first and the job
/// second: with one lock order, submit, finish and delete can wait for each other but never deadlock.
pub(super) async fn lock_payer(conn: &mut PgConnection, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "select u.id from users u join jobs j on j.owner_id = u.id where j.id = $1 for update of u",
        job.uuid(),
    )
    .fetch_optional(conn)
    .await
    .map(drop)
}

/// Moves active jobs to `state`, releases their holds, returns their free runs, and announces their end. The caller has
/// locked the rows of the jobs and of their payers. A failed job keeps its mask, so that an operator can retry it. A canceled
/// one loses its idempotency key, so that a repeat of the request runs again.
pub(super) async fn end_without_result(
    conn: &mut PgConnection,
    jobs: &[JobId],
    state: JobState,
    failure: Option<&Failure>,
) -> sqlx::Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = jobs.iter().map(|job| job.uuid()).collect();
    let ended = sqlx::query!(
        r#"update jobs set state = $2, finished_at = now(), lease_owner = null, lease_until = null,
                           failure_code = $3, failure_detail = $4,
                           idempotency_key = case when $2 <> 'cancelled' then idempotency_key end
           where id = any($1) and state in ('queued', 'running')
           returning owner_id as "owner: UserId", cost, created_at"#,
        &ids,
        state as JobState,
        failure.map(|failure| failure.code.as_str()),
        failure.map(|failure| failure.detail.as_str()),
    )
    .fetch_all(&mut *conn)
    .await?;
    if ended.len() != jobs.len() {
        return Err(sqlx::Error::RowNotFound);
    }
    for job in ended.iter().filter(|job| job.cost > 0) {
        if let Some(owner) = job.owner {
            credits::release(conn, owner, job.cost, job.created_at).await?;
        }
    }
    if state != JobState::Failed {
        sqlx::query!("delete from masks where job_id = any($1)", &ids).execute(&mut *conn).await?;
    }
    sqlx::query!("delete from free_runs where job_id = any($1)", &ids).execute(&mut *conn).await?;
    announce_ended(conn, jobs).await
}
