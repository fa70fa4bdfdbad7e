//! What waits for a job: requests and event streams, woken by news from the workers and, when news gets
//! lost, by looking at Postgres once a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use retouch_core::JobId;
use retouch_core::db::PgPool;
use retouch_core::jobs::{self, Job};
use retouch_core::queue::{JobNews, Progress, Queue};
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::error::ApiError;

/// How often a waiting request looks for itself.
const LOOK: Duration = Duration::from_secs(1);

/// The news of this process.
pub struct News {
    sender: broadcast::Sender<JobNews>,
    /// The last progress of jobs that run; only a convenience for those who ask between two messages.
    progress: Arc<Mutex<HashMap<JobId, Progress>>>,
}

impl News {
    #[expect(clippy::new_without_default, reason = "there is one, made by the state")]
    pub fn new() -> Self {
        Self { sender: broadcast::channel(4096).0, progress: Arc::default() }
    }

    /// Starts passing on what the workers tell.
    pub fn start(&self, queue: Queue) {
        let (sender, progress) = (self.sender.clone(), self.progress.clone());
        let mut heard = sender.subscribe();
        tokio::spawn(async move { queue.listen(sender).await });
        tokio::spawn(async move {
            loop {
                let news = match heard.recv().await {
                    Ok(news) => news,
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                match news.progress {
                    Some(at) => drop(progress.insert(news.job, at)),
                    None => drop(progress.remove(&news.job)),
                }
            }
        });
    }

    /// Tells the requests of this process that a job changed.
    pub fn tell_here(&self, job: JobId) {
        let _ = self.sender.send(JobNews::changed(job));
    }

    /// The last progress that was heard of.
    pub fn progress(&self, job: JobId) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).get(&job).copied()
    }

    /// All news from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<JobNews> {
        self.sender.subscribe()
    }

    /// Waits until something is said about `job`, but no longer than `limit`.
    pub async fn wait(news: &mut broadcast::Receiver<JobNews>, job: JobId, limit: Duration) {
        let something = async {
            loop {
                match news.recv().await {
                    Ok(heard) if heard.job != job => {}
                    _ => return,
                }
            }
        };
        let _ = tokio::time::timeout(limit, something).await;
    }

    /// Waits until the job ends, for at most `limit`; returns it as it is then.
    pub async fn wait_for_end(
        &self,
        pool: &PgPool,
        id: JobId,
        limit: Duration,
    ) -> Result<Job, ApiError> {
        // Subscribed before the first look: what happens in between is not missed.
        let mut news = self.subscribe();
        let deadline = Instant::now() + limit;
        loop {
            let job = jobs::get(pool, id).await?.ok_or(ApiError::NotFound("Job"))?;
            let left = deadline.saturating_duration_since(Instant::now());
            if job.state.is_final() || left.is_zero() {
                return Ok(job);
            }
            Self::wait(&mut news, id, LOOK.min(left)).await;
        }
    }
}
