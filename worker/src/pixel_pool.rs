//! The pixel threads: a thread pool for work that would block the async threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::Span;

use crate::tools::ToolError;

tokio::task_local! {
    /// The memory that the current job has reserved, if any.
    static MEMORY: Arc<Option<OwnedSemaphorePermit>>;
}

/// Runs a job, and returns its memory when the job and its pixel work have ended: work that has started continues when the
/// job is dropped.
pub async fn with_memory<T>(
    memory: Option<OwnedSemaphorePermit>,
    job: impl Future<Output = T>,
) -> T {
    MEMORY.scope(Arc::new(memory), job).await
}

/// A thread pool for pixel work. Cheap to clone; clones share the threads.
#[derive(Clone, Debug)]
pub struct PixelPool {
    threads: Arc<rayon::ThreadPool>,
}

impl PixelPool {
    /// Starts a pool of `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// If the operating system cannot start the threads.
    pub fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("pixels-{index}"))
            .build()
            .map(|threads| Self { threads: Arc::new(threads) })
    }

    /// Runs `work` like [`PixelPool::run`] and returns how long it took, not counting the wait for a thread.
    ///
    /// # Errors
    /// Same as [`PixelPool::run`].
    pub async fn run_timed<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Duration), ToolError> {
        let timed = move || {
            let started = Instant::now();
            (work(), started.elapsed())
        };
        self.run(timed).await
    }

    /// Runs `work` on the pool. Dropping the future before the work starts skips it. The work keeps the memory of the job
    /// that it belongs to.
    ///
    /// # Errors
    /// [`ToolError::Internal`] if `work` panics.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let (answer, answered) = oneshot::channel();
        let span = Span::current();
        let memory = MEMORY.try_with(Arc::clone).ok();
        self.threads.spawn(move || {
            let _memory = memory;
            if answer.is_closed() {
                return;
            }
            let outcome = span.in_scope(|| catch_unwind(AssertUnwindSafe(work)));
            // The caller may have stopped waiting.
            let _ = answer.send(outcome.map_err(|panic| ToolError::of_panic(panic.as_ref())));
        });
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => Err(ToolError::Internal("the pixel threads have stopped".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn work_keeps_the_memory_of_its_job_when_the_job_is_dropped() {
        let pool = PixelPool::new(1).expect("a thread");
        let memory = Arc::new(Semaphore::new(1));
        let reserved = Arc::clone(&memory).acquire_owned().await.expect("it is open");
        let (started, has_started) = oneshot::channel();
        let (finish, may_finish) = mpsc::channel::<()>();
        let work = move || {
            let _ = started.send(());
            let _ = may_finish.recv();
        };
        tokio::select! {
            biased;
            _ = with_memory(Some(reserved), pool.run(work)) => panic!("the work has not ended"),
            _ = has_started => {}
        }
        assert_eq!(memory.available_permits(), 0, "the work still needs it");
        drop(finish);
        let returned = tokio::time::timeout(Duration::from_secs(10), memory.acquire()).await;
        assert!(returned.is_ok(), "the work has ended");
    }
}
