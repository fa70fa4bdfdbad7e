//! What an operator does to jobs: see which died, drive one again, end one.

use sqlx::PgPool;

use super::end::end_active;
use super::{Failure, Job, JobState, NewJob, SubmitError, Submitted, get, load, submit};
use crate::{JobId, UserId};
use retouch_catalog::ToolName;

/// The jobs that failed, the newest first; with `code`, those that failed for that reason.
pub async fn failed(pool: &PgPool, code: Option<&str>, most: i64) -> sqlx::Result<Vec<Job>> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where state = 'failed' and ($1::text is null or failure_code = $1)
           order by finished_at desc limit $2"#,
        code,
        most,
    )
    .fetch_all(pool)
    .await?;
    let mut jobs = load(pool, &ids).await?;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.finished_at));
    Ok(jobs)
}

/// The last jobs of `owner`, the newest first.
pub async fn recent(pool: &PgPool, owner: UserId, most: i64) -> sqlx::Result<Vec<Job>> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs where owner_id = $1 order by id desc limit $2"#,
        owner.uuid(),
        most,
    )
    .fetch_all(pool)
    .await?;
    let mut jobs = load(pool, &ids).await?;
    jobs.reverse();
    Ok(jobs)
}

/// Why a job was not driven again.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    /// There is no such job.
    #[error("there is no such job")]
    NoSuchJob,
    /// Only a job that failed can be driven again.
    #[error("only a failed job can be retried; this one is {}", .0.as_str())]
    NotFailed(JobState),
    /// The picture was deleted.
    #[error("its picture is gone")]
    ImageGone,
    /// The mask of a Magic Fix goes when its job ends.
    #[error("the mask of a Magic Fix goes when its job ends; its owner has to paint it again")]
    MaskGone,
    /// The tool could not be submitted: most often credits are missing.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl From<sqlx::Error> for RedriveError {
    fn from(error: sqlx::Error) -> Self {
        Self::Submit(error.into())
    }
}

/// Does what a failed job should have done, as a new job of the same owner: its price is held again and
/// debited when it is done. The failed job stays as it is. Asked twice, there is still one new job.
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
        // A visitor's image has its one free run, which does the same for those who have no owner.
        idempotency_key: Some(format!("retry of {job}")),
        most_waiting: None,
    };
    match submit(pool, &again).await {
        Err(SubmitError::NoSuchImage) => Err(RedriveError::ImageGone),
        other => Ok(other?),
    }
}

/// Ends a job that has not ended, for a reason that its owner will read; it costs nothing. False when it
/// had ended already, or never was.
pub async fn fail_by_hand(pool: &PgPool, job: JobId, reason: &str) -> sqlx::Result<bool> {
    let failure = Failure { code: "ended_by_operator".into(), detail: reason.to_owned() };
    end_active(pool, job, JobState::Failed, Some(&failure)).await
}
