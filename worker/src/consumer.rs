//! Claims jobs and runs as many at once as slots and memory allow; stops gracefully.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use retouch_catalog::{FixMode, JobClass, Tier, Tool};
use retouch_core::db::{self, DatabaseError};
use retouch_core::jobs::{self, Claimed, Isolation, Suspects};
use retouch_core::queue::Handler;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::job::JobRunner;
use crate::lease::claim_timeout;
use crate::pixel_pool;
use crate::storage_probe::BucketState;
use crate::tools::{magic_fix, remove_background, upscale};

/// The interval between polls of the database while Redis is away.
const POLL_WITHOUT_DOORBELLS: Duration = Duration::from_secs(1);
/// The interval between polls while doorbells ring. The sweeper rings again for lost ones, so this is only a safety net.
const POLL: Duration = Duration::from_secs(15);
/// How often a busy worker checks for suspects that are due.
const SUSPECTS_INTERVAL: Duration = Duration::from_secs(1);

/// Claims a job for each doorbell and runs it. Without doorbells it polls the database.
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
    memory: Arc<Semaphore>,
    memory_mib: u32,
    lease: Duration,
    /// When this worker last checked for suspects that are due.
    checked_suspects_at: Mutex<Option<Instant>>,
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
            memory: Arc::new(Semaphore::new(memory_mib as usize)),
            memory_mib,
            lease,
            checked_suspects_at: Mutex::default(),
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

    /// Listens for the doorbells of the classes that have models, and starts again whenever those classes change. Leaves the
    /// doorbells to other workers while this one claims no jobs.
    async fn listen(
        self: &Arc<Self>,
        stop: &CancellationToken,
        drain: Duration,
    ) -> anyhow::Result<()> {
        let mut classes = self.classes.clone();
        let mut bucket = self.runner.storage_probe.subscribe();
        loop {
            let available = bucket.wait_for(|state| *state == BucketState::Available);
            // The sender of the states is in the runner.
            let Some(Ok(_)) = stop.run_until_cancelled(available).await else { return Ok(()) };
            let current = classes.borrow_and_update().clone();
            let until = stop.child_token();
            // A separate task, so that it can finish its jobs while the next one already listens.
            let listening = Arc::clone(self).listen_for(current, until.clone(), drain);
            let mut listening = tokio::spawn(listening);
            tokio::select! {
                ended = &mut listening => return ended?,
                Ok(()) = classes.changed() => until.cancel(),
                Ok(_) = bucket.wait_for(|state| *state != BucketState::Available) => until.cancel(),
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
        tokio::spawn(Arc::clone(&self).poll(until.clone()));
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
    /// slots.
    async fn answer(&self, stop: &CancellationToken) {
        while let Some(is_unpaid) = self.run_next(stop).await {
            if !is_unpaid {
                return;
            }
        }
    }

    /// Runs jobs without doorbells until `stop`: claims one for each free slot every [`POLL`], or every
    /// [`POLL_WITHOUT_DOORBELLS`] as soon as doorbells fall silent.
    async fn poll(self: Arc<Self>, stop: CancellationToken) {
        let mut rings = self.runner.queue.rings();
        loop {
            let pause = if *rings.borrow_and_update() { POLL } else { POLL_WITHOUT_DOORBELLS };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                Ok(()) = rings.changed() => continue,
            }
            for _ in 0..self.slots.available_permits() {
                let (consumer, stop) = (Arc::clone(&self), stop.clone());
                tokio::spawn(async move { while consumer.run_next(&stop).await.is_some() {} });
            }
        }
    }

    /// Runs the next job. Returns whether it was an unpaid one; `None` if there is no job or this worker claims none.
    async fn run_next(&self, stop: &CancellationToken) -> Option<bool> {
        if stop.is_cancelled() || !self.runner.storage_probe.is_available() {
            return None;
        }
        // Read for each job, because models change at run time.
        let (classes, modes) = (self.classes.borrow().clone(), self.runner.registry.modes());
        let outcome = self.try_run_next(&classes, &modes, stop).await;
        outcome.unwrap_or_else(|error| {
            tracing::warn!(%error, "Cannot claim a job; the sweeper will ring its doorbell again");
            None
        })
    }

    async fn try_run_next(
        &self,
        classes: &[JobClass],
        modes: &[FixMode],
        stop: &CancellationToken,
    ) -> Result<Option<bool>, DatabaseError> {
        // While all slots are busy, the claim below always finds a job.
        let pool = &self.runner.pool;
        if self.is_time_to_check_suspects()
            && db::within(jobs::suspects(pool, classes, modes)).await? == Suspects::Due
            && let ran @ Some(_) = self.run_suspect(classes, modes, Suspects::Due, stop).await?
        {
            return Ok(ran);
        }
        if let ran @ Some(_) = self.run_shared(classes, modes, Isolation::Shared, stop).await? {
            return Ok(ran);
        }
        let suspects = db::within(jobs::suspects(pool, classes, modes)).await?;
        if suspects == Suspects::None {
            return Ok(None);
        }
        if let ran @ Some(_) = self.run_suspect(classes, modes, suspects, stop).await? {
            return Ok(ran);
        }
        self.run_shared(classes, modes, Isolation::Unyielding, stop).await
    }

    /// Returns true at most once per [`SUSPECTS_INTERVAL`].
    fn is_time_to_check_suspects(&self) -> bool {
        let mut checked_at =
            self.checked_suspects_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = checked_at.is_none_or(|at| at.elapsed() >= SUSPECTS_INTERVAL);
        if is_time {
            *checked_at = Some(Instant::now());
        }
        is_time
    }

    /// Runs a suspect while nothing else runs here; `None` if this worker may not run one now.
    async fn run_suspect(
        &self,
        classes: &[JobClass],
        modes: &[FixMode],
        suspects: Suspects,
        stop: &CancellationToken,
    ) -> Result<Option<bool>, DatabaseError> {
        let run = async {
            if suspects == Suspects::Due {
                // Waits for the running jobs. Nothing else starts here until the suspect has ended.
                match stop.run_until_cancelled(self.slots.acquire_many(self.slot_count)).await {
                    Some(Ok(_all)) => self.run_alone(classes, modes, stop).await,
                    _ => Ok(None),
                }
            } else {
                match self.slots.try_acquire_many(self.slot_count) {
                    Ok(_all) => self.run_alone(classes, modes, stop).await,
                    Err(_) => Ok(None),
                }
            }
        };
        jobs::with_suspect_right(&self.runner.pool, self.lease, run).await?.unwrap_or(Ok(None))
    }

    async fn run_alone(
        &self,
        classes: &[JobClass],
        modes: &[FixMode],
        stop: &CancellationToken,
    ) -> Result<Option<bool>, DatabaseError> {
        if stop.is_cancelled() {
            return Ok(None);
        }
        let Some(job) = self.claim(classes, modes, Isolation::Alone).await? else {
            return Ok(None);
        };
        tracing::info!(job.id = %job.id, "Job {} lost its worker before; running it alone", job.id);
        let is_unpaid = job.tier != Tier::Paid;
        let lease = self.runner.leases.hold(job.id);
        // Boxed, because the compiler limits how deep futures nest.
        Box::pin(self.runner.run(job, lease)).await;
        Ok(Some(is_unpaid))
    }

    async fn claim(
        &self,
        classes: &[JobClass],
        modes: &[FixMode],
        isolation: Isolation,
    ) -> Result<Option<Claimed>, DatabaseError> {
        let (pool, worker) = (&self.runner.pool, self.runner.worker);
        let claim = jobs::claim(pool, worker, classes, modes, isolation, self.lease);
        db::within_time(claim_timeout(self.lease), claim).await
    }

    /// Runs the next job that may share the process with others. Returns whether it was unpaid; `None` if there was no
    /// job.
    async fn run_shared(
        &self,
        classes: &[JobClass],
        modes: &[FixMode],
        isolation: Isolation,
        stop: &CancellationToken,
    ) -> Result<Option<bool>, DatabaseError> {
        let Some(Ok(_slot)) = stop.run_until_cancelled(self.slots.acquire()).await else {
            return Ok(None);
        };
        // Without an unpaid slot, only paid jobs may be claimed.
        let unpaid = self.unpaid_slots.try_acquire();
        let paid = |class: &&JobClass| class.tier == Tier::Paid;
        let classes: Vec<_> =
            classes.iter().filter(|class| unpaid.is_ok() || paid(class)).copied().collect();
        let claimed = self.claim(&classes, modes, isolation).await?;
        let Some(job) = claimed else { return Ok(None) };
        let is_unpaid = job.tier != Tier::Paid;
        let _unpaid = unpaid.ok().filter(|_| is_unpaid);
        // Renews the lease while the job waits for memory. If it is lost, the run ends as soon as it starts.
        let lease = self.runner.leases.hold(job.id);
        let memory = Arc::clone(&self.memory).acquire_many_owned(self.mib_for(&job));
        let memory = lease.lost().run_until_cancelled(memory).await.transpose();
        let Ok(memory) = memory else { return Ok(Some(is_unpaid)) };
        Box::pin(pixel_pool::with_memory(memory, self.runner.run(job, lease))).await;
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
