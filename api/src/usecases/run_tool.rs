//! Running a tool on a stored picture: hold the price, queue the job, wait for its result.

use std::time::Duration;

use retouch_catalog::{Tier, Tool};
use retouch_core::db::PgPool;
use retouch_core::jobs::{self, Job, JobState, NewJob, Submitted};
use retouch_core::queue::JobNews;
use retouch_core::results::{self, ResultImage};
use retouch_core::{ImageId, JobId, UserId, images};

use crate::error::ApiError;
use crate::state::App;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Run {
    /// The picture.
    pub image: ImageId,
    /// What is to be done with it.
    pub tool: Tool,
    /// At the user's cost, or free.
    pub tier: Tier,
    /// Makes a repeat return the first answer.
    pub idempotency_key: Option<String>,
    /// How long to wait for the result; zero to get the job at once.
    pub wait: Duration,
}

/// How it stands when the answer is due.
#[derive(Debug)]
pub enum Ran {
    /// The new results.
    Done(Vec<ResultImage>),
    /// Still under way.
    Pending(Job),
}

/// Runs a tool for a signed-in user.
pub async fn run_tool(app: &App, user: UserId, run: Run) -> Result<Ran, ApiError> {
    let image = images::owned(&app.pool, user, run.image).await?;
    let image = image.ok_or(ApiError::NotFound("Image"))?;
    check_size(app, run.tool, image.width.max(image.height))?;
    let new = NewJob {
        owner: Some(user),
        image: image.id,
        tool: run.tool,
        fix: None,
        tier: run.tier,
        idempotency_key: run.idempotency_key,
        most_waiting: Some(app.limits.most_waiting(run.tier)),
    };
    submit_and_wait(app, &new, run.wait).await
}

/// Refuses a picture whose longest side is more than a tool takes.
pub(super) fn check_size(app: &App, tool: Tool, longest: i32) -> Result<(), ApiError> {
    let max = app.limits.max_dimension_of(tool.name());
    let fits = u32::try_from(longest).is_ok_and(|longest| longest <= max);
    if fits { Ok(()) } else { Err(ApiError::DimensionsTooBig { max }) }
}

/// Submits the job, rings for it and waits for its end, for at most `wait`. A doorbell that cannot be rung is
/// the sweeper's to ring.
pub(super) async fn submit_and_wait(
    app: &App,
    new: &NewJob,
    wait: Duration,
) -> Result<Ran, ApiError> {
    let id = JobId::new();
    let mut news = app.news.listen(id);
    let mut job = match jobs::submit_as(&app.pool, id, new).await? {
        Submitted::Joined(job) => {
            news = app.news.listen(job.id);
            // It may have ended before anybody listened.
            jobs::get(&app.pool, job.id).await?.unwrap_or(job)
        }
        Submitted::New(job) => {
            metrics::counter!("retouch_jobs_submitted_total",
                "tool" => job.tool.name().as_str(), "tier" => job.tier.as_str())
            .increment(1);
            if let Err(error) = app.queue.ring(job.class(), job.id).await {
                tracing::warn!(%error, job.id = %job.id, "Could not ring for job {}", job.id);
            }
            job
        }
    };
    // With nothing waited for, the caller wants the job whatever its state.
    if wait.is_zero() {
        return Ok(Ran::Pending(job));
    }
    job = news.wait_for_end(&app.pool, job, wait).await?;
    came_of(app, job).await
}

/// What came of a job so far.
pub(super) async fn came_of(app: &App, job: Job) -> Result<Ran, ApiError> {
    match job.state {
        JobState::Queued | JobState::Running => Ok(Ran::Pending(job)),
        JobState::Done => {
            let results = results_of(&app.pool, job.id).await?;
            if !results.is_empty() {
                return Ok(Ran::Done(results));
            }
            // It was deleted since, or whoever said that the job is done was wrong.
            match jobs::get(&app.pool, job.id).await? {
                Some(job) if job.state == JobState::Done => Ok(Ran::Done(results)),
                Some(job) => Ok(Ran::Pending(job)),
                None => Err(ApiError::NotFound("Job")),
            }
        }
        JobState::Cancelled => Err(ApiError::Cancelled),
        JobState::Failed => Err(match job.failure {
            Some(failure) => ApiError::RunFailed(failure),
            None => ApiError::Internal(anyhow::anyhow!("job {} failed without a reason", job.id)),
        }),
    }
}

/// Tells everybody, the worker too, that jobs were called off.
pub async fn tell_of_cancelled(app: &App, cancelled: &[JobId]) {
    for job in cancelled {
        app.news.tell_here(*job);
        if let Err(error) = app.queue.tell(JobNews::changed(*job)).await {
            tracing::warn!(%error, job.id = %job, "Could not tell that job {job} was cancelled");
        }
    }
}

/// What a job made.
pub async fn results_of(pool: &PgPool, job: JobId) -> Result<Vec<ResultImage>, ApiError> {
    Ok(results::of_job(pool, job).await?)
}
