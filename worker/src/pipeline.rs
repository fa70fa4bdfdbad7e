//! What happens to pictures, step by step: decode, tensor, (the model), alpha, foreground, encode where one
//! run sees the whole; decode, tile, (the model), band, png where it is taken apart; decode, mask, patch,
//! (the model), patch, encode where only a part changes. Pure functions on
//! pixels, the pool of threads they run on, and the one error they share.

pub mod alpha;
pub mod band;
pub mod decode;
pub mod encode;
pub mod foreground;
mod halve;
pub mod mask;
mod orient;
pub mod patch;
pub mod shrink;
pub mod tensor;
pub mod tile;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::Span;

use crate::models::session::SessionError;

/// A decoded picture: 8-bit RGB, upright, rows from the top without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// R, G, B of every pixel: `width * height * 3` bytes.
    pub rgb: Vec<u8>,
    /// The picture's own alpha, `width * height` bytes; `None` where all of it is opaque.
    pub alpha: Option<Vec<u8>>,
    /// Whether the file held gray samples; R, G and B are equal then.
    pub gray: bool,
    /// The ICC profile of the file's RGB, or gray, samples, byte for byte as it was embedded.
    pub icc: Option<Vec<u8>>,
}

impl Picture {
    /// How many pixels the picture has.
    pub const fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}

/// What a picture may be at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest side that is accepted, in pixels.
    pub max_dimension: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_dimension: 6000 }
    }
}

/// Why a picture did not come out of the pipeline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// The bytes are no picture we can read; the text says why.
    #[error("the image cannot be read: {0}")]
    Unreadable(String),
    /// The picture has more pixels a side than is allowed.
    #[error("the image is {width} × {height} pixels; at most {max_dimension} a side is possible")]
    TooLarge {
        /// The picture's width.
        width: u32,
        /// The picture's height.
        height: u32,
        /// The longest side that is allowed.
        max_dimension: u32,
    },
    /// The mask is none, or does not fit the picture; the text says why.
    #[error("the mask cannot be used: {0}")]
    Mask(String),
    /// What was made must not be shown.
    #[error("the result was judged unsafe: {0}")]
    Unsafe(String),
    /// The model failed; the text is for the operator.
    #[error("the model failed: {0}")]
    Model(String),
    /// The model ran out of memory, even at the smallest piece of work it can be given.
    #[error("the model ran out of memory: {0}")]
    OutOfMemory(String),
    /// Nobody wants the result any more.
    #[error("cancelled")]
    Cancelled,
    /// Our own code failed on this picture; the text is for the operator.
    #[error("a defect in the worker: {0}")]
    Defect(String),
}

impl From<SessionError> for PipelineError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::OutOfMemory(text) => Self::OutOfMemory(text),
            SessionError::Failed(text) | SessionError::DeviceLost(text) => Self::Model(text),
        }
    }
}

impl PipelineError {
    /// A stable name for the database, the API and the page.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "image_unreadable",
            Self::TooLarge { .. } => "image_too_large",
            Self::Mask(_) => "mask_invalid",
            Self::Unsafe(_) => "result_unsafe",
            Self::Model(_) => "model_failed",
            Self::OutOfMemory(_) => "out_of_memory",
            Self::Cancelled => "cancelled",
            Self::Defect(_) => "internal_error",
        }
    }

    /// Whether the same picture may succeed another time: the model may have been out of memory, the
    /// picture itself never gets better.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Model(_) | Self::OutOfMemory(_) => true,
            Self::Unreadable(_)
            | Self::TooLarge { .. }
            | Self::Mask(_)
            | Self::Unsafe(_)
            | Self::Cancelled
            | Self::Defect(_) => false,
        }
    }
}

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
    ) -> Result<(T, Duration), PipelineError> {
        let timed = move || {
            let started = Instant::now();
            (work(), started.elapsed())
        };
        self.run(timed).await
    }

    /// Runs `work` on the pool and waits for it without holding up the async threads. Work that nobody
    /// waits for any more is skipped; a panic becomes [`PipelineError::Defect`].
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PipelineError> {
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
            Ok(Err(panic)) => Err(PipelineError::Defect(panic)),
            Err(_) => Err(PipelineError::Defect("the pixel threads have stopped".to_owned())),
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
