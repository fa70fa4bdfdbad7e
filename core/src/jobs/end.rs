//! The ends of a job that make nothing and cost nothing: failed, cancelled.

use sqlx::{PgConnection, PgPool};

use super::{Failure, JobState};
use crate::{ImageId, JobId, UserId, WorkerId, credits, db};

/// Ends the job without a result and gives the hold back. False when it was no longer `worker`'s.
pub async fn fail(
    pool: &PgPool,
    worker: WorkerId,
    job: JobId,
    failure: &Failure,
) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    lock_payer(&mut tx, job).await?;
    let ours = sqlx::query!(
        "select id from jobs where id = $2 and state = 'running' and lease_owner = $1 for update",
        worker.uuid(),
        job.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    if ours.is_none() {
        return Ok(false);
    }
    end_without_result(&mut tx, job, JobState::Failed, Some(failure)).await?;
    tx.commit().await?;
    Ok(true)
}

/// Calls the job off and gives the hold back. False when it had ended already.
pub async fn cancel(pool: &PgPool, job: JobId) -> sqlx::Result<bool> {
    end_active(pool, job, JobState::Cancelled, None).await
}

/// Ends a job that has not ended, without a result. False when it had ended already, or never was.
pub(super) async fn end_active(
    pool: &PgPool,
    job: JobId,
    state: JobState,
    failure: Option<&Failure>,
) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    lock_payer(&mut tx, job).await?;
    let active = sqlx::query!(
        "select id from jobs where id = $1 and state in ('queued', 'running') for update",
        job.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    if active.is_none() {
        return Ok(false);
    }
    end_without_result(&mut tx, job, state, failure).await?;
    tx.commit().await?;
    Ok(true)
}

/// Whose jobs are called off together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AllOf {
    /// Those on one picture: part of deleting it.
    Image(ImageId),
    /// Those of one user: part of deleting the account.
    Owner(UserId),
}

/// Calls off whatever still runs or waits of these. The caller has locked the owner's row.
pub(crate) async fn cancel_all(conn: &mut PgConnection, of: AllOf) -> sqlx::Result<Vec<JobId>> {
    let (image, owner) = match of {
        AllOf::Image(image) => (Some(image.uuid()), None),
        AllOf::Owner(owner) => (None, Some(owner.uuid())),
    };
    let active = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where (image_id = $1 or owner_id = $2) and state in ('queued', 'running') for update"#,
        image,
        owner,
    )
    .fetch_all(&mut *conn)
    .await?;
    for job in &active {
        end_without_result(conn, *job, JobState::Cancelled, None).await?;
    }
    Ok(active)
}

/// Locks the row of whoever pays for `job`. Whatever ends a job does this before it locks the job: with
/// one order for all, submit, finish and delete can wait for each other but never in a circle.
pub(super) async fn lock_payer(conn: &mut PgConnection, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "select u.id from users u join jobs j on j.owner_id = u.id where j.id = $1 for update of u",
        job.uuid(),
    )
    .fetch_optional(conn)
    .await
    .map(drop)
}

/// Moves an active job, whose row the caller has locked, to `state`; gives the hold and the free run back.
pub(super) async fn end_without_result(
    conn: &mut PgConnection,
    job: JobId,
    state: JobState,
    failure: Option<&Failure>,
) -> sqlx::Result<()> {
    let ended = sqlx::query!(
        r#"update jobs set state = $2, finished_at = now(), lease_owner = null, lease_until = null,
                           failure_code = $3, failure_detail = $4
           where id = $1 and state in ('queued', 'running')
           returning owner_id as "owner: UserId", cost"#,
        job.uuid(),
        state as JobState,
        failure.map(|failure| failure.code.as_str()),
        failure.map(|failure| failure.detail.as_str()),
    )
    .fetch_one(&mut *conn)
    .await?;
    if let Some(owner) = ended.owner.filter(|_| ended.cost > 0) {
        credits::release(conn, owner, ended.cost).await?;
    }
    forget_mask(conn, job).await?;
    sqlx::query!("delete from free_runs where job_id = $1", job.uuid())
        .execute(conn)
        .await
        .map(drop)
}

/// A mask is of no use once its job has ended.
async fn forget_mask(conn: &mut PgConnection, job: JobId) -> sqlx::Result<()> {
    sqlx::query!("delete from masks where job_id = $1", job.uuid()).execute(conn).await.map(drop)
}
