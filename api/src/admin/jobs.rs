//! `admin jobs`: failed jobs, and what can be done about them.

use anyhow::Context;
use clap::Subcommand;
use retouch_catalog::Factor;
use retouch_core::JobId;
use retouch_core::db::PgPool;
use retouch_core::jobs::{self, Job, Submitted};
use serde_json::{Value, json};

use super::Answer;
use super::table::table;

#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// List the jobs that failed, the newest first.
    Dead {
        /// Only those that failed for this reason, e.g. `worker_crashed`.
        #[arg(long)]
        code: Option<String>,
        /// How many at most.
        #[arg(long, default_value_t = 50)]
        most: i64,
    },
    /// Try a failed job again, as a new one: its price is held again and debited when it is done. Asked
    /// twice, there is still one new job.
    Retry {
        /// The failed job.
        job: JobId,
    },
    /// End a job that waits or runs. It costs nothing.
    Fail {
        /// The job.
        job: JobId,
        /// Why, for its owner to read.
        #[arg(long)]
        reason: String,
    },
}

impl Jobs {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        match self {
            Self::Dead { code, most } => dead(pool, code.as_deref(), *most).await,
            Self::Retry { job } => retry(pool, *job).await,
            Self::Fail { job, reason } => fail(pool, *job, reason).await,
        }
    }
}

async fn dead(pool: &PgPool, code: Option<&str>, most: i64) -> anyhow::Result<Answer> {
    let failed = jobs::failed(pool, code, most).await.context("reading the jobs")?;
    let text = if failed.is_empty() { "No job failed.".into() } else { listed(&failed) };
    Ok(Answer::good(text, failed.iter().map(as_json).collect()))
}

async fn retry(pool: &PgPool, job: JobId) -> anyhow::Result<Answer> {
    let submitted = jobs::redrive(pool, job).await.context("trying the job again")?;
    let is_new = matches!(submitted, Submitted::New(_));
    let again = submitted.into_job();
    if is_new {
        // No doorbell: whichever worker sweeps next finds it within a second.
        tracing::info!(job.id = %again.id, "Job {} tries again what job {job} did not do", again.id);
    }
    let text = if is_new {
        format!("Job {} waits in its place; {} credits are held.", again.id, again.cost)
    } else {
        format!("Job {} was made for that before; it is {}.", again.id, again.state.as_str())
    };
    Ok(Answer::good(text, json!({ "isNew": is_new, "job": as_json(&again) })))
}

async fn fail(pool: &PgPool, job: JobId, reason: &str) -> anyhow::Result<Answer> {
    let ended = jobs::fail_by_hand(pool, job, reason).await.context("ending the job")?;
    anyhow::ensure!(ended, "there is no such job, or it has ended already");
    tracing::info!(job.id = %job, "Ended job {job} by hand");
    let text = format!("Job {job} has failed; its hold was given back.");
    Ok(Answer::good(text, json!({ "job": job })))
}

/// Jobs as a table.
pub fn listed(jobs: &[Job]) -> String {
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    table(&["job", "submitted (UTC)", "tool", "tier", "cost", "state", "starts", "why"], &rows)
}

fn row(job: &Job) -> Vec<String> {
    let factor = job.tool.factor().map(|factor| format!(" {}X", Factor::get(factor)));
    let picture = if job.image.is_some() { "" } else { " (its picture is gone)" };
    let why = job.failure.as_ref().map(|failure| format!("{}: {}", failure.code, failure.detail));
    vec![
        job.id.to_string(),
        job.created_at.format("%F %T").to_string(),
        format!("{}{}", job.tool.name(), factor.unwrap_or_default()),
        job.tier.as_str().into(),
        job.cost.to_string(),
        job.state.as_str().into(),
        job.attempt.to_string(),
        why.unwrap_or_default() + picture,
    ]
}

/// A job for programs; without the words of its owner, which are none of an operator's business.
pub fn as_json(job: &Job) -> Value {
    json!({
        "id": job.id, "user": job.owner, "image": job.image, "tool": job.tool.name(),
        "factor": job.tool.factor_column(), "tier": job.tier.as_str(), "cost": job.cost,
        "state": job.state, "attempt": job.attempt, "failure": job.failure,
        "createdAt": job.created_at, "startedAt": job.started_at, "finishedAt": job.finished_at,
    })
}
