//! Wakes the requests and event streams that wait for a job, or for any job of an account, when a worker publishes an
//! event.
//!
//! Events can be lost; waiting requests and streams therefore also poll Postgres.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use retouch_core::db::{self, PgPool};
use retouch_core::jobs::{self, Job, JobState};
use retouch_core::queue::{JobEvent, JobProgress, Queue};
use retouch_core::{JobId, UserId};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Unread events per job. A subscriber that falls further behind polls instead.
const CHANNEL_CAPACITY: usize = 16;

/// Maximum number of jobs whose progress is kept, more than ever run at once. Beyond that, all progress is dropped, and
/// workers report it again.
const MAX_PROGRESS: usize = 10_000;

/// Maximum number of open event streams per account in this process: each tab and program takes a connection.
const MAX_STREAMS: usize = 50;

/// Distributes workers' events to subscribers in this process.
#[derive(Default)]
pub struct JobEvents {
    channels: Arc<Channels>,
    accounts: Arc<Accounts>,
    /// The latest progress of each running job. In memory only, so a restart of the API loses it.
    progress: Arc<Mutex<HashMap<JobId, JobProgress>>>,
}

/// One channel per awaited job, so that an event wakes only the subscribers of its job.
#[derive(Default)]
struct Channels(Mutex<HashMap<JobId, broadcast::Sender<JobEvent>>>);

impl Channels {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, broadcast::Sender<JobEvent>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, event: JobEvent) {
        if let Some(channel) = self.lock().get(&event.job) {
            let _ = channel.send(event);
        }
    }

    fn wake_all(&self) {
        for (job, channel) in self.lock().iter() {
            let _ = channel.send(JobEvent::changed(*job));
        }
    }
}

/// The accounts with an open event stream in this process.
#[derive(Default)]
struct Accounts(Mutex<HashMap<UserId, Watched>>);

/// One account with open event streams.
#[derive(Default)]
struct Watched {
    streams: usize,
    changed: Arc<Notify>,
    /// Events name a job, not its owner.
    jobs: HashSet<JobId>,
}

impl Accounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<UserId, Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, is_concerned: impl Fn(&UserId, &Watched) -> bool) {
        for (user, account) in self.lock().iter() {
            if is_concerned(user, account) {
                account.changed.notify_waiters();
            }
        }
    }
}

/// A subscription to all jobs of one account.
pub struct AccountSubscription {
    user: UserId,
    accounts: Arc<Accounts>,
    changed: Arc<Notify>,
}

impl AccountSubscription {
    /// Names the active jobs of the account, whose events wake it from now on.
    pub fn watch(&self, jobs: impl Iterator<Item = JobId>) {
        if let Some(account) = self.accounts.lock().get_mut(&self.user) {
            account.jobs = jobs.collect();
        }
    }

    /// Returns how many streams the account has open in this process.
    pub fn streams(&self) -> u32 {
        self.accounts.lock().get(&self.user).map_or(1, |account| account.streams as u32)
    }

    /// Returns a future that ends with the next change. Changes count from this call, not from the first poll.
    pub fn changed(&self) -> OwnedNotified {
        self.changed.clone().notified_owned()
    }
}

impl Drop for AccountSubscription {
    fn drop(&mut self) {
        let mut accounts = self.accounts.lock();
        if let Some(account) = accounts.get_mut(&self.user) {
            account.streams -= 1;
            if account.streams == 0 {
                accounts.remove(&self.user);
            }
        }
    }
}

/// A subscription to the events of one job.
pub struct JobSubscription {
    job: JobId,
    channels: Arc<Channels>,
    /// `None` only during `drop`.
    events: Option<broadcast::Receiver<JobEvent>>,
}

impl JobSubscription {
    /// Returns how many others in this process wait for the job.
    pub fn others(&self) -> u32 {
        let channels = self.channels.lock();
        let all = channels.get(&self.job).map_or(0, broadcast::Sender::receiver_count);
        all.saturating_sub(1) as u32
    }

    /// Waits for the next event, for at most `limit`.
    pub async fn wait(&mut self, limit: Duration) {
        self.wait_for(limit, |_| true).await;
    }

    /// Waits until `job` ends, for at most `limit` and until this process stops, and returns its latest state. Subscribe
    /// before you read or submit `job`, so that no event is missed in between.
    pub async fn wait_for_end(
        mut self,
        pool: &PgPool,
        mut job: Job,
        limit: Duration,
        stopping: &CancellationToken,
    ) -> Result<Job, ApiError> {
        let deadline = Instant::now() + limit;
        while !job.state.is_final() && !stopping.is_cancelled() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let event = self.wait_for(POLL_INTERVAL.min(left), JobEvent::may_be_final);
            let event = stopping.run_until_cancelled(event).await.flatten();
            if event.is_some_and(|event| event.state == Some(JobState::Done)) {
                // Saves a query: the caller reads the results next, which would expose a wrong event.
                return Ok(Job { state: JobState::Done, ..job });
            }
            match db::within(jobs::get(pool, job.id)).await {
                Ok(found) => job = found.ok_or(ApiError::NotFound("Job"))?,
                // The job is still running, and the next look reads it again.
                Err(error) => {
                    tracing::warn!(%error, "Could not read a job that somebody waits for");
                }
            }
        }
        Ok(job)
    }

    /// Returns the next event that `matches`; `None` after `limit`, or if events were lost.
    async fn wait_for(
        &mut self,
        limit: Duration,
        matches: impl Fn(&JobEvent) -> bool,
    ) -> Option<JobEvent> {
        let events = self.events.as_mut()?;
        let matching = async {
            loop {
                match events.recv().await {
                    Ok(event) if matches(&event) => return Some(event),
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
        };
        tokio::time::timeout(limit, matching).await.ok().flatten()
    }
}

impl Drop for JobSubscription {
    fn drop(&mut self) {
        let mut channels = self.channels.lock();
        // Unsubscribe under the lock: otherwise another request could subscribe to a channel that is being removed.
        self.events = None;
        if channels.get(&self.job).is_some_and(|channel| channel.receiver_count() == 0) {
            channels.remove(&self.job);
        }
    }
}

impl JobEvents {
    /// Starts forwarding the workers' events to subscribers.
    pub fn start(&self, queue: Queue) {
        let (channels, progress) = (self.channels.clone(), self.progress.clone());
        let accounts = self.accounts.clone();
        let (sender, mut events) = broadcast::channel::<JobEvent>(4096);
        tokio::spawn(async move { queue.forward_events(sender).await });
        tokio::spawn(async move {
            loop {
                let event = match events.recv().await {
                    Ok(event) => event,
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        channels.wake_all();
                        accounts.wake(|_, _| true);
                        continue;
                    }
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                {
                    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                    match event.progress {
                        Some(latest) => {
                            // Progress that arrives after the end of its job would stay forever.
                            if progress.len() >= MAX_PROGRESS {
                                progress.clear();
                            }
                            progress.insert(event.job, latest);
                        }
                        None => {
                            progress.remove(&event.job);
                        }
                    }
                }
                channels.send(event);
                accounts.wake(|_, account| account.jobs.contains(&event.job));
            }
        });
    }

    /// Tells the event streams of `owner` in this process that a job was submitted.
    pub fn wake_owner(&self, owner: UserId) {
        self.accounts.wake(|user, _| *user == owner);
    }

    /// Tells the subscribers in this process that a job changed.
    pub fn publish_locally(&self, job: JobId) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        self.channels.send(JobEvent::changed(job));
        self.accounts.wake(|_, account| account.jobs.contains(&job));
    }

    /// Returns the latest progress received for `job`.
    pub fn progress(&self, job: JobId) -> Option<JobProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).get(&job).copied()
    }

    /// Subscribes to all jobs of `user` from now on. Refuses more than [`MAX_STREAMS`] subscriptions at once.
    pub fn subscribe_to_account(&self, user: UserId) -> Result<AccountSubscription, ApiError> {
        let mut accounts = self.accounts.lock();
        let account = accounts.entry(user).or_default();
        if account.streams == MAX_STREAMS {
            return Err(ApiError::RateLimited {
                detail:
                    "Too many pages or programs follow this account. Close some, then try again."
                        .into(),
                retry_after_secs: 10,
            });
        }
        account.streams += 1;
        let changed = account.changed.clone();
        Ok(AccountSubscription { user, accounts: self.accounts.clone(), changed })
    }

    /// Subscribes to the events of `job` from now on.
    pub fn subscribe(&self, job: JobId) -> JobSubscription {
        let mut channels = self.channels.lock();
        let channel = channels.entry(job).or_insert_with(|| broadcast::channel(CHANNEL_CAPACITY).0);
        JobSubscription { job, channels: self.channels.clone(), events: Some(channel.subscribe()) }
    }
}
