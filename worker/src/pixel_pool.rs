//! The pixel threads: a thread pool for work that would block the async threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::Span;

use crate::tools::ToolError;

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

    /// Runs `work` on the pool. Dropping the future before the work starts skips it.
    ///
    /// # Errors
    /// [`ToolError::Internal`] if `work` panics.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let (answer, answered) = oneshot::channel();
        let span = Span::current();
        self.threads.spawn(move || {
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
