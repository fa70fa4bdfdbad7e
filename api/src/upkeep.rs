//! Background work of every API process that must happen even while no worker runs.

use std::time::Duration;

use retouch_core::db;
use retouch_core::jobs::{self, JobState, UNSERVED_AFTER};
use retouch_core::queue::JobEvent;
use tokio::time::MissedTickBehavior;

use crate::state::App;

/// The time between looks for jobs that no worker can run.
const UNSERVED_INTERVAL: Duration = Duration::from_secs(15);

/// Records that the database is reachable, and ends jobs that no worker can run, until the process stops.
pub async fn run(app: App) {
    let stop = app.stopping.clone();
    let both =
        async { tokio::join!(jobs::keep_recording_reachable(&app.pool), end_unserved(&app)) };
    stop.run_until_cancelled(both).await;
}

async fn end_unserved(app: &App) {
    let mut rounds = tokio::time::interval(UNSERVED_INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        match db::within(jobs::end_unserved(&app.pool, UNSERVED_AFTER)).await {
            Ok(ended) => {
                for job in ended {
                    tracing::warn!(job.id = %job, "No worker has served job {job} for {UNSERVED_AFTER:?}; it failed");
                    if let Err(error) =
                        app.queue.publish(JobEvent::ended(job, JobState::Failed)).await
                    {
                        tracing::debug!(%error, "Cannot publish an event of job {job}");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "Cannot look for jobs that no worker serves"),
        }
    }
}
