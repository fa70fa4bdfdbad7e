//! The threads that work on pixels.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::Span;

use crate::tools::ToolError;

/// The threads that work on pixels. Cheap to clone; clones share the threads.
#[derive(Clone, Debug)]
pub struct PixelPool {
    threads: Arc<rayon::ThreadPool>,
}

impl PixelPool {
    /// Starts a pool of `threads` threads; 0 means one for each core.
    ///
    /// # Errors
    /// When the operating system refuses the threads.
    pub fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("pixels-{index}"))
            .build()
            .map(|threads| Self { threads: Arc::new(threads) })
    }

    /// As [`PixelPool::run`], and how long the work took once a thread had begun it.
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

    /// Runs `work` on the pool and waits for it without holding up the async threads. Work that nobody
    /// waits for any more is skipped; a panic becomes [`ToolError::Internal`].
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
            // Nobody is left to tell when the receiver has gone.
            let _ = answer.send(outcome.map_err(|panic| panic_text(panic.as_ref())));
        });
        match answered.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => Err(ToolError::Internal(panic)),
            Err(_) => Err(ToolError::Internal("the pixel threads have stopped".to_owned())),
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}
