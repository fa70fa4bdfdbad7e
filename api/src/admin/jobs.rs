//! `admin jobs`: lists, retries and ends jobs.

use anyhow::Context;
use clap::Subcommand;
use retouch_catalog::Factor;
use retouch_core::JobId;
use retouch_core::db::PgPool;
use retouch_core::jobs::{self, Job, Submitted};
use serde_json::{Value, json};

use super::answer::Answer;
use super::table::table;

#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// List failed jobs, newest first.
    Dead {
        /// Only jobs with this failure code, e.g. `worker_crashed`.
        #[arg(long)]
        code: Option<String>,
        /// Maximum number of jobs.
        #[arg(long, default_value_t = 50)]
        limit: i64,
    },
    /// Retry a failed job as a new job, at the same price. Repeating the command creates no further job.
    Retry {
        /// The failed job.
        job: JobId,
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
            Self::Dead { code, limit } => dead(pool, code.as_deref(), *limit).await,
            Self::Retry { job } => retry(pool, *job).await,
            Self::Fail { job, reason } => fail(pool, *job, reason).await,
        }
    }
}

async fn dead(pool: &PgPool, code: Option<&str>, limit: i64) -> anyhow::Result<Answer> {
    let failed = jobs::failed(pool, code, limit).await.context("reading the jobs")?;
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
