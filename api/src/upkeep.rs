//! Background work of every API process that must happen even while no worker runs.

use std::time::Duration;

use retouch_core::db;
use retouch_core::jobs::{self, JobState, UNSERVED_AFTER};
use retouch_core::queue::JobEvent;
use tokio::time::MissedTickBehavior;

use crate::state::App;

/// The time between rounds. Workers sweep every second; this covers the time in which none runs.
const INTERVAL: Duration = Duration::from_secs(15);
/// Grace period for workers to renew their leases after an outage. They try every five seconds at least, however long
/// the leases are.
const LEASE: Duration = Duration::from_mins(1);

/// Records that the database is reachable, requeues jobs that lost their worker, and ends those that no worker can run,
/// until the process stops.
pub async fn run(app: App) {
    let stop = app.stopping.clone();
    let both = async { tokio::join!(jobs::keep_recording_reachable(&app.pool), end_jobs(&app)) };
    stop.run_until_cancelled(both).await;
}

async fn end_jobs(app: &App) {
    let mut rounds = tokio::time::interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        match db::within(jobs::sweep(&app.pool, LEASE)).await {
            Ok(swept) => {
                swept.report();
                for job in swept.all() {
                    publish(app, JobEvent::changed(job)).await;
                }
            }
            Err(error) => tracing::warn!(%error, "Cannot look for jobs that lost their worker"),
        }
        match db::within(jobs::end_unserved(&app.pool, UNSERVED_AFTER)).await {
            Ok(ended) => {
                for job in ended {
                    tracing::warn!(job.id = %job, "No worker has served job {job} for {UNSERVED_AFTER:?}; it failed");
                    metrics::counter!("retouch_jobs_failed_total", "code" => jobs::UNSERVED_CODE)
                        .increment(1);
                    publish(app, JobEvent::ended(job, JobState::Failed)).await;
                }
            }
            Err(error) => tracing::warn!(%error, "Cannot look for jobs that no worker serves"),
        }
    }
}

async fn publish(app: &App, event: JobEvent) {
    if let Err(error) = app.queue.publish(event).await {
        tracing::debug!(%error, "Cannot publish an event of a job");
    }
}
