//! Operator actions on jobs: list them, retry one, end one.

use std::time::Duration;

use sqlx::PgPool;

use super::end::{ACTIVE, end_active};
use super::{
    Failure, FixParameters, Job, JobState, NewJob, SubmitError, Submitted, get, load, submit,
};
use crate::{JobId, UserId, db};

/// The prefix of the idempotency keys of operators' retries; the id of the failed job follows.
pub(super) const RETRY_KEY: &str = "retry of ";

/// Which failed jobs to list or retry.
#[derive(Clone, Copy, Debug, Default)]
pub struct FailedFilter<'a> {
    /// Only jobs with this failure code.
    pub code: Option<&'a str>,
    /// Only jobs that failed within this time.
    pub within: Option<Duration>,
}

/// Returns up to `limit` failed jobs, the newest first.
pub async fn failed(pool: &PgPool, filter: FailedFilter<'_>, limit: i64) -> sqlx::Result<Vec<Job>> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where state = 'failed' and ($1::text is null or failure_code = $1)
             and ($3::interval is null or finished_at > now() - $3::interval)
           order by finished_at desc limit $2"#,
        filter.code,
        limit,
        filter.within.map(db::interval),
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

/// Why a job was not retried.
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
    /// The job is a Magic Fix, and its mask was deleted.
    #[error("the mask of this Magic Fix was deleted; its owner has to paint it again")]
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
/// The failed job stays as it is. Retrying it twice returns the same new job.
pub async fn redrive(pool: &PgPool, job: JobId) -> Result<Submitted, RedriveError> {
    let failed = get(pool, job).await?.ok_or(RedriveError::NoSuchJob)?;
    if failed.state != JobState::Failed {
        return Err(RedriveError::NotFailed(failed.state));
    }
    let fix = match failed.prompt {
        Some(prompt) => Some(fix_of(pool, job, prompt).await?.ok_or(RedriveError::MaskGone)?),
        None => None,
    };
    let again = NewJob {
        owner: failed.owner,
        image: failed.image.ok_or(RedriveError::ImageGone)?,
        tool: failed.tool,
        fix,
        tier: failed.tier,
        // Ignored for visitors' jobs, which have no owner; the limit of one free run per image prevents a second job
        // there.
        idempotency_key: Some(format!("{RETRY_KEY}{job}")),
        queue_limit: None,
    };
    match submit(pool, &again).await {
        Err(SubmitError::NoSuchImage) => Err(RedriveError::ImageGone),
        other => Ok(other?),
    }
}

/// Returns the parameters of a failed Magic Fix; `None` if its mask was deleted.
async fn fix_of(pool: &PgPool, job: JobId, prompt: String) -> sqlx::Result<Option<FixParameters>> {
    let stored = sqlx::query!(
        r#"select png, mask_sha256 as "mask_sha256!", exact_mask from masks join jobs on jobs.id = masks.job_id
           where job_id = $1"#,
        job.uuid(),
    )
    .fetch_optional(pool)
    .await?;
    Ok(stored.map(|row| FixParameters {
        prompt,
        mask: row.png.into(),
        mask_sha256: row.mask_sha256,
        is_mask_exact: row.exact_mask,
    }))
}

/// Fails an active job, at no cost, with a `reason` shown to its owner. Returns false if the job had already ended
/// or does not exist.
pub async fn fail_by_operator(pool: &PgPool, job: JobId, reason: &str) -> sqlx::Result<bool> {
    let failure = Failure { code: "ended_by_operator".into(), detail: reason.to_owned() };
    end_active(pool, job, &ACTIVE, JobState::Failed, Some(&failure)).await
}
