//! Requeues jobs whose leases expired, and rings doorbells that Redis lost.

use std::sync::Arc;
use std::time::Duration;

use retouch_catalog::JobClass;
use retouch_core::db::{self, PgPool};
use retouch_core::jobs;
use retouch_core::queue::{JobEvent, Queue};
use retouch_core::with_causes;
use retouch_inference::registry::Registry;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// The time between rounds.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of doorbells to ring for a class per round.
const MAX_RINGS: usize = 500;

/// Sweeps jobs of all workers, and rings for the jobs that this worker can run.
pub struct Sweeper {
    pub pool: PgPool,
    pub queue: Queue,
    pub registry: Arc<Registry>,
    /// The job classes that currently have a model.
    pub classes: watch::Receiver<Vec<JobClass>>,
    pub lease: Duration,
}

impl Sweeper {
    /// Sweeps until `stop`. Any number of sweepers may run at the same time.
    pub async fn run(self, stop: CancellationToken) {
        // Runs beside the rounds, because a slow Redis would delay them.
        let both = async { tokio::join!(self.sweep(), jobs::keep_recording_reachable(&self.pool)) };
        stop.run_until_cancelled(both).await;
    }

    async fn sweep(&self) {
        let mut rounds = tokio::time::interval(INTERVAL);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            if let Err(error) = self.requeue_lost().await {
                tracing::warn!(
                    "A sweep failed; retrying in the next round: {}",
                    with_causes(error.as_ref())
                );
            }
            if let Err(error) = self.ring_again().await {
                tracing::warn!(
                    "Cannot ring for queued jobs; retrying in the next round: {}",
                    with_causes(error.as_ref())
                );
            }
        }
    }

    async fn requeue_lost(&self) -> anyhow::Result<()> {
        let swept = db::within(jobs::sweep(&self.pool, self.lease)).await?;
        swept.report();
        for job in swept.all() {
            self.queue.publish(JobEvent::changed(job)).await?;
        }
        Ok(())
    }

    /// Rings for queued jobs without a doorbell: Redis may have lost some or never received them.
    async fn ring_again(&self) -> anyhow::Result<()> {
        let (classes, modes) = (self.classes.borrow().clone(), self.registry.modes());
        let queued = db::within(jobs::queued_by_class(&self.pool, &classes, &modes)).await?;
        for (class, waiting) in queued {
            let waiting = usize::try_from(waiting).unwrap_or(0);
            let missing = waiting.saturating_sub(self.queue.unread(class).await?);
            if missing > 0 {
                self.queue.ring_for_any(class, missing.min(MAX_RINGS)).await?;
            }
        }
        Ok(())
    }
}
