//! `/api/jobs/{jobId}/events`: everything that happens to one job.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::Event;
use chrono::{DateTime, Utc};
use retouch_core::db;
use retouch_core::jobs::{self, Job};

use super::{MAX_AGE, respond};
use crate::error::ApiError;
use crate::http::caller::OptionalUser;
use crate::http::json;
use crate::http::problem::Problem;
use crate::http::request::Path;
use crate::routes::jobs::views::job_view;
use crate::routes::jobs::visible;
use crate::state::App;
use crate::waiting::job_events::{AccountSubscription, JobSubscription};

/// How often an event stream polls for changes that no event announces, such as the position in the queue.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How many times slower the streams of a job look, at most, when many watch it.
const MAX_SLOWDOWN: u32 = 30;
/// The minimum time between two events of a stream.
const MIN_EVENT_INTERVAL: Duration = Duration::from_millis(100);

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
) -> Result<impl IntoResponse, ApiError> {
    let job = visible(&app, caller.as_ref(), &job).await?;
    let place = job.owner.map(|owner| app.job_events.subscribe_to_account(owner)).transpose()?;
    let subscription = app.job_events.subscribe(job.id);
    let ends_at = app.clock.now() + MAX_AGE;
    let stream =
        JobStream { subscription, app, job, ends_at, sent: None, number: 0, _place: place };
    let events = futures::stream::unfold(stream, JobStream::next);
    Ok(respond(events))
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
            let Ok(view) = job_view(&self.app, &self.job).await else { continue };
            let text = json::text(&view).ok()?;
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
