//! `/api/events`: everything that happens to the caller's runs and credits, in one stream.

use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::Event;
use retouch_core::jobs::{self, Job};
use retouch_core::users;
use retouch_core::{JobId, UserId, db};
use tokio::time::Instant;

use super::{MAX_AGE, respond};
use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::json::text;
use crate::http::problem::Problem;
use crate::routes::jobs::views::{active_job_views, job_view};
use crate::routes::views::{AccountView, UserView};
use crate::state::App;
use crate::waiting::job_events::AccountSubscription;

/// How often the stream polls while a job is active, for changes that no event announces.
const ACTIVE_POLL: Duration = Duration::from_secs(2);
/// The same without an active job. Credits that were bought and runs that another API process accepted appear this
/// late.
const IDLE_POLL: Duration = Duration::from_secs(4);
/// Maximum time between two polls of a stream. A stream that looks less than once a minute would miss jobs; see
/// [`jobs::active_or_recent`].
const MAX_POLL: Duration = Duration::from_secs(30);
/// The minimum time between two looks at the account.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Streams the caller's runs and credits. The first event, `account`, has the caller and the unfinished jobs. Then comes
/// `job` for every new, changed or ended job, and `user` for every change of the balance. The stream ends after 15
/// minutes; connect again. An account can have 50 streams at each API process, including streams of single jobs.
#[utoipa::path(get, path = "/api/events", tag = "jobs",
    responses((status = 200, content_type = "text/event-stream", body = AccountEvent), (status = 401, body = Problem),
        (status = 429, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn account_events(
    State(app): State<App>,
    SignedIn(user): SignedIn,
) -> Result<impl IntoResponse, ApiError> {
    let stream = AccountStream {
        subscription: app.job_events.subscribe_to_account(user.id)?,
        app,
        user: user.id,
        ends_at: Instant::now() + MAX_AGE,
        sent: None,
        pending: VecDeque::new(),
    };
    let events = futures::stream::unfold(stream, AccountStream::next);
    Ok(respond(events))
}

/// An event of the stream, for the OpenAPI document.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "documents what is written as text")]
pub struct AccountEvent {
    /// `account`, `job`, or `user`.
    #[schema(example = "job")]
    event: String,
    /// An `Account`, a `Job`, or a `User`, as JSON.
    data: String,
}

struct AccountStream {
    app: App,
    subscription: AccountSubscription,
    user: UserId,
    ends_at: Instant,
    /// What the client knows; `None` before the first event.
    sent: Option<Known>,
    pending: VecDeque<Event>,
}

struct Known {
    /// The user, as JSON.
    user: String,
    /// The active jobs, as JSON.
    active: HashMap<JobId, String>,
    /// Recent jobs whose end the client knows.
    ended: HashSet<JobId>,
}

impl AccountStream {
    /// Waits for a change and returns it as an event; `None` if the stream has to end.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some((Ok(event), self));
            }
            // From before the look, so that no change is missed in between.
            let changed = self.subscription.changed();
            match self.look().await {
                Ok(true) => {}
                Ok(false) => return None,
                // Survives database outages by trying again.
                Err(error) => tracing::debug!(%error, "An event stream could not read its account"),
            }
            if !self.pending.is_empty() {
                continue;
            }
            let is_idle = self.sent.as_ref().is_some_and(|sent| sent.active.is_empty());
            let poll = if is_idle { IDLE_POLL } else { ACTIVE_POLL };
            // All streams of an account together look about as often as one would.
            let streams = self.subscription.streams();
            tokio::select! {
                () = self.app.stopping.cancelled() => return None,
                () = tokio::time::sleep_until(self.ends_at) => return None,
                () = tokio::time::sleep((poll * streams).min(MAX_POLL)) => {}
                () = changed => tokio::time::sleep(MIN_INTERVAL * streams).await,
            }
        }
    }

    /// Reads the account and queues an event for everything that the client does not know. Returns false if the account
    /// was deleted.
    async fn look(&mut self) -> Result<bool, ApiError> {
        let pool = &self.app.pool;
        let jobs = db::within(jobs::active_or_recent(pool, self.user)).await?;
        // After the jobs: the balance is never older than the end of a job.
        let Some(user) = db::within(users::get(pool, self.user)).await? else { return Ok(false) };
        let (ended, active): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.state.is_final());
        self.subscription.watch(active.iter().map(|job| job.id));
        let active = active_job_views(&self.app, &active).await?;
        let user = UserView::from(user);
        let now = Known {
            user: text(&user)?,
            active: active
                .iter()
                .map(|job| Ok((job.id.into(), text(job)?)))
                .collect::<Result<_, ApiError>>()?,
            ended: ended.iter().map(|job| job.id).collect(),
        };
        match &self.sent {
            None => {
                let account = text(&AccountView { user, jobs: active })?;
                self.pending.push_back(event("account", &account));
            }
            Some(before) => {
                let events = self.changes(before, &now).await?;
                self.pending.extend(events);
            }
        }
        self.sent = Some(now);
        Ok(true)
    }

    async fn changes(&self, before: &Known, now: &Known) -> Result<Vec<Event>, ApiError> {
        let mut events = Vec::new();
        for (id, job) in &now.active {
            if before.active.get(id) != Some(job) {
                events.push(event("job", job));
            }
        }
        let was_active = before.active.keys().filter(|id| !now.active.contains_key(id));
        let ended_unseen =
            now.ended.difference(&before.ended).filter(|id| !before.active.contains_key(id));
        for id in was_active.chain(ended_unseen) {
            // Missing if its account was just deleted.
            if let Some(job) = db::within(jobs::get(&self.app.pool, *id)).await? {
                events.push(event("job", &text(&job_view(&self.app, &job).await?)?));
            }
        }
        // Send the balance last, so that a client that shows it already shows the job it paid for.
        if before.user != now.user {
            events.push(event("user", &now.user));
        }
        Ok(events)
    }
}

fn event(name: &str, data: &str) -> Event {
    Event::default().event(name).data(data)
}
