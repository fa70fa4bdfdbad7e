//! Keeping the leases of running jobs, from a thread of its own with connections of its own: whatever
//! inference does to the other threads, a job that is alive stays ours.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use retouch_core::config::DatabaseConfig;
use retouch_core::workers::{self, Worker};
use retouch_core::{JobId, WorkerId, db, jobs};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The jobs that this process runs, each with what stops it.
#[derive(Clone, Default)]
pub struct Leases(Arc<Mutex<HashMap<JobId, CancellationToken>>>);

/// A job being run; it is no longer renewed when this is dropped.
pub struct Lease {
    job: JobId,
    all: Leases,
    lost: CancellationToken,
}

impl Lease {
    /// Fires when the job was cancelled or given to another worker.
    pub const fn lost(&self) -> &CancellationToken {
        &self.lost
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.all.lock().remove(&self.job);
    }
}

impl Leases {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the lease of `job` from now on.
    pub fn hold(&self, job: JobId) -> Lease {
        let lost = CancellationToken::new();
        self.lock().insert(job, lost.clone());
        Lease { job, all: self.clone(), lost }
    }

    /// Tells a job that it is no longer ours; news of a cancellation come here before the next renewal.
    pub fn revoke(&self, job: JobId) {
        if let Some(lost) = self.lock().get(&job) {
            lost.cancel();
        }
    }

    /// Whether `job` runs here.
    pub fn contains(&self, job: JobId) -> bool {
        self.lock().contains_key(&job)
    }

    /// How many jobs run here.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none runs here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts the thread that renews leases, three times as often as needed, and reports `worker` alive;
    /// at once when what it says of itself changes.
    pub fn keep(
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
            .context("starting the lease keeper")?;
        let keeper = move || {
            runtime.block_on(async move {
                let pool = match db::pool(&database) {
                    Ok(pool) => pool,
                    Err(error) => {
                        return tracing::error!("The lease keeper cannot start: {error:#}");
                    }
                };
                let mut rounds = tokio::time::interval((lease / 3).min(Duration::from_secs(5)));
                rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                loop {
                    tokio::select! {
                        () = stop.cancelled() => break,
                        _ = rounds.tick() => {}
                        Ok(()) = worker.changed() => {}
                    }
                    if let Err(error) = leases.renew(&pool, id, lease).await {
                        tracing::warn!(%error, "Could not renew leases; trying again");
                    }
                    let now = worker.borrow_and_update().clone();
                    if let Err(error) = workers::report(&pool, &now).await {
                        tracing::warn!(%error, "Could not report this worker alive; trying again");
                    }
                }
                if let Err(error) = workers::sign_off(&pool, id).await {
                    tracing::warn!(%error, "Could not sign off");
                }
            });
        };
        std::thread::Builder::new()
            .name("leases".into())
            .spawn(keeper)
            .context("starting the lease keeper")
    }

    async fn renew(
        &self,
        pool: &db::PgPool,
        worker: WorkerId,
        lease: Duration,
    ) -> Result<(), db::DatabaseError> {
        let held: Vec<JobId> = self.lock().keys().copied().collect();
        if held.is_empty() {
            return Ok(());
        }
        let renewed = jobs::renew(pool, worker, &held, lease).await?;
        for job in held.into_iter().filter(|job| !renewed.contains(job)) {
            // One that has just been finished is gone from the map already.
            self.revoke(job);
        }
        Ok(())
    }
}
