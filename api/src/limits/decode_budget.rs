//! Bounds the memory and the threads that decoding and rendering pictures take, also in processes of their own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use retouch_core::UserId;
use retouch_core::images::Uploader;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::LimitsConfig;
use crate::error::ApiError;
use crate::limits::container;
use crate::limits::reserved_file::kept_with;
use crate::limits::turns::{Turn, Turns};

const MIB: u64 = 1 << 20;
/// The memory that the process needs in addition to pictures and uploads, in MiB: code, connections, responses, and
/// freed memory that the allocator keeps.
const BASE_MIB: u64 = 192;
/// Minimum default budget, in MiB: enough for a photo of 36 megapixels.
const MIN_MIB: u64 = 192;
/// The memory that most photos take per pixel until they are stored, in bytes.
const PIXEL_BYTES: u64 = 5;
/// The rendered files of one user may take `1 / SHARE_OF_USER` of the memory until they are sent.
const SHARE_OF_USER: usize = 4;
/// The rendered files of one visitor may take `1 / SHARE_OF_VISITOR` of the memory: a person can appear as many
/// visitors.
const SHARE_OF_VISITOR: usize = 16;

/// Maximum number of pictures of one caller that are decoded, or wait for memory, at once. Memory is granted in order of
/// arrival, so a caller with many would block the others.
const PICTURES_OF_CALLER: usize = 2;

/// The memory and the threads for pictures. Work waits for the turn of its caller, then for its memory, and then for a
/// thread.
pub struct DecodeBudget {
    /// One permit per MiB.
    memory: Arc<Semaphore>,
    memory_mib: u32,
    threads: Arc<Semaphore>,
    turns: Turns<UserOrVisitor>,
    wait: Duration,
}

/// Whose picture is decoded or rendered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UserOrVisitor {
    /// A user, by browser or program.
    User(UserId),
    /// A visitor, by their pseudonym.
    Visitor(String),
}

impl From<&Uploader> for UserOrVisitor {
    fn from(uploader: &Uploader) -> Self {
        match uploader {
            Uploader::User(id) | Uploader::Program(id) => Self::User(*id),
            Uploader::Visitor(pseudonym) => Self::Visitor(pseudonym.clone()),
        }
    }
}

/// Reserved memory. Dropping it releases it, and ends the turn of its caller.
#[must_use]
pub struct Memory {
    permit: OwnedSemaphorePermit,
    /// `None` for renderings, whose turns also count what is not sent yet.
    turn: Option<Turn>,
}

impl DecodeBudget {
    /// Creates the budget. Without settings, it is what the container's memory leaves beside uploads, and one thread
    /// per CPU of the container.
    pub fn new(limits: &LimitsConfig) -> Self {
        let uploads = limits.upload_memory_mib as u64;
        let available = container::memory_limit().map_or(4096, |bytes| bytes / MIB);
        // Buffers of an upload grow by steps and take up to a quarter more than its bytes.
        let default = available.saturating_sub(BASE_MIB + uploads + uploads / 4).max(MIN_MIB);
        let memory_mib = limits.decode_memory_mib.unwrap_or(default as u32);
        let cpus = || std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads = limits.decode_threads.unwrap_or_else(cpus);
        tracing::info!(memory_mib, threads, "Decoding pictures within {memory_mib} MiB");
        let largest = u64::from(limits.max_dimension).pow(2) * PIXEL_BYTES / MIB;
        if largest > u64::from(memory_mib) {
            tracing::warn!(
                "Pictures of RETOUCH_MAX_DIMENSION need about {largest} MiB and are refused: raise RETOUCH_DECODE_MEMORY_MIB or the memory of the container"
            );
        }
        Self {
            memory: Arc::new(Semaphore::new(memory_mib as usize)),
            memory_mib,
            threads: Arc::new(Semaphore::new(threads)),
            turns: Turns::new(PICTURES_OF_CALLER),
            wait: Duration::from_secs(limits.decode_wait_secs),
        }
    }

    /// Returns the memory that the rendered files of a caller may take until they are sent, in bytes.
    pub const fn unsent_share(&self, caller: &UserOrVisitor) -> usize {
        let memory = (self.memory_mib as usize) << 20;
        match caller {
            UserOrVisitor::User(_) => memory / SHARE_OF_USER,
            UserOrVisitor::Visitor(_) => memory / SHARE_OF_VISITOR,
        }
    }

    /// Returns true if work that takes `bytes` can ever run.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes.div_ceil(MIB) <= u64::from(self.memory_mib)
    }

    /// Runs `work`, which takes up to `bytes` of memory, on a thread that may block, in the turn of `caller`.
    ///
    /// # Errors
    /// Same as [`Self::reserve`].
    pub async fn run<T: Send + 'static>(
        &self,
        caller: UserOrVisitor,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Memory), ApiError> {
        let memory = self.reserve_soon(caller, bytes).await?;
        self.run_in(memory, work).await
    }

    /// Reserves memory in the turn of `caller`, waiting for each as long as the setting allows. Never call it
    /// with such memory in hand: pictures of one caller that each keep a turn while they wait for another would deadlock.
    ///
    /// # Errors
    /// Same as [`Self::reserve`].
    pub async fn reserve_soon(
        &self,
        caller: UserOrVisitor,
        bytes: u64,
    ) -> Result<Memory, ApiError> {
        let turn = timeout(self.wait, self.turns.next(caller)).await.map_err(|_| busy())??;
        let memory = self.reserve(bytes, self.wait).await?;
        Ok(Memory { turn: Some(turn), ..memory })
    }

    /// Returns memory of at least `bytes`: `memory` itself if it suffices, otherwise a new reservation in its place.
    ///
    /// # Errors
    /// Same as [`Self::reserve`].
    pub async fn enlarge(&self, memory: Memory, bytes: u64) -> Result<Memory, ApiError> {
        if memory.permit.num_permits() as u64 * MIB >= bytes {
            return Ok(memory);
        }
        // Release first: two callers that each keep their memory while asking for more would deadlock.
        let Memory { permit, turn } = memory;
        drop(permit);
        let memory = self.reserve(bytes, self.wait).await?;
        Ok(Memory { turn, ..memory })
    }

    /// Runs `work`, which keeps a thread of another process busy, within memory that is reserved, and returns the memory
    /// too. Dropping the future must end that process.
    pub async fn run_apart<T>(
        &self,
        memory: Memory,
        work: impl Future<Output = T>,
    ) -> Result<(T, Memory), ApiError> {
        let _thread = self.threads.acquire().await.context("the budget is closed")?;
        Ok((work.await, memory))
    }

    /// Reserves memory, waiting up to `wait`.
    ///
    /// # Errors
    /// [`ApiError::Unprocessable`] if it exceeds the whole budget, [`ApiError::Unavailable`] if it is not free in time.
    pub async fn reserve(&self, bytes: u64, wait: Duration) -> Result<Memory, ApiError> {
        if !self.fits(bytes) {
            let detail = "This image needs more memory than the server allows for one image. Please send it with fewer pixels.";
            return Err(ApiError::Unprocessable(detail.into()));
        }
        let mib = bytes.div_ceil(MIB).max(1) as u32;
        let granted = Arc::clone(&self.memory).acquire_many_owned(mib);
        let permit = timeout(wait, granted).await.map_err(|_| busy())?;
        Ok(Memory { permit: permit.context("the budget is closed")?, turn: None })
    }

    /// Runs `work` within memory that is reserved, on a thread that may block, and returns the memory too.
    pub async fn run_in<T: Send + 'static>(
        &self,
        memory: Memory,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Memory), ApiError> {
        let thread = Arc::clone(&self.threads).acquire_owned().await;
        let thread = thread.context("the budget is closed")?;
        // The work owns its grant, because it continues when its client hangs up.
        let made = tokio::task::spawn_blocking(move || {
            let made = work();
            drop(thread);
            (made, memory)
        });
        Ok(made.await.context("processing an image")?)
    }
}

impl Memory {
    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let kept = bytes.div_ceil(MIB as usize);
        drop(self.permit.split(self.permit.num_permits().saturating_sub(kept)));
    }

    /// Keeps as much memory as `file` takes until its last copy is dropped, and ends the turn that rendered it.
    pub fn keep_for(mut self, file: Bytes, turn: Turn) -> Bytes {
        self.shrink_to(file.len());
        let bytes = self.permit.num_permits() << 20;
        turn.end_with(kept_with(file, self), bytes)
    }
}

/// Returns the error for work that did not get its turn or its memory in time.
pub fn busy() -> ApiError {
    ApiError::Unavailable {
        detail: "Too many images are being processed. Please try again shortly.".into(),
        retry_after_secs: 5,
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn budget(memory_mib: u32, threads: usize) -> DecodeBudget {
        DecodeBudget {
            memory: Arc::new(Semaphore::new(memory_mib as usize)),
            memory_mib,
            threads: Arc::new(Semaphore::new(threads)),
            turns: Turns::new(PICTURES_OF_CALLER),
            wait: Duration::from_millis(100),
        }
    }

    fn caller(name: &str) -> UserOrVisitor {
        UserOrVisitor::Visitor(name.into())
    }

    #[tokio::test]
    async fn work_waits_for_memory_and_not_for_ever() {
        let budget = budget(100, 4);
        let ada = || caller("ada");
        let ((), mut first) = budget.run(ada(), 60 * MIB, || ()).await.expect("it fits");
        let busy = budget.run(ada(), 60 * MIB, || ()).await.err().expect("it waits in vain");
        assert!(matches!(busy, ApiError::Unavailable { retry_after_secs: 5, .. }), "{busy}");
        let large = budget.run(ada(), 101 * MIB, || ()).await.err().expect("it can never run");
        assert!(matches!(large, ApiError::Unprocessable(_)), "{large}");
        first.shrink_to(39 << 20);
        let (made, _) = budget.run(ada(), 61 * MIB, || 7).await.expect("there is room");
        assert_eq!(made, 7);
    }

    #[tokio::test]
    async fn a_caller_with_many_pictures_does_not_fill_the_queue() {
        let budget = DecodeBudget { wait: Duration::from_secs(30), ..budget(100, 4) };
        let reserve = |name| Box::pin(budget.reserve_soon(caller(name), 60 * MIB));
        let first = reserve("ada").await.expect("there is room");
        let (mut second, mut third, mut other) = (reserve("ada"), reserve("ada"), reserve("bob"));
        for waiting in [&mut second, &mut third, &mut other] {
            assert!(waiting.now_or_never().is_none());
        }
        drop(first);
        let second = second.await.expect("it is the first in the queue");
        assert!(third.as_mut().now_or_never().is_none());
        drop(second);
        let other = other.await.expect("it came before the third got its turn");
        assert!(third.as_mut().now_or_never().is_none());
        drop(other);
        drop(third.await.expect("nothing is left before it"));
    }

    #[tokio::test]
    async fn a_file_keeps_its_memory_until_it_is_sent() {
        let budget = budget(100, 4);
        let work = || Bytes::from(vec![0; 30 << 20]);
        let (file, memory) = budget.run(caller("ada"), 100 * MIB, work).await.expect("it fits");
        let share = budget.unsent_share(&caller("ada"));
        let turn = Turns::new(1).take("ada", share).await.expect("a turn");
        let file = memory.keep_for(file, turn);
        assert_eq!(budget.memory.available_permits(), 70);
        let rest = file.slice(1000..);
        drop(file);
        assert_eq!(budget.memory.available_permits(), 70);
        drop(rest);
        assert_eq!(budget.memory.available_permits(), 100);
    }

    #[tokio::test]
    async fn work_of_a_client_that_hung_up_keeps_its_memory_until_it_ends() {
        let budget = budget(100, 4);
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let work = budget.run(caller("ada"), 100 * MIB, move || finished.recv().is_ok());
        // Long enough to start, and then the request is dropped.
        let hung_up = tokio::time::timeout(Duration::from_millis(50), work).await;
        assert!(hung_up.is_err());
        assert_eq!(budget.memory.available_permits(), 0);
        finish.send(()).expect("the work still runs");
        let ((), _memory) =
            budget.run(caller("ada"), 100 * MIB, || ()).await.expect("it has ended");
    }
}
