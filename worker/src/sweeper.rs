//! Looking after what fell through: leases that ran out, and jobs that wait although nobody rang.

use std::time::Duration;

use retouch_core::db::PgPool;
use retouch_core::jobs;
use retouch_core::queue::{JobNews, Queue};
use tokio_util::sync::CancellationToken;

/// How often to look.
const ROUND: Duration = Duration::from_secs(1);
/// The most doorbells rung for one class in one round.
const MOST_RINGS: usize = 500;

/// Sweeps until `stop`. Any number of sweepers may run at once.
pub async fn run(pool: PgPool, queue: Queue, stop: CancellationToken) {
    let mut rounds = tokio::time::interval(ROUND);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        if let Err(error) = round(&pool, &queue).await {
            tracing::warn!("Sweeping broke off; the next round goes on: {error:#}");
        }
    }
}

async fn round(pool: &PgPool, queue: &Queue) -> anyhow::Result<()> {
    let swept = jobs::sweep(pool).await?;
    for job in &swept.requeued {
        tracing::warn!(job.id = %job, "The worker of job {job} vanished; it waits again");
        metrics::counter!("retouch_jobs_lost_total").increment(1);
    }
    for job in &swept.died {
        tracing::error!(job.id = %job, "Job {job} lost its worker for the third time and has failed");
        metrics::counter!("retouch_jobs_dead_total").increment(1);
    }
    for job in swept.requeued.iter().chain(&swept.died) {
        queue.tell(JobNews::changed(*job)).await?;
    }
    for (class, waiting) in jobs::queued_by_class(pool).await? {
        // A doorbell for each job that waits: what Redis lost, or never heard, is rung again.
        let waiting = usize::try_from(waiting).unwrap_or(0);
        let missing = waiting.saturating_sub(queue.unheard(class).await?);
        if missing > 0 {
            queue.ring_for_any(class, missing.min(MOST_RINGS)).await?;
        }
    }
    Ok(())
}
