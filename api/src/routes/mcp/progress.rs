//! Reports the progress of a call to a client that asked for it.

use std::time::Duration;

use retouch_core::jobs::{self, JobState};
use retouch_core::{JobId, db};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::watch;

use crate::error::ApiError;
use crate::routes::jobs::views::job_view;
use crate::routes::views::JobView;
use crate::state::App;

/// Maximum time without a notification. Many clients give up after a minute of silence.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// The shortest time between two notifications.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// How much the progress rises at least: every notification must report more than the one before.
const STEP: f64 = 1e-4;

/// Sends notifications until it is dropped.
pub async fn report(
    app: &App,
    peer: &Peer<RoleServer>,
    token: Option<ProgressToken>,
    started: watch::Receiver<Option<JobId>>,
) {
    if let Some(token) = token
        && let Err(error) = report_until_end(app, peer, token, started).await
    {
        tracing::debug!(%error, "Stopped reporting the progress of a call");
    }
    std::future::pending::<()>().await;
}

async fn report_until_end(
    app: &App,
    peer: &Peer<RoleServer>,
    token: ProgressToken,
    mut started: watch::Receiver<Option<JobId>>,
) -> Result<(), ApiError> {
    let mut last = 0.0;
    notify(peer, &token, last, "Preparing the picture.".to_owned()).await?;
    let started = started.wait_for(Option::is_some).await.map_err(anyhow::Error::from)?.to_owned();
    let Some(id) = started else { return Ok(()) };
    let mut subscription = app.job_events.subscribe(id);
    let mut said = String::new();
    let mut silent_since = tokio::time::Instant::now();
    loop {
        let job = db::within(jobs::get(&app.pool, id)).await?.ok_or(ApiError::NotFound("Job"))?;
        if job.state.is_final() {
            return Ok(());
        }
        let job = job_view(app, &job).await?;
        let message = describe(&job);
        if message != said || silent_since.elapsed() >= HEARTBEAT {
            let fraction = job.progress.map_or(0.0, |progress| f64::from(progress.fraction));
            last = fraction.max(last + STEP).min(1.0);
            notify(peer, &token, last, message.clone()).await?;
            said = message;
            silent_since = tokio::time::Instant::now();
        }
        tokio::time::sleep(MIN_INTERVAL).await;
        subscription.wait(Duration::from_secs(2)).await;
    }
}

async fn notify(
    peer: &Peer<RoleServer>,
    token: &ProgressToken,
    progress: f64,
    message: String,
) -> Result<(), ApiError> {
    let progress = ProgressNotificationParam::new(token.clone(), progress).with_total(1.0);
    let sent = peer.notify_progress(progress.with_message(message)).await;
    sent.map_err(|error| ApiError::Internal(error.into()))
}

fn describe(job: &JobView) -> String {
    let left = job.eta_seconds.map_or_else(String::new, |secs| format!(", about {secs} s left"));
    match (job.state, job.position, job.progress) {
        (JobState::Queued, Some(position), _) if position > 0 => {
            format!("Waiting: {position} runs start before this one{left}.")
        }
        (JobState::Queued, _, _) => format!("Waiting for a worker{left}."),
        (_, _, Some(progress)) => format!("Running: {:.0} %{left}.", progress.fraction * 100.0),
        (_, _, None) => format!("Running{left}."),
    }
}
