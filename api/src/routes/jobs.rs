//! `/api/jobs`: following and canceling runs.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use chrono::{DateTime, Utc};
use futures::Stream;
use retouch_core::db;
use retouch_core::jobs::{self, Job};
use retouch_core::users::User;

use super::caller::{OptionalUser, SignedIn};
use super::events::MAX_AGE;
use super::problem::Problem;
use super::request::{Path, Query, id};
use super::run::{active_views, view};
use super::views::{JobListView, JobView};
use crate::error::ApiError;
use crate::state::App;
use crate::usecases::run_tool::announce_canceled;
use crate::waiting::job_events::{AccountSubscription, JobSubscription};

/// How often an event stream polls for changes that no event announces, such as the position in the queue.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How many times slower the streams of a job look, at most, when many watch it.
const MAX_SLOWDOWN: u32 = 30;
/// The minimum time between two events of a stream.
const MIN_EVENT_INTERVAL: Duration = Duration::from_millis(100);

/// Filters the list of jobs.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// Only jobs on this image.
    image_id: Option<String>,
}

/// The caller's unfinished jobs.
#[utoipa::path(get, path = "/api/jobs", tag = "jobs", params(JobQuery),
    responses((status = 200, body = JobListView), (status = 400, body = Problem), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_jobs(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<JobQuery>,
) -> Result<Json<JobListView>, ApiError> {
    // A malformed id gets the same response as an image without jobs.
    let Ok(image) = query.image_id.as_deref().map(str::parse).transpose() else {
        return Ok(Json(JobListView { jobs: Vec::new() }));
    };
    let active = jobs::active(&app.pool, user.id, image).await?;
    Ok(Json(JobListView { jobs: active_views(&app, &active).await? }))
}

/// One job. Visitors' jobs can be read without a token by anyone who knows the id.
#[utoipa::path(get, path = "/api/jobs/{jobId}", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, body = JobView), (status = 401, body = Problem), (status = 404, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn get_job(
    State(app): State<App>,
    OptionalUser(caller): OptionalUser,
    Path(job): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    Ok(Json(view(&app, &job).await?))
}

/// Cancels a job, which then costs nothing, and frees its idempotency key: a request with this key runs again. A job that has
/// ended stays unchanged.
#[utoipa::path(delete, path = "/api/jobs/{jobId}", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, body = JobView), (status = 401, body = Problem), (status = 404, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn cancel_job(
    State(app): State<App>,
    OptionalUser(caller): OptionalUser,
    Path(job): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    let (pool, id) = (app.pool.clone(), job.id);
    let cancellation = async move { jobs::cancel_unanswered(&pool, id).await };
    let is_canceled = match job.owner {
        Some(owner) => app.in_turn_of(owner, cancellation).await??,
        None => cancellation.await?,
    };
    if is_canceled {
        announce_canceled(&app, &[job.id]).await;
    }
    let job = jobs::get(&app.pool, job.id).await?.ok_or(ApiError::NotFound("Job"))?;
    Ok(Json(view(&app, &job).await?))
}

/// Streams the job as events named `job`: immediately, on every change, and when it ends. The stream ends after 15 minutes
/// at most; connect again if the job has not ended.
#[utoipa::path(get, path = "/api/jobs/{jobId}/events", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = JobEvent), (status = 401, body = Problem),
        (status = 404, body = Problem), (status = 429, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn job_events(
    State(app): State<App>,
    OptionalUser(caller): OptionalUser,
    Path(job): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    let place = job.owner.map(|owner| app.job_events.subscribe_to_account(owner)).transpose()?;
    let subscription = app.job_events.subscribe(job.id);
    let ends_at = app.clock.now() + MAX_AGE;
    let stream =
        JobStream { subscription, app, job, ends_at, sent: None, number: 0, _place: place };
    let events = futures::stream::unfold(stream, JobStream::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// An event of the stream, for the OpenAPI document.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "documents what is written as text")]
pub struct JobEvent {
    /// Always `job`.
    #[schema(example = "job")]
    event: String,
    /// The number of the event in the stream, from 1.
    #[schema(example = "1")]
    id: String,
    /// The job as JSON, as returned by `/api/jobs/{jobId}`.
    data: String,
}

struct JobStream {
    app: App,
    subscription: JobSubscription,
    job: Job,
    /// See [`MAX_AGE`]: the events contain signed addresses.
    ends_at: DateTime<Utc>,
    /// The last event.
    sent: Option<String>,
    number: u64,
    /// Counts the stream toward the limit of its account.
    _place: Option<AccountSubscription>,
}

impl JobStream {
    /// Waits for a change and returns it as an event; `None` after the job has ended, or if the stream is too old.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        if self.sent.is_some() && self.job.state.is_final() {
            return None;
        }
        let mut is_first_try = self.sent.is_none();
        loop {
            if !std::mem::take(&mut is_first_try) {
                // Anybody may watch a visitor's job: all of its streams together look as often as one would.
                let others = self.subscription.others();
                let poll = POLL_INTERVAL * (others + 1).min(MAX_SLOWDOWN);
                tokio::select! {
                    () = self.app.stopping.cancelled() => return None,
                    () = self.subscription.wait(poll) => {}
                }
                tokio::time::sleep(MIN_EVENT_INTERVAL * others.min(MAX_SLOWDOWN)).await;
                if self.app.clock.now() >= self.ends_at {
                    return None;
                }
            }
            // Survives database outages by trying again.
            let Ok(job) = db::within(jobs::get(&self.app.pool, self.job.id)).await else {
                continue;
            };
            self.job = job?;
            let Ok(view) = view(&self.app, &self.job).await else { continue };
            let text = serde_json::to_string(&view).ok()?;
            if self.sent.as_ref() == Some(&text) {
                continue;
            }
            if self.sent.is_some() && !self.job.state.is_final() {
                tokio::time::sleep(MIN_EVENT_INTERVAL).await;
            }
            self.number += 1;
            let event = Event::default().event("job").id(self.number.to_string()).data(&text);
            self.sent = Some(text);
            return Some((Ok(event), self));
        }
    }
}

/// Returns a job that `caller` may see: their own, or a visitor's.
async fn visible(app: &App, caller: Option<&User>, job: &str) -> Result<Job, ApiError> {
    let job = jobs::get(&app.pool, id(job, "Job")?).await?.ok_or(ApiError::NotFound("Job"))?;
    match (job.owner, caller) {
        (None, _) => Ok(job),
        (Some(owner), Some(caller)) if owner == caller.id => Ok(job),
        _ => Err(ApiError::NotFound("Job")),
    }
}
