//! Requeues jobs whose leases expired, and rings doorbells that Redis lost.

use std::time::Duration;

use retouch_core::db::PgPool;
use retouch_core::jobs;
use retouch_core::queue::{JobEvent, Queue};
use tokio_util::sync::CancellationToken;

/// The time between rounds.
const INTERVAL: Duration = Duration::from_secs(1);
/// The most doorbells to ring for a class in one round.
const MAX_RINGS: usize = 500;

/// Sweeps until `stop`. Any number of sweepers may run at the same time.
pub async fn run(pool: PgPool, queue: Queue, stop: CancellationToken) {
    let mut rounds = tokio::time::interval(INTERVAL);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        if let Err(error) = round(&pool, &queue).await {
            tracing::warn!("A sweep failed; retrying in the next round: {error:#}");
        }
    }
}

async fn round(pool: &PgPool, queue: &Queue) -> anyhow::Result<()> {
    let swept = jobs::sweep(pool).await?;
    for job in &swept.requeued {
        tracing::warn!(job.id = %job, "Job {job} lost its worker and was requeued");
        metrics::counter!("retouch_jobs_lost_total").increment(1);
    }
    for job in &swept.failed {
        tracing::error!(job.id = %job, "Job {job} lost its worker for the third time and failed");
        metrics::counter!("retouch_jobs_dead_total").increment(1);
    }
    for job in swept.requeued.iter().chain(&swept.failed) {
        queue.publish(JobEvent::changed(*job)).await?;
    }
    for (class, waiting) in jobs::queued_by_class(pool).await? {
        // Every queued job needs a doorbell; Redis may have lost some or never received them.
        let waiting = usize::try_from(waiting).unwrap_or(0);
        let missing = waiting.saturating_sub(queue.unread(class).await?);
        if missing > 0 {
            queue.ring_for_any(class, missing.min(MAX_RINGS)).await?;
        }
    }
    Ok(())
}
