//! `admin jobs`: lists, retries and ends jobs.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context;
use clap::Subcommand;
use retouch_catalog::Factor;
use retouch_core::JobId;
use retouch_core::db::PgPool;
use retouch_core::jobs::{
    self, ENDED_BY_OPERATOR, FailedFilter, Failure, Job, RedriveError, SubmitError, Submitted,
};
use serde_json::{Value, json};

use super::answer::Answer;
use super::table::table;

#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// List failed jobs, newest first.
    #[command(alias = "dead")]
    Failed {
        /// Only jobs with this failure code, e.g. `worker_crashed`.
        #[arg(long)]
        code: Option<String>,
        /// Maximum number of jobs.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
        limit: i64,
    },
    /// Retry one failed job, or with `--since` all recent ones, as new jobs at the same price. Repeating the command
    /// creates no further jobs. `--since` skips jobs that their owners have already rerun and jobs whose pictures
    /// expire.
    Retry {
        /// The failed job.
        #[arg(required_unless_present = "since", conflicts_with_all = ["since", "code"])]
        job: Option<JobId>,
        /// Retry the jobs that failed within this time, e.g. `90m` or `2h`.
        #[arg(long, value_parser = duration)]
        since: Option<Duration>,
        /// Of those, only jobs with this failure code, e.g. `storage_unavailable`.
        #[arg(long, alias = "failure", requires = "since")]
        code: Option<String>,
    },
    /// Make a queued or running job fail. It costs nothing.
    Fail {
        /// The job.
        job: JobId,
        /// Reason, shown to the job's owner.
        #[arg(long)]
        reason: String,
    },
}

impl Jobs {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        match self {
            Self::Failed { code, limit } => failed(pool, code.as_deref(), *limit).await,
            Self::Retry { job: Some(job), .. } => retry(pool, *job).await,
            Self::Retry { job: None, since, code } => {
                let filter = FailedFilter { code: code.as_deref(), within: *since };
                retry_all(pool, filter).await
            }
            Self::Fail { job, reason } => fail(pool, *job, reason).await,
        }
    }
}

async fn failed(pool: &PgPool, code: Option<&str>, limit: i64) -> anyhow::Result<Answer> {
    let filter = FailedFilter { code, within: None };
    let failed = jobs::failed(pool, filter, Some(limit)).await.context("reading the jobs")?;
    let text = if failed.is_empty() { "No job failed.".into() } else { as_table(&failed) };
    Ok(Answer::good(text, failed.iter().map(as_json).collect()))
}

async fn retry(pool: &PgPool, job: JobId) -> anyhow::Result<Answer> {
    let submitted = jobs::redrive(pool, job).await.context("retrying the job")?;
    let is_new = matches!(submitted, Submitted::New(_));
    let retry = submitted.into_job();
    if is_new {
        // Rings no doorbell: a worker's sweep finds the job within a second.
        tracing::info!(job.id = %retry.id, "Job {} retries job {job}", retry.id);
    }
    let text = if is_new {
        format!("Queued job {}; {} credits are held.", retry.id, retry.cost)
    } else {
        format!("Already retried as job {}, which is {}.", retry.id, retry.state.as_str())
    };
    Ok(Answer::good(text, json!({ "isNew": is_new, "job": as_json(&retry) })))
}

/// Retries failed jobs, the oldest first, except those that their owners no longer need. Without a code, it also leaves out jobs that
/// would fail again and those that an operator ended. A job that cannot be retried does not keep the others from it.
async fn retry_all(pool: &PgPool, filter: FailedFilter<'_>) -> anyhow::Result<Answer> {
    let mut failed = jobs::failed(pool, filter, None).await.context("reading the jobs")?;
    failed.reverse();
    let (mut queued, mut earlier, mut refused) = (Vec::new(), 0, Vec::new());
    failed.retain(|job| {
        let is_final =
            |failure: &&Failure| failure.is_of_input() || failure.code == ENDED_BY_OPERATOR;
        let last = job.failure.as_ref().filter(is_final).filter(|_| filter.code.is_none());
        if let Some(Failure { code, .. }) = last {
            let reason = format!("it failed with {code}; to retry it, add --code {code}");
            refused.push((job.id, reason));
        }
        last.is_none()
    });
    let ids: Vec<_> = failed.iter().map(|job| job.id).collect();
    let left_out = jobs::no_longer_needed(pool, &ids).await.context("reading the jobs")?;
    for job in ids {
        if let Some(reason) = left_out.get(&job) {
            refused.push((job, reason.to_string()));
            continue;
        }
        match jobs::redrive(pool, job).await {
            Ok(Submitted::New(retry)) => {
                tracing::info!(job.id = %retry.id, "Job {} retries job {job}", retry.id);
                queued.push(retry.id);
            }
            Ok(Submitted::Joined(_)) => earlier += 1,
            Err(RedriveError::Submit(SubmitError::Database(error))) => {
                return Err(error).context("retrying a job");
            }
            Err(refusal) => refused.push((job, refusal.to_string())),
        }
    }
    let mut text = format!("Queued {}; {earlier} had been retried before.", count_of(queued.len()));
    for (job, reason) in &refused {
        let _ = write!(text, "\nNot retried: job {job}: {reason}");
    }
    let refused: Vec<_> =
        refused.iter().map(|(job, reason)| json!({ "job": job, "reason": reason })).collect();
    Ok(Answer::good(text, json!({ "queued": queued, "earlier": earlier, "refused": refused })))
}

fn count_of(jobs: usize) -> String {
    format!("{jobs} job{}", if jobs == 1 { "" } else { "s" })
}

/// Parses a number of seconds, minutes, hours or days: `30s`, `90m`, `2h`, `1d`.
fn duration(text: &str) -> Result<Duration, String> {
    let split = text.len() - text.chars().last().map_or(0, char::len_utf8);
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => 0,
    };
    match number.parse::<u32>() {
        Ok(number) if unit > 0 => Ok(Duration::from_secs(u64::from(number) * unit)),
        _ => Err("expected a number and a unit, like 30s, 90m, 2h or 1d".into()),
    }
}

async fn fail(pool: &PgPool, job: JobId, reason: &str) -> anyhow::Result<Answer> {
    let ended = jobs::fail_by_operator(pool, job, reason).await.context("ending the job")?;
    anyhow::ensure!(ended, "this job does not exist or has already ended");
    tracing::info!(job.id = %job, "An operator ended job {job}");
    let text = format!("Job {job} has failed; its hold was released.");
    Ok(Answer::good(text, json!({ "job": job })))
}

/// Renders jobs as a table.
pub fn as_table(jobs: &[Job]) -> String {
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    table(
        &["job", "submitted (UTC)", "tool", "tier", "cost", "state", "attempts", "failure"],
        &rows,
    )
}

fn row(job: &Job) -> Vec<String> {
    let factor = job.tool.factor().map(|factor| format!(" {}X", Factor::get(factor)));
    let image = if job.image.is_some() { "" } else { " (image deleted)" };
    let failure =
        job.failure.as_ref().map(|failure| format!("{}: {}", failure.code, failure.detail));
    vec![
        job.id.to_string(),
        job.created_at.format("%F %T").to_string(),
        format!("{}{}", job.tool.name(), factor.unwrap_or_default()),
        job.tier.as_str().into(),
        job.cost.to_string(),
        job.state.as_str().into(),
        job.attempt.to_string(),
        failure.unwrap_or_default() + image,
    ]
}

/// Renders a job as JSON, without the prompt, which is private.
pub fn as_json(job: &Job) -> Value {
    json!({
        "id": job.id, "user": job.owner, "image": job.image, "tool": job.tool.name(),
        "factor": job.tool.factor_column(), "tier": job.tier.as_str(), "cost": job.cost,
        "state": job.state, "attempt": job.attempt, "failure": job.failure,
        "createdAt": job.created_at, "startedAt": job.started_at, "finishedAt": job.finished_at,
    })
}
