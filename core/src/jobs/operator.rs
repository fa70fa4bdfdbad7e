//! Operator actions on jobs: list them, retry one, end one.

use sqlx::PgPool;

use super::end::end_active;
use super::{Failure, Job, JobState, NewJob, SubmitError, Submitted, get, load, submit};
use crate::{JobId, UserId};
use retouch_catalog::ToolName;

/// Returns up to `limit` failed jobs, the newest first; with `code`, only those with that failure code.
pub async fn failed(pool: &PgPool, code: Option<&str>, limit: i64) -> sqlx::Result<Vec<Job>> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where state = 'failed' and ($1::text is null or failure_code = $1)
           order by finished_at desc limit $2"#,
        code,
        limit,
    )
    .fetch_all(pool)
    .await?;
    let mut jobs = load(pool, &ids).await?;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.finished_at));
    Ok(jobs)
}

/// Returns the last `limit` jobs of `owner`, the newest first.
pub async fn recent(pool: &PgPool, owner: UserId, limit: i64) -> sqlx::Result<Vec<Job>> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs where owner_id = $1 order by id desc limit $2"#,
        owner.uuid(),
        limit,
    )
    .fetch_all(pool)
    .await?;
    let mut jobs = load(pool, &ids).await?;
    jobs.reverse();
    Ok(jobs)
}

/// Why a job was not redriven.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    /// The job does not exist.
    #[error("this job does not exist")]
    NoSuchJob,
    /// The job has not failed.
    #[error("only a failed job can be retried; this one is {}", .0.as_str())]
    NotFailed(JobState),
    /// The image was deleted.
    #[error("its picture was deleted")]
    ImageGone,
    /// The job is a Magic Fix, whose mask was deleted when it ended.
    #[error(
        "the mask of a Magic Fix is deleted when its job ends; its owner has to paint it again"
    )]
    MaskGone,
    /// The new job was refused, most often for lack of credits.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl From<sqlx::Error> for RedriveError {
    fn from(error: sqlx::Error) -> Self {
        Self::Submit(error.into())
    }
}

/// Submits a failed job again, as a new job of the same owner at the same price.
///
/// The failed job stays as it is. Redriving it twice returns the same new job.
pub async fn redrive(pool: &PgPool, job: JobId) -> Result<Submitted, RedriveError> {
    let failed = get(pool, job).await?.ok_or(RedriveError::NoSuchJob)?;
    if failed.state != JobState::Failed {
        return Err(RedriveError::NotFailed(failed.state));
    }
    if failed.tool.name() == ToolName::MagicFix {
        return Err(RedriveError::MaskGone);
    }
    let again = NewJob {
        owner: failed.owner,
        image: failed.image.ok_or(RedriveError::ImageGone)?,
        tool: failed.tool,
        fix: None,
        tier: failed.tier,
        // Ignored for visitors' jobs, which have no owner; the limit of one free run per image prevents a second job
        // there.
        idempotency_key: Some(format!("retry of {job}")),
        queue_limit: None,
    };
    match submit(pool, &again).await {
        Err(SubmitError::NoSuchImage) => Err(RedriveError::ImageGone),
        other => Ok(other?),
    }
}

/// Fails an active job, at no cost, with a `reason` shown to its owner. Returns false if the job had already ended
/// or does not exist.
pub async fn fail_by_operator(pool: &PgPool, job: JobId, reason: &str) -> sqlx::Result<bool> {
    let failure = Failure { code: "ended_by_operator".into(), detail: reason.to_owned() };
    end_active(pool, job, JobState::Failed, Some(&failure)).await
}
