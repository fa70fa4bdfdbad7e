//! What operators do with jobs: list failed ones, retry them, end them.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::PgPool;

use super::end::{ACTIVE, end_active};
use super::{
    Failure, FixParameters, Job, JobState, NewJob, SubmitError, Submitted, get, load, submit,
};
use crate::{JobId, UserId, db};

/// The prefix of the idempotency keys of operators' retries; the id of the failed job follows. No client can send such a key:
/// theirs are ASCII.
pub(super) const RETRY_KEY: &str = "≡retry of ";
/// The prefix in older versions, which clients can send.
const OLD_RETRY_KEY: &str = "retry of ";

/// The failure code of a job that an operator ended.
pub const ENDED_BY_OPERATOR: &str = "ended_by_operator";

/// Which failed jobs to list or retry.
#[derive(Clone, Copy, Debug, Default)]
pub struct FailedFilter<'a> {
    /// Only jobs with this failure code.
    pub code: Option<&'a str>,
    /// Only jobs that failed within this time.
    pub within: Option<Duration>,
}

/// Returns failed jobs, the newest first; at most `limit` if there is one.
pub async fn failed(
    pool: &PgPool,
    filter: FailedFilter<'_>,
    limit: Option<i64>,
) -> sqlx::Result<Vec<Job>> {
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

#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    #[error("this job does not exist")]
    NoSuchJob,
    #[error("only a failed job can be retried; this one is {}", .0.as_str())]
    NotFailed(JobState),
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

/// Why the owner of a failed job no longer needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLongerNeeded {
    /// A later identical run is waiting, running, or done.
    #[error("its owner has run it again")]
    Repeated,
    /// A later identical run failed, too, and is to be retried.
    #[error("it was run again; only the last failure is retried")]
    Older,
    /// Its picture expires, so the result might never be fetched.
    #[error("its picture expires, so the result might never be fetched")]
    Expires,
}

/// Returns those among `ids`, failed jobs to retry, that their owners no longer need. Retries by operators do not count.
pub async fn no_longer_needed(
    pool: &PgPool,
    ids: &[JobId],
) -> sqlx::Result<HashMap<JobId, NoLongerNeeded>> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    let found = sqlx::query!(
        r#"select j.id as "id: JobId", i.expires_at is not null as "expires!",
                  later.is_repeated as "is_repeated!", later.is_older as "is_older!"
           from jobs j join images i on i.id = j.image_id
           cross join lateral (
               select coalesce(bool_or(o.state <> 'failed'), false) as is_repeated,
                      coalesce(bool_or(o.state = 'failed' and o.id = any($1)), false) as is_older
               from jobs o
               -- All jobs of an image have the same owner. A condition on it would make Postgres read all jobs of an owner for each
               -- failed one, because it expects few.
               where o.image_id = j.image_id and o.created_at > j.created_at
                 and (o.tool, o.tier) = (j.tool, j.tier)
                 and (o.factor, o.mode, o.prompt, o.mask_sha256, o.exact_mask)
                     is not distinct from (j.factor, j.mode, j.prompt, j.mask_sha256, j.exact_mask)
                 and o.state <> 'cancelled' and (o.idempotency_key is null or o.idempotency_key not in ($2 || j.id, $3 || j.id))
           ) later
           where j.id = any($1)"#,
        &ids,
        RETRY_KEY,
        OLD_RETRY_KEY,
    )
    .fetch_all(pool)
    .await?;
    let reasons = found.into_iter().filter_map(|job| {
        let reason = if job.expires {
            NoLongerNeeded::Expires
        } else if job.is_repeated {
            NoLongerNeeded::Repeated
        } else if job.is_older {
            NoLongerNeeded::Older
        } else {
            return None;
        };
        Some((job.id, reason))
    });
    Ok(reasons.collect())
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
    if let Some(earlier) = retried_by_older_version(pool, job).await? {
        return Ok(Submitted::Joined(earlier));
    }
    match submit(pool, &again).await {
        Err(SubmitError::NoSuchImage) => Err(RedriveError::ImageGone),
        other => Ok(other?),
    }
}

/// Returns the retry of a failed job that an older version submitted. A client may have taken its key for another run, which
/// does not count.
async fn retried_by_older_version(pool: &PgPool, job: JobId) -> sqlx::Result<Option<Job>> {
    let retry = sqlx::query_scalar!(
        r#"select o.id as "id: JobId" from jobs j join jobs o on o.owner_id = j.owner_id and o.idempotency_key = $2
           where j.id = $1 and o.image_id = j.image_id and (o.tool, o.tier) = (j.tool, j.tier)
             and (o.factor, o.mode, o.prompt, o.mask_sha256, o.exact_mask)
                 is not distinct from (j.factor, j.mode, j.prompt, j.mask_sha256, j.exact_mask)"#,
        job.uuid(),
        format!("{OLD_RETRY_KEY}{job}"),
    );
    match retry.fetch_optional(pool).await? {
        Some(id) => get(pool, id).await,
        None => Ok(None),
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
    let failure = Failure { code: ENDED_BY_OPERATOR.into(), detail: reason.to_owned() };
    end_active(pool, job, &ACTIVE, JobState::Failed, Some(&failure)).await
}
