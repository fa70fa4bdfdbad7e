//! `/api/jobs`: following a run while it is under way, and calling it off.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use retouch_core::jobs::{self, Job};
use retouch_core::users::User;

use super::caller::{Anybody, Path, Query, SignedIn, id};
use super::problem::Problem;
use super::run::{tell_of_cancelled, view};
use super::views::{JobListView, JobStateView, JobView};
use crate::error::ApiError;
use crate::news::Listener;
use crate::state::App;

/// How often an event stream looks whether the position in the queue changed.
const LOOK: Duration = Duration::from_secs(2);
/// The shortest time between two events of a stream.
const BREATH: Duration = Duration::from_millis(100);

/// Which jobs to list.
#[derive(serde::Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// Only those on this picture.
    image_id: Option<String>,
}

/// The caller's jobs that have not ended.
#[utoipa::path(get, path = "/api/jobs", tag = "jobs", params(JobQuery),
    responses((status = 200, body = JobListView), (status = 400, body = Problem), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_jobs(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Query(query): Query<JobQuery>,
) -> Result<Json<JobListView>, ApiError> {
    // Of a picture that does not exist there are none, and so of one whose id is none.
    let Ok(image) = query.image_id.as_deref().map(str::parse).transpose() else {
        return Ok(Json(JobListView { jobs: Vec::new() }));
    };
    let mut views = Vec::new();
    for job in jobs::active(&app.pool, user.id, image).await? {
        views.push(view(&app, &job).await?);
    }
    Ok(Json(JobListView { jobs: views }))
}

/// One job. A visitor's can be read by whoever knows its id.
#[utoipa::path(get, path = "/api/jobs/{jobId}", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, body = JobView), (status = 401, body = Problem), (status = 404, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn get_job(
    State(app): State<App>,
    Anybody(caller): Anybody,
    Path(job): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    Ok(Json(view(&app, &job).await?))
}

/// Calls a job off; it costs nothing then. One that has ended stays as it is.
#[utoipa::path(delete, path = "/api/jobs/{jobId}", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, body = JobView), (status = 401, body = Problem), (status = 404, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn cancel_job(
    State(app): State<App>,
    Anybody(caller): Anybody,
    Path(job): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    if jobs::cancel(&app.pool, job.id).await? {
        tell_of_cancelled(&app, &[job.id]).await;
    }
    let job = jobs::get(&app.pool, job.id).await?.ok_or(ApiError::NotFound("Job"))?;
    Ok(Json(view(&app, &job).await?))
}

/// Events named `job`, each the whole job: one at once, one at every change, the last with its end.
#[utoipa::path(get, path = "/api/jobs/{jobId}/events", tag = "jobs", params(("jobId" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = JobEvent), (status = 401, body = Problem),
        (status = 404, body = Problem)),
    security((), ("token" = []), ("key" = [])))]
pub async fn job_events(
    State(app): State<App>,
    Anybody(caller): Anybody,
    Path(job): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    let state = Watching { news: app.news.listen(job.id), app, job, sent: None, number: 0 };
    let events = futures::stream::unfold(state, Watching::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// One event of the stream, for the `OpenAPI` document.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "describes what is written as lines of text")]
pub struct JobEvent {
    /// Always `job`.
    #[schema(example = "job")]
    event: String,
    /// The number of the event in this stream, from 1.
    #[schema(example = "1")]
    id: String,
    /// The whole job, as the JSON that `/api/jobs/{jobId}` answers with.
    data: String,
}

struct Watching {
    app: App,
    news: Listener,
    job: Job,
    sent: Option<String>,
    number: u64,
}

impl Watching {
    /// The next event: waits for a change worth telling, ends after the last.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        let ended = [JobStateView::Done, JobStateView::Failed, JobStateView::Cancelled];
        if self.sent.is_some() && ended.contains(&self.job.state.into()) {
            return None;
        }
        loop {
            if self.sent.is_some() {
                tokio::select! {
                    () = self.app.stopping.cancelled() => return None,
                    () = self.news.wait(LOOK) => {}
                }
            }
            // A database that is away for a moment ends no stream; the next look finds it again.
            let Ok(found) = jobs::get(&self.app.pool, self.job.id).await else { continue };
            self.job = found?;
            let Ok(view) = view(&self.app, &self.job).await else { continue };
            let text = serde_json::to_string(&view).ok()?;
            if self.sent.as_ref() == Some(&text) {
                continue;
            }
            if self.sent.is_some() && !self.job.state.is_final() {
                tokio::time::sleep(BREATH).await;
            }
            self.number += 1;
            let event = Event::default().event("job").id(self.number.to_string()).data(&text);
            self.sent = Some(text);
            return Some((Ok(event), self));
        }
    }
}

/// The job, if `caller` may see it: their own, or a visitor's.
async fn visible(app: &App, caller: Option<&User>, job: &str) -> Result<Job, ApiError> {
    let job = jobs::get(&app.pool, id(job, "Job")?).await?.ok_or(ApiError::NotFound("Job"))?;
    match (job.owner, caller) {
        (None, _) => Ok(job),
        (Some(owner), Some(caller)) if owner == caller.id => Ok(job),
        _ => Err(ApiError::NotFound("Job")),
    }
}
