//! What waits for a job: requests and event streams, woken by news from the workers and, when news gets
//! lost, by looking at Postgres once a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use retouch_core::JobId;
use retouch_core::db::PgPool;
use retouch_core::jobs::{self, Job, JobState};
use retouch_core::queue::{JobNews, Progress, Queue};
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::error::ApiError;

/// How often a waiting request looks for itself.
const LOOK: Duration = Duration::from_secs(1);
/// How many messages about one job may lie unread; whoever is further behind looks for themselves.
const UNREAD: usize = 16;

/// The news of this process.
#[derive(Default)]
pub struct News {
    rooms: Arc<Rooms>,
    /// The last progress of jobs that run; only a convenience for those who ask between two messages.
    progress: Arc<Mutex<HashMap<JobId, Progress>>>,
}

/// Who waits for which job. News of one job wakes nobody who waits for another.
#[derive(Default)]
struct Rooms(Mutex<HashMap<JobId, broadcast::Sender<JobNews>>>);

impl Rooms {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, broadcast::Sender<JobNews>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, news: JobNews) {
        if let Some(room) = self.lock().get(&news.job) {
            // Nobody waiting is no error.
            let _ = room.send(news);
        }
    }

    fn tell_everybody_to_look(&self) {
        for (job, room) in self.lock().iter() {
            let _ = room.send(JobNews::changed(*job));
        }
    }
}

/// Somebody who waits for news of one job.
pub struct Listener {
    job: JobId,
    rooms: Arc<Rooms>,
    /// Only empty while this is dropped.
    heard: Option<broadcast::Receiver<JobNews>>,
}

impl Listener {
    /// Waits until something is said about the job, but no longer than `limit`.
    pub async fn wait(&mut self, limit: Duration) {
        self.wait_for(limit, |_| true).await;
    }

    /// Waits until `job` ends, for at most `limit`; returns it as it is then. It was read, or submitted, after
    /// this began to listen: what happens in between is not missed.
    pub async fn wait_for_end(
        mut self,
        pool: &PgPool,
        mut job: Job,
        limit: Duration,
    ) -> Result<Job, ApiError> {
        let deadline = Instant::now() + limit;
        while !job.state.is_final() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let heard = self.wait_for(LOOK.min(left), JobNews::may_be_its_end).await;
            if heard.is_some_and(|news| news.state == Some(JobState::Done)) {
                // The result itself is looked up next, and says whether that is so.
                return Ok(Job { state: JobState::Done, ..job });
            }
            job = jobs::get(pool, job.id).await?.ok_or(ApiError::NotFound("Job"))?;
        }
        Ok(job)
    }

    /// What was heard that matters; nothing when `limit` is over, or too much was said to hear all of it.
    async fn wait_for(
        &mut self,
        limit: Duration,
        matters: impl Fn(&JobNews) -> bool,
    ) -> Option<JobNews> {
        let heard = self.heard.as_mut()?;
        let something = async {
            loop {
                match heard.recv().await {
                    Ok(news) if matters(&news) => return Some(news),
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
        };
        tokio::time::timeout(limit, something).await.ok().flatten()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut rooms = self.rooms.lock();
        // Counted under the lock, so that nobody enters a room that is being given up.
        self.heard = None;
        if rooms.get(&self.job).is_some_and(|room| room.receiver_count() == 0) {
            rooms.remove(&self.job);
        }
    }
}

impl News {
    /// Starts passing on what the workers tell.
    pub fn start(&self, queue: Queue) {
        let (rooms, progress) = (self.rooms.clone(), self.progress.clone());
        let (sender, mut heard) = broadcast::channel::<JobNews>(4096);
        tokio::spawn(async move { queue.listen(sender).await });
        tokio::spawn(async move {
            loop {
                let news = match heard.recv().await {
                    Ok(news) => news,
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        rooms.tell_everybody_to_look();
                        continue;
                    }
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                {
                    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                    match news.progress {
                        Some(at) => drop(progress.insert(news.job, at)),
                        None => drop(progress.remove(&news.job)),
                    }
                }
                rooms.tell(news);
            }
        });
    }

    /// Tells the requests of this process that a job changed.
    pub fn tell_here(&self, job: JobId) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        self.rooms.tell(JobNews::changed(job));
    }

    /// The last progress that was heard of.
    pub fn progress(&self, job: JobId) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).get(&job).copied()
    }

    /// All news of `job` from now on.
    pub fn listen(&self, job: JobId) -> Listener {
        let mut rooms = self.rooms.lock();
        let room = rooms.entry(job).or_insert_with(|| broadcast::channel(UNREAD).0);
        Listener { job, rooms: self.rooms.clone(), heard: Some(room.subscribe()) }
    }
}
