//! Takes jobs, as many at once as there are slots and memory, and stops gracefully.

use std::sync::Arc;
use std::time::Duration;

use retouch_catalog::{FixMode, JobClass, Tier, Tool};
use retouch_core::db::DatabaseError;
use retouch_core::jobs::{self, Claimed, Turn};
use retouch_core::queue::Handler;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::job::JobRunner;
use crate::tools::{magic_fix, remove_background, upscale};

/// Answers doorbells.
pub struct Consumer {
    runner: JobRunner,
    /// What there are models for at the moment.
    classes: watch::Receiver<Vec<JobClass>>,
    slots: Semaphore,
    slot_count: u32,
    /// All slots but one, if there is more than one: free runs may be long and many, and whoever pays
    /// does not wait for them.
    unpaid_slots: Semaphore,
    /// A permit for each MiB.
    memory: Semaphore,
    memory_mib: u32,
    lease: Duration,
}

impl Consumer {
    /// `slots` jobs at once, whose pictures together take at most `memory_mib`.
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

    /// Consumes until `stop`; then jobs that run get `drain` to finish, and what is left is handed back.
    pub async fn run(self, stop: CancellationToken, drain: Duration) -> anyhow::Result<()> {
        let hurry = self.runner.hurry.clone();
        // Handing back takes a moment of its own.
        let moment = Duration::from_secs(5);
        let stopping = stop.clone();
        let too_late = tokio::spawn(async move {
            stopping.cancelled().await;
            tokio::time::sleep(drain).await;
            hurry.cancel();
            tokio::time::sleep(moment).await;
        });
        let consumer = Arc::new(self);
        let outcome = consumer.listen(&stop, drain + moment).await;
        if stop.is_cancelled() {
            // Doorbells of classes that are served no more may have been answered by jobs that still run.
            tokio::select! {
                _ = consumer.slots.acquire_many(consumer.slot_count) => {}
                _ = too_late => {}
            }
        }
        outcome
    }

    /// Listens for the doorbells of the classes that there are models for, and anew whenever those change.
    async fn listen(
        self: &Arc<Self>,
        stop: &CancellationToken,
        patience: Duration,
    ) -> anyhow::Result<()> {
        let mut classes = self.classes.clone();
        loop {
            let wanted = classes.borrow_and_update().clone();
            let until = stop.child_token();
            // A task, which hears the end of its time and finishes what it has begun while the next one listens.
            let listening = Arc::clone(self).listen_for(wanted, until.clone(), patience);
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
        patience: Duration,
    ) -> anyhow::Result<()> {
        if classes.is_empty() {
            tracing::warn!("No tool has a model any more; nothing is taken");
            until.cancelled().await;
            return Ok(());
        }
        tracing::info!("Serving {classes:?}");
        let (consumer, told) = (Arc::clone(&self), until.clone());
        let handler: Handler = Arc::new(move |_| {
            let (consumer, told) = (consumer.clone(), told.clone());
            Box::pin(async move { consumer.answer(&told).await })
        });
        let slots = self.slot_count as usize;
        self.runner.queue.consume(classes, slots, handler, until, patience).await
    }

    /// One doorbell: takes the next fair job, if there is one, and runs it to its end.
    ///
    /// Doorbells of other unpaid jobs may have been heard while there was no slot for them, so an unpaid
    /// job is followed by a look for the next. Its slot is given up in between: a job that must run alone
    /// waits for all of them, and comes first.
    async fn answer(&self, stop: &CancellationToken) {
        loop {
            match self.try_answer().await {
                Ok(true) if !stop.is_cancelled() => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "Could not take a job; the doorbell will be rung again");
                    return;
                }
            }
        }
    }

    /// Runs one job; true when it was one that nobody pays for.
    async fn try_answer(&self) -> Result<bool, DatabaseError> {
        let (pool, worker) = (&self.runner.pool, self.runner.worker);
        // Asked each time: models come and go while we run.
        let (classes, modes) = (self.classes.borrow().clone(), self.runner.registry.modes());
        loop {
            if let Some(is_unpaid) = self.run_beside(&classes, &modes).await? {
                return Ok(is_unpaid);
            }
            if !jobs::suspects_waiting(pool, &classes, &modes).await? {
                return Ok(false);
            }
            // All slots: whatever runs ends first, and nothing starts until this is over.
            let Ok(_all) = self.slots.acquire_many(self.slot_count).await else { return Ok(false) };
            let alone = jobs::claim(pool, worker, &classes, &modes, Turn::Alone, self.lease);
            if let Some(job) = alone.await? {
                tracing::info!(job.id = %job.id, "Job {} has lost a worker before and runs alone", job.id);
                let is_unpaid = job.tier != Tier::Paid;
                self.runner.run(job).await;
                return Ok(is_unpaid);
            }
            // Another worker was faster, and what this doorbell was rung for may still wait.
        }
    }

    /// Runs the next job that may run beside others, if there is one; whether nobody pays for it.
    async fn run_beside(
        &self,
        classes: &[JobClass],
        modes: &[FixMode],
    ) -> Result<Option<bool>, DatabaseError> {
        let (pool, worker) = (&self.runner.pool, self.runner.worker);
        let Ok(_slot) = self.slots.acquire().await else { return Ok(None) };
        // What nobody pays for leaves a slot to those who pay.
        let unpaid = self.unpaid_slots.try_acquire();
        let paid = |class: &&JobClass| class.tier == Tier::Paid;
        let classes: Vec<_> =
            classes.iter().filter(|class| unpaid.is_ok() || paid(class)).copied().collect();
        let claimed = jobs::claim(pool, worker, &classes, modes, Turn::Beside, self.lease).await?;
        let Some(job) = claimed else { return Ok(None) };
        let is_unpaid = job.tier != Tier::Paid;
        let _unpaid = unpaid.ok().filter(|_| is_unpaid);
        // The lease is kept while the job waits for memory.
        let lease = self.runner.leases.hold(job.id);
        let memory = self.memory.acquire_many(self.mib_for(&job)).await;
        let Ok(_memory) = memory else { return Ok(Some(false)) };
        drop(lease);
        self.runner.run(job).await;
        Ok(Some(is_unpaid))
    }

    /// What a picture takes; one that takes more than there is gets all of it, alone.
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
