//! Redis: doorbells ("there is work"), job events ("this job changed"), shared rate limits, requests that a worker
//! answers without a job, with their replies, and cancellations of calls. The only code that names apalis or Redis.
//!
//! Nothing here is the truth. The sweeper rings again for a lost doorbell, a request that waits for a job also polls
//! Postgres, and each process counts rate limits locally while Redis is away, so Redis can be flushed, restarted or
//! unreachable at any time. Runs on Redis 7 and Valkey 8, or newer.

mod cancellations;
mod events;
mod rate_limit;
mod requests;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use apalis::prelude::*;
use futures::future::BoxFuture;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::streams::{
    StreamAutoClaimOptions, StreamAutoClaimReply, StreamMaxlen, StreamPendingReply,
};
use redis::{AsyncCommands, Client, RedisResult};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::JobId;
use crate::config::RedisConfig;
use retouch_catalog::JobClass;
use streams::{FIELD, StreamsBackend, StreamsConfig};

pub use events::{JobEvent, JobProgress, ProgressStage};
pub use rate_limit::{Rate, Verdict};
pub use requests::{MAX_WAITING, Pending, Reply, Request, RequestError, Requests};

/// The approximate length of a stream; beyond it Redis drops the oldest doorbells, and the sweeper rings again
/// for their jobs.
const MAX_DOORBELLS: usize = 10_000;
/// The age at which an unacknowledged doorbell counts as lost. A live worker acknowledges within milliseconds.
const STALE_AFTER: Duration = Duration::from_secs(30);
/// The consumer group that all workers share.
const GROUP: &str = "workers";

/// Redis is unreachable or refused a command.
#[derive(Debug, thiserror::Error)]
#[error("Redis: {0}")]
pub struct QueueError(#[from] redis::RedisError);

/// Handles a doorbell. The id is nil if it rings for any job of the class.
pub type Handler = Arc<dyn Fn(JobId) -> BoxFuture<'static, ()> + Send + Sync>;

/// The connection to Redis: cheap to clone, opened on first use, reopened automatically.
#[derive(Clone)]
pub struct Queue {
    client: Client,
    conn: ConnectionManager,
    prefix: Arc<str>,
    /// True while the last read of the doorbells succeeded.
    rings: watch::Sender<bool>,
}

impl Queue {
    /// Prepares the connection without opening it.
    pub fn new(config: &RedisConfig) -> anyhow::Result<Self> {
        let client = Client::open(config.redis_url.reveal())
            .context("REDIS_URL is not a valid Redis URL")?;
        let settings = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(Duration::from_secs(1)));
        let conn = ConnectionManager::new_lazy_with_config(client.clone(), settings)
            .context("preparing the connection to Redis")?;
        Ok(Self {
            client,
            conn,
            prefix: config.redis_prefix.as_str().into(),
            rings: watch::Sender::new(false),
        })
    }

    /// Returns a receiver that holds true while this process hears doorbells.
    pub fn rings(&self) -> watch::Receiver<bool> {
        self.rings.subscribe()
    }

    /// Checks that the server answers.
    pub async fn ping(&self) -> Result<(), QueueError> {
        let answer: RedisResult<String> = self.conn.clone().ping().await;
        Ok(answer.map(drop)?)
    }

    /// Rings the doorbell for `job`. If this fails, the sweeper rings later.
    pub async fn ring(&self, class: JobClass, job: JobId) -> Result<(), QueueError> {
        let fields = [(FIELD, job.to_string())];
        let length = StreamMaxlen::Approx(MAX_DOORBELLS);
        let rung: RedisResult<()> =
            self.conn.clone().xadd_maxlen(self.stream(class), length, "*", &fields).await;
        Ok(rung?)
    }

    /// Rings `times` for any job of `class`.
    pub async fn ring_for_any(&self, class: JobClass, times: usize) -> Result<(), QueueError> {
        let stream = self.stream(class);
        let mut rings = redis::pipe();
        for _ in 0..times {
            rings.xadd(&stream, "*", &[(FIELD, Uuid::nil().to_string())]).ignore();
        }
        Ok(rings.query_async::<()>(&mut self.conn.clone()).await?)
    }

    /// Returns the number of doorbells of `class` that no worker has read.
    ///
    /// A doorbell whose worker was killed after reading it stays in the stream, but Redis delivers it to nobody
    /// else. It must not count, or its job could wait forever.
    pub async fn unread(&self, class: JobClass) -> Result<usize, QueueError> {
        let (stream, mut conn) = (self.stream(class), self.conn.clone());
        let length: usize = conn.xlen(&stream).await?;
        if length == 0 {
            return Ok(0);
        }
        let read = match conn.xpending::<_, _, StreamPendingReply>(&stream, GROUP).await {
            Ok(pending) => pending.count(),
            // No worker has read the stream since the server was flushed.
            Err(error) if error.code() == Some("NOGROUP") => 0,
            Err(error) => return Err(error.into()),
        };
        if read > 0 {
            self.delete_stale(&stream).await?;
        }
        Ok(length.saturating_sub(read))
    }

    /// Deletes doorbells that a worker read and never acknowledged.
    async fn delete_stale(&self, stream: &str) -> Result<(), QueueError> {
        let mut conn = self.conn.clone();
        let idle = STALE_AFTER.as_millis() as usize;
        let options = StreamAutoClaimOptions::default().count(100).with_justid();
        let stale: StreamAutoClaimReply =
            conn.xautoclaim_options(stream, GROUP, "sweeper", idle, "0", options).await?;
        let ids: Vec<String> = stale.claimed.into_iter().map(|entry| entry.id).collect();
        if !ids.is_empty() {
            let mut delete = redis::pipe();
            delete.xack(stream, GROUP, &ids).ignore().xdel(stream, &ids).ignore();
            delete.query_async::<()>(&mut conn).await?;
        }
        Ok(())
    }

    fn stream(&self, class: JobClass) -> String {
        format!("{}:jobs:{class}", self.prefix)
    }

    /// Calls `handler` for doorbells of `classes`, the most urgent class first and up to `slots` at once, until
    /// `stop`; then waits up to `patience` for the running handlers.
    pub async fn consume(
        &self,
        mut classes: Vec<JobClass>,
        slots: usize,
        handler: Handler,
        stop: CancellationToken,
        patience: Duration,
    ) -> anyhow::Result<()> {
        classes.sort();
        let config = StreamsConfig {
            streams: classes.iter().map(|class| self.stream(*class)).collect(),
            group: GROUP.to_owned(),
            // All workers share one name: nothing stays pending, so Redis need not tell them apart.
            consumer: "any".to_owned(),
            rings: self.rings.clone(),
        };
        let client = self.client.clone();
        Monitor::new()
            .shutdown_timeout(patience)
            .register(move |_| {
                WorkerBuilder::new("retouch")
                    .backend(StreamsBackend::new(client.clone(), config.clone()))
                    .data(handler.clone())
                    .concurrency(slots)
                    .parallelize(tokio::spawn)
                    .catch_panic()
                    .build(handle)
            })
            .run_with_signal(async move {
                stop.cancelled().await;
                Ok(())
            })
            .await
            .context("consuming the job streams")
    }
}

async fn handle(job: Uuid, handler: Data<Handler>) {
    handler(job.into()).await;
}
