//! Renews the leases of running jobs, on a separate thread with its own database connections, so that busy inference
//! threads cannot cost a job its lease.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use retouch_core::config::DatabaseConfig;
use retouch_core::workers::{self, Worker};
use retouch_core::{JobId, WorkerId, db, jobs};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The pause before renewals that failed are tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Maximum time between the answer to a claim and [`Leases::hold`].
const CLAIM_MARGIN: Duration = Duration::from_secs(1);

/// Returns how long a claim may take. After another [`CLAIM_MARGIN`], this process either holds the job or has lost the
/// answer. A lease of at least 6 s then lasts long enough to return the job to the queue.
pub fn claim_timeout(lease: Duration) -> Duration {
    (lease / 3).clamp(Duration::from_secs(2), db::CALL_TIMEOUT)
}

/// The jobs that this process runs, each with a token that fires when the lease is lost.
#[derive(Clone, Default)]
pub struct Leases(Arc<Mutex<HashMap<JobId, Arc<CancellationToken>>>>);

/// The lease of a running job. Dropping it ends the renewals.
pub struct Lease {
    job: JobId,
    all: Leases,
    lost: Arc<CancellationToken>,
}

impl Lease {
    /// Returns a token that fires when the job was canceled or another worker has it.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        // The next attempt at the job may have started here.
        if all.get(&self.job).is_some_and(|lost| Arc::ptr_eq(lost, &self.lost)) {
            all.remove(&self.job);
        }
    }
}

impl Leases {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, Arc<CancellationToken>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to renew the lease of `job`.
    pub fn hold(&self, job: JobId) -> Lease {
        let lost = Arc::new(CancellationToken::new());
        // This process claimed the job again, so an attempt that still runs here lost it, in an outage for example.
        if let Some(earlier) = self.lock().insert(job, lost.clone()) {
            earlier.cancel();
        }
        Lease { job, all: self.clone(), lost }
    }

    /// Fires the token of a job whose lease is lost, for example because a cancellation event arrived.
    pub fn revoke(&self, job: JobId) {
        if let Some(lost) = self.lock().get(&job) {
            lost.cancel();
        }
    }

    pub fn contains(&self, job: JobId) -> bool {
        self.lock().contains_key(&job)
    }

    /// Starts the thread that renews leases, at least three times per `lease`, and reports `worker` alive, at once when
    /// its description changes. It runs until `stop`.
    ///
    /// # Errors
    /// If the thread or its async runtime cannot start.
    pub fn start_renewing(
        &self,
        database: &DatabaseConfig,
        mut worker: watch::Receiver<Worker>,
        lease: Duration,
        stop: CancellationToken,
    ) -> anyhow::Result<std::thread::JoinHandle<()>> {
        let database = DatabaseConfig { database_connections: 2, ..database.clone() };
        let leases = self.clone();
        let id = worker.borrow().id;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting the lease thread")?;
        let thread = move || {
            runtime.block_on(async move {
                let pool = match db::pool(&database) {
                    Ok(pool) => pool,
                    Err(error) => {
                        return tracing::error!("Cannot renew leases: {error:#}");
                    }
                };
                // Leaves time for a second try on a new connection within the lease.
                let patience = (lease / 4).max(Duration::from_secs(1));
                let mut rounds = tokio::time::interval((lease / 3).min(Duration::from_secs(5)));
                rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                loop {
                    tokio::select! {
                        () = stop.cancelled() => break,
                        _ = rounds.tick() => {}
                        Ok(()) = worker.changed() => {}
                    }
                    if let Err(error) =
                        db::within_time(patience, leases.renew(&pool, id, lease)).await
                    {
                        tracing::warn!(%error, "Cannot renew leases; retrying");
                        rounds.reset_after(RETRY_PAUSE);
                        continue;
                    }
                    let now = worker.borrow_and_update().clone();
                    if let Err(error) =
                        db::within_time(patience, workers::report(&pool, &now)).await
                    {
                        tracing::warn!(%error, "Cannot report this worker as alive; retrying");
                    }
                }
                if let Err(error) = db::within_time(patience, workers::sign_off(&pool, id)).await {
                    tracing::warn!(%error, "Cannot mark this worker as stopped");
                }
            });
        };
        std::thread::Builder::new()
            .name("leases".into())
            .spawn(thread)
            .context("starting the lease thread")
    }

    async fn renew(
        &self,
        pool: &db::PgPool,
        worker: WorkerId,
        lease: Duration,
    ) -> Result<(), db::DatabaseError> {
        let held = self.lock().clone();
        let jobs: Vec<JobId> = held.keys().copied().collect();
        if !jobs.is_empty() {
            let renewed = jobs::renew(pool, worker, &jobs, lease).await?;
            for (_, lost) in held.iter().filter(|(job, _)| !renewed.contains(job)) {
                // Not `revoke`: the next attempt may have begun here since, and would lose its token instead.
                lost.cancel();
            }
        }
        let age = claim_timeout(lease) + CLAIM_MARGIN;
        for job in jobs::release_unknown(pool, worker, |job| self.contains(job), lease, age).await?
        {
            tracing::warn!(job.id = %job, "This worker had the lease of job {job} without running it; requeued it");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_ends_late_keeps_the_lease_of_the_next_one() {
        let (leases, job) = (Leases::default(), JobId::new());
        let first = leases.hold(job);
        let second = leases.hold(job);
        assert!(first.lost().is_cancelled());
        drop(first);
        assert!(!second.lost().is_cancelled());
        assert!(leases.contains(job));
        leases.revoke(job);
        assert!(second.lost().is_cancelled());
        drop(second);
        assert!(!leases.contains(job));
    }
}
