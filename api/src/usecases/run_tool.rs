//! Runs a tool on a stored image: holds the price, queues the job and waits for its result.

use std::time::Duration;

use retouch_catalog::{Tier, Tool};
use retouch_core::db::{self, PgPool};
use retouch_core::jobs::{self, Job, JobState, NewJob, Submitted};
use retouch_core::queue::JobEvent;
use retouch_core::results::{self, ResultImage};
use retouch_core::{ImageId, JobId, UserId};
use tokio::sync::watch;
use tokio::time::Instant;

use super::find_image::owned_image;
use crate::error::ApiError;
use crate::state::App;

/// A request to run a tool.
#[derive(Clone, Debug)]
pub struct RunRequest {
    pub image: ImageId,
    pub tool: Tool,
    pub tier: Tier,
    /// Makes a repeat return the first response.
    pub idempotency_key: Option<String>,
    pub waiting: Waiting,
}

/// How a request waits for its job.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Maximum wait for the result; zero returns the job immediately.
    pub wait: Duration,
    /// How long the idempotency key counts if it was derived from the content; see [`jobs::submit_as`]. Such a run is
    /// canceled once all clients that wait for it hung up.
    pub repeat_window: Option<Duration>,
    /// Whether to submit the job again if it was canceled, and this request had only joined it.
    pub resubmits: bool,
    /// Receives the id of the job once it is submitted or joined.
    pub started: Option<watch::Sender<Option<JobId>>>,
}

impl Waiting {
    /// Waits up to `wait`, for a run that outlives its clients.
    pub fn up_to(wait: Duration) -> Self {
        Self { wait, ..Self::default() }
    }
}

/// The state of a run when the response is due.
#[derive(Debug)]
pub enum RunOutcome {
    /// The new results.
    Done(Vec<ResultImage>),
    /// The job, which has not ended.
    Pending(Job),
}

/// Runs a tool for a signed-in user.
pub async fn run_tool(
    app: &App,
    user: UserId,
    request: RunRequest,
) -> Result<RunOutcome, ApiError> {
    let image = owned_image(app, user, request.image).await?;
    check_size(app, request.tool, image.width.max(image.height))?;
    let job = NewJob {
        owner: Some(user),
        image: image.id,
        tool: request.tool,
        fix: None,
        tier: request.tier,
        idempotency_key: request.idempotency_key,
        queue_limit: Some(app.limits.queue_limit(request.tier)),
    };
    submit_and_wait(app, &job, request.waiting).await
}

/// Rejects an image whose longest side, in pixels, exceeds the tool's limit.
pub(super) fn check_size(app: &App, tool: Tool, longest_side: i32) -> Result<(), ApiError> {
    let max = app.limits.max_dimension_of(tool.name());
    let fits = u32::try_from(longest_side).is_ok_and(|longest_side| longest_side <= max);
    if fits { Ok(()) } else { Err(ApiError::DimensionsTooBig { max }) }
}

/// Submits the job, rings the doorbell and waits for the end of the job. If the doorbell fails, the sweeper rings it
/// later.
///
/// Once the job is submitted, no error asks for a repeat, because a repeat without a key starts, and charges, another run.
pub(super) async fn submit_and_wait(
    app: &App,
    new: &NewJob,
    waiting: Waiting,
) -> Result<RunOutcome, ApiError> {
    let Waiting { wait, repeat_window, resubmits, started } = waiting;
    let deadline = Instant::now() + wait;
    let mut last_canceled = None;
    loop {
        let id = JobId::new();
        let mut subscription = app.job_events.subscribe(id);
        // Attend before submitting: the submission may commit even if the client hangs up.
        let mut attendance = repeat_window
            .map(|_| app.attended_jobs.attend(id, Box::pin(cancel_abandoned(app.clone(), id))));
        let submitted = submit(app, id, new, repeat_window).await?;
        let is_joined = matches!(submitted, Submitted::Joined(_));
        let mut job = match submitted {
            Submitted::Joined(job) => {
                subscription = app.job_events.subscribe(job.id);
                if let Some(attendance) = &mut attendance {
                    attendance.end();
                    *attendance = app.attended_jobs.join(job.id);
                }
                // The job may have ended before this subscription.
                let latest = db::within(jobs::get(&app.pool, job.id)).await;
                latest.ok().flatten().unwrap_or(job)
            }
            Submitted::New(job) => {
                metrics::counter!("retouch_jobs_submitted_total",
                    "tool" => job.tool.name().as_str(), "tier" => job.tier.as_str())
                .increment(1);
                if let Some(owner) = job.owner {
                    app.job_events.wake_owner(owner);
                }
                if let Err(error) = app.queue.ring(job.class(), job.id).await {
                    tracing::warn!(%error, job.id = %job.id, "Could not ring the doorbell for job {}", job.id);
                }
                job
            }
        };
        if let Some(started) = &started {
            started.send_replace(Some(job.id));
        }
        // A caller that does not wait wants the job, even if it has ended.
        if wait.is_zero() {
            return Ok(RunOutcome::Pending(job));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        job = subscription.wait_for_end(&app.pool, job, left, &app.stopping).await?;
        let waited_for = job.id;
        let outcome = match outcome_of(app, job.clone()).await {
            Err(ApiError::Unavailable { .. }) => Ok(RunOutcome::Pending(job)),
            outcome => outcome,
        };
        let has_time = Instant::now() < deadline && !app.stopping.is_cancelled();
        let resubmits = resubmits && is_joined && has_time;
        // Once for each job: one that was canceled but kept its key would be joined again and again.
        if resubmits
            && matches!(outcome, Err(ApiError::Canceled))
            && last_canceled.replace(waited_for) != Some(waited_for)
        {
            continue;
        }
        if let Some(attendance) = &mut attendance {
            attendance.end();
        }
        return outcome;
    }
}

/// Submits the job in the turn of its owner. Unlike other work in that turn, it ends if the client hangs up: nobody would
/// wait for the job.
async fn submit(
    app: &App,
    id: JobId,
    new: &NewJob,
    repeat_window: Option<Duration>,
) -> Result<Submitted, ApiError> {
    let _turn = match new.owner {
        Some(owner) => Some(app.transactions.next(owner).await?),
        None => None,
    };
    Ok(jobs::submit_as(&app.pool, id, new, repeat_window).await?)
}

/// Waits for the end of an earlier job, at most `wait`. With zero, returns it at once, even if it has ended.
pub(super) async fn await_job(app: &App, job: Job, wait: Duration) -> Result<RunOutcome, ApiError> {
    if wait.is_zero() {
        return Ok(RunOutcome::Pending(job));
    }
    let subscription = app.job_events.subscribe(job.id);
    // It may have ended before this subscription.
    let job = db::within(jobs::get(&app.pool, job.id)).await?.unwrap_or(job);
    let job = subscription.wait_for_end(&app.pool, job, wait, &app.stopping).await?;
    outcome_of(app, job).await
}

/// Joins an attended job, as a repeat of the request that submitted it, and waits at most `wait`.
pub(super) async fn join_job(app: &App, job: Job, wait: Duration) -> Result<RunOutcome, ApiError> {
    let mut attendance = app.attended_jobs.join(job.id);
    let outcome = await_job(app, job, wait).await;
    attendance.end();
    outcome
}

/// Cancels a job whose clients have all hung up.
async fn cancel_abandoned(app: App, job: JobId) {
    match jobs::cancel(&app.pool, job).await {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!(job.id = %job, "Canceled job {job}: its client hung up");
            announce_canceled(&app, &[job]).await;
        }
        Err(error) => {
            tracing::warn!(%error, job.id = %job, "Could not cancel job {job}, whose client hung up");
        }
    }
}

/// Returns the results of a job, its failure, or the job if it has not ended.
pub(super) async fn outcome_of(app: &App, job: Job) -> Result<RunOutcome, ApiError> {
    match job.state {
        JobState::Queued | JobState::Running => Ok(RunOutcome::Pending(job)),
        JobState::Done => {
            let results = results_of(&app.pool, job.id).await?;
            if !results.is_empty() {
                return Ok(RunOutcome::Done(results));
            }
            // The results were deleted, or the state came from an event that was wrong.
            match db::within(jobs::get(&app.pool, job.id)).await? {
                Some(job) if job.state == JobState::Done => Ok(RunOutcome::Done(results)),
                Some(job) => Ok(RunOutcome::Pending(job)),
                None => Err(ApiError::NotFound("Job")),
            }
        }
        JobState::Cancelled => Err(ApiError::Canceled),
        JobState::Failed => Err(match job.failure {
            Some(failure) => ApiError::RunFailed(failure),
            None => ApiError::Internal(anyhow::anyhow!("job {} failed without a reason", job.id)),
        }),
    }
}

/// Publishes that jobs were canceled, to waiting requests and to workers.
pub async fn announce_canceled(app: &App, canceled: &[JobId]) {
    for job in canceled {
        app.job_events.publish_locally(*job);
    }
    let events: Vec<_> = canceled.iter().copied().map(JobEvent::changed).collect();
    if let Err(error) = app.queue.publish_all(&events).await {
        tracing::warn!(%error, "Could not announce that {} jobs were canceled", canceled.len());
    }
}

/// Returns the results of a job.
pub async fn results_of(pool: &PgPool, job: JobId) -> Result<Vec<ResultImage>, ApiError> {
    Ok(db::within(results::for_job(pool, job)).await?)
}
