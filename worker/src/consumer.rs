//! Claims jobs and runs as many at once as slots and memory allow; stops gracefully.

use std::sync::Arc;
use std::time::Duration;

use retouch_catalog::{FixMode, JobClass, Tier, Tool};
use retouch_core::db::DatabaseError;
use retouch_core::jobs::{self, Claimed, Isolation};
use retouch_core::queue::Handler;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::job::JobRunner;
use crate::tools::{magic_fix, remove_background, upscale};

/// Claims a job for each doorbell and runs it.
pub struct Consumer {
    runner: JobRunner,
    /// The job classes that currently have a model.
    classes: watch::Receiver<Vec<JobClass>>,
    slots: Semaphore,
    slot_count: u32,
    /// One slot less than `slots`, but at least one: unpaid jobs, which may be long and many, always leave a slot to
    /// paid ones.
    unpaid_slots: Semaphore,
    /// One permit per MiB.
    memory: Semaphore,
    memory_mib: u32,
    lease: Duration,
}

impl Consumer {
    /// Creates a consumer that runs up to `slots` jobs at once, whose pictures together take up to `memory_mib` MiB.
    pub fn new(
        runner: JobRunner,
        classes: watch::Receiver<Vec<JobClass>>,
        slots: u32,
        memory_mib: u32,
        lease: Duration,
    ) -> Self {
        Self {
            runner,
            classes,
            slots: Semaphore::new(slots as usize),
            slot_count: slots,
            unpaid_slots: Semaphore::new(slots.saturating_sub(1).max(1) as usize),
            memory: Semaphore::new(memory_mib as usize),
            memory_mib,
            lease,
        }
    }

    /// Runs jobs until `stop`. Then running jobs get `drain` to finish, and the remaining ones are handed back.
    ///
    /// # Errors
    /// If Redis fails in a way that retrying cannot fix.
    pub async fn run(self, stop: CancellationToken, drain: Duration) -> anyhow::Result<()> {
        let abort = self.runner.abort.clone();
        let hand_back_time = Duration::from_secs(5);
        let stopping = stop.clone();
        let deadline = tokio::spawn(async move {
            stopping.cancelled().await;
            tokio::time::sleep(drain).await;
            abort.cancel();
            tokio::time::sleep(hand_back_time).await;
        });
        let consumer = Arc::new(self);
        let outcome = consumer.listen(&stop, drain + hand_back_time).await;
        if stop.is_cancelled() {
            // Jobs of classes that are no longer served may still be running.
            tokio::select! {
                _ = consumer.slots.acquire_many(consumer.slot_count) => {}
                _ = deadline => {}
            }
        }
        outcome
    }

    /// Listens for the doorbells of the classes that have models, and starts again whenever those classes change.
    async fn listen(
        self: &Arc<Self>,
        stop: &CancellationToken,
        drain: Duration,
    ) -> anyhow::Result<()> {
        let mut classes = self.classes.clone();
        loop {
            let current = classes.borrow_and_update().clone();
            let until = stop.child_token();
            // A separate task, so that it can finish its jobs while the next one already listens.
            let listening = Arc::clone(self).listen_for(current, until.clone(), drain);
            let mut listening = tokio::spawn(listening);
            tokio::select! {
                ended = &mut listening => return ended?,
                Ok(()) = classes.changed() => until.cancel(),
            }
        }
    }

    async fn listen_for(
        self: Arc<Self>,
        classes: Vec<JobClass>,
        until: CancellationToken,
        drain: Duration,
    ) -> anyhow::Result<()> {
        if classes.is_empty() {
            tracing::warn!("No tool has a model; claiming no jobs");
            until.cancelled().await;
            return Ok(());
        }
        tracing::info!("Serving {classes:?}");
        let (consumer, stop) = (Arc::clone(&self), until.clone());
        let handler: Handler = Arc::new(move |_| {
            let (consumer, stop) = (consumer.clone(), stop.clone());
            Box::pin(async move { consumer.answer(&stop).await })
        });
        let slots = self.slot_count as usize;
        self.runner.queue.consume(classes, slots, handler, until, drain).await
    }

    /// Answers a doorbell: claims the next job in fair order, if there is one, and runs it.
    ///
    /// Doorbells of other unpaid jobs may have been consumed while no slot was free for them, so after an unpaid job
    /// this claims the next one. It releases its slot in between, because a suspect that must run alone waits for all
    /// slots and goes first.
    async fn answer(&self, stop: &CancellationToken) {
        loop {
            match self.try_answer().await {
                Ok(true) if !stop.is_cancelled() => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "Cannot claim a job; the sweeper will ring its doorbell again");
                    return;
                }
            }
        }
    }

    /// Runs one job. Returns true if it was an unpaid one.
    async fn try_answer(&self) -> Result<bool, DatabaseError> {
        let (pool, worker) = (&self.runner.pool, self.runner.worker);
        // Read for each job, because models change at run time.
        let (classes, modes) = (self.classes.borrow().clone(), self.runner.registry.modes());
        loop {
            if let Some(is_unpaid) = self.run_shared(&classes, &modes).await? {
                return Ok(is_unpaid);
            }
            if !jobs::suspects_waiting(pool, &classes, &modes).await? {
                return Ok(false);
            }
            // Taking all slots waits for the running jobs and starts no other until this one ends.
            let Ok(_all) = self.slots.acquire_many(self.slot_count).await else { return Ok(false) };
            let alone = jobs::claim(pool, worker, &classes, &modes, Isolation::Alone, self.lease);
            if let Some(job) = alone.await? {
                tracing::info!(job.id = %job.id, "Job {} lost its worker before; running it alone", job.id);
                let is_unpaid = job.tier != Tier::Paid;
                self.runner.run(job).await;
                return Ok(is_unpaid);
            }
            // Another worker claimed it first; the job of this doorbell may still be queued.
        }
    }

    /// Runs the next job that may share the process with others. Returns whether it was unpaid; `None` if there was no
    /// job.
    async fn run_shared(
        &self,
        classes: &[JobClass],
        modes: &[FixMode],
    ) -> Result<Option<bool>, DatabaseError> {
        let (pool, worker) = (&self.runner.pool, self.runner.worker);
        let Ok(_slot) = self.slots.acquire().await else { return Ok(None) };
        // Without an unpaid slot, only paid jobs may be claimed.
        let unpaid = self.unpaid_slots.try_acquire();
        let paid = |class: &&JobClass| class.tier == Tier::Paid;
        let classes: Vec<_> =
            classes.iter().filter(|class| unpaid.is_ok() || paid(class)).copied().collect();
        let claimed =
            jobs::claim(pool, worker, &classes, modes, Isolation::Shared, self.lease).await?;
        let Some(job) = claimed else { return Ok(None) };
        let is_unpaid = job.tier != Tier::Paid;
        let _unpaid = unpaid.ok().filter(|_| is_unpaid);
        // Renews the lease while the job waits for memory.
        let lease = self.runner.leases.hold(job.id);
        let memory = self.memory.acquire_many(self.mib_for(&job)).await;
        let Ok(_memory) = memory else { return Ok(Some(false)) };
        drop(lease);
        self.runner.run(job).await;
        Ok(Some(is_unpaid))
    }

    /// Returns the memory that a job needs, in MiB. A job that needs more than the limit gets all of it.
    fn mib_for(&self, job: &Claimed) -> u32 {
        let (width, height) = (job.width.unsigned_abs(), job.height.unsigned_abs());
        let bytes = match job.tool {
            Tool::RemoveBackground => remove_background::memory_bytes(width, height),
            Tool::Upscale(_) => upscale::memory_bytes(width, height),
            Tool::MagicFix(_) => magic_fix::memory_bytes(width, height),
        };
        u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX).clamp(1, self.memory_mib)
    }
}
