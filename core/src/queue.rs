//! Redis: doorbells that say "there is work", and news about jobs. The only code that names apalis or
//! Redis.
//!
//! Nothing here is the truth. A doorbell that is lost is rung again by the sweeper, news that is lost is
//! found in Postgres by whoever waits for it; so Redis may be flushed, restarted or silent at any time.
//! Runs on Redis 7 and Valkey 8 or newer.

mod news;
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
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::JobId;
use crate::config::RedisConfig;
use retouch_catalog::JobClass;
use streams::{FIELD, StreamsBackend, StreamsConfig};

pub use news::{JobNews, Progress, Stage};

/// About how many doorbells a stream keeps, the oldest going first. The sweeper rings for jobs beyond.
const MOST_DOORBELLS: usize = 10_000;
/// A live worker acknowledges a doorbell within milliseconds.
const ORPHANED: Duration = Duration::from_secs(30);
/// The consumer group that all workers share.
const GROUP: &str = "workers";

/// Redis could not be reached or refused.
#[derive(Debug, thiserror::Error)]
#[error("Redis: {0}")]
pub struct QueueError(#[from] redis::RedisError);

/// What a worker does when its doorbell rings.
pub type Handler = Arc<dyn Fn(JobId) -> BoxFuture<'static, ()> + Send + Sync>;

/// The connection to Redis: cheap to clone, opened when first used, reopened by itself.
#[derive(Clone)]
pub struct Queue {
    client: Client,
    conn: ConnectionManager,
    prefix: Arc<str>,
}

impl Queue {
    /// Prepares the connection without opening it.
    pub fn new(config: &RedisConfig) -> anyhow::Result<Self> {
        let client = Client::open(config.redis_url.as_str())
            .context("REDIS_URL is no address of a Redis server")?;
        let settings = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(Duration::from_secs(1)));
        let conn = ConnectionManager::new_lazy_with_config(client.clone(), settings)
            .context("preparing the connection to Redis")?;
        Ok(Self { client, conn, prefix: config.redis_prefix.as_str().into() })
    }

    /// Asks the server for an answer.
    pub async fn ping(&self) -> Result<(), QueueError> {
        let answer: RedisResult<String> = self.conn.clone().ping().await;
        Ok(answer.map(drop)?)
    }

    /// Announces that `job` waits. On an error the sweeper rings instead.
    pub async fn ring(&self, class: JobClass, job: JobId) -> Result<(), QueueError> {
        let fields = [(FIELD, job.to_string())];
        let length = StreamMaxlen::Approx(MOST_DOORBELLS);
        let rung: RedisResult<()> =
            self.conn.clone().xadd_maxlen(self.stream(class), length, "*", &fields).await;
        Ok(rung?)
    }

    /// Rings `times` for whichever job of `class` is next.
    pub async fn ring_for_any(&self, class: JobClass, times: usize) -> Result<(), QueueError> {
        let stream = self.stream(class);
        let mut rings = redis::pipe();
        for _ in 0..times {
            rings.xadd(&stream, "*", &[(FIELD, Uuid::nil().to_string())]).ignore();
        }
        Ok(rings.query_async::<()>(&mut self.conn.clone()).await?)
    }

    /// How many doorbells of `class` nobody has heard yet.
    ///
    /// One that a worker read before it was killed stays in the stream and is given to nobody else: it
    /// rings no more, and if it counted, the job it was meant for could wait for ever.
    pub async fn unheard(&self, class: JobClass) -> Result<usize, QueueError> {
        let (stream, mut conn) = (self.stream(class), self.conn.clone());
        let length: usize = conn.xlen(&stream).await?;
        if length == 0 {
            return Ok(0);
        }
        let heard = match conn.xpending::<_, _, StreamPendingReply>(&stream, GROUP).await {
            Ok(pending) => pending.count(),
            // No worker has listened since the server was flushed.
            Err(error) if error.code() == Some("NOGROUP") => 0,
            Err(error) => return Err(error.into()),
        };
        if heard > 0 {
            self.forget_orphans(&stream).await?;
        }
        Ok(length.saturating_sub(heard))
    }

    /// Removes doorbells whose worker has not answered for so long that it must be gone.
    async fn forget_orphans(&self, stream: &str) -> Result<(), QueueError> {
        let mut conn = self.conn.clone();
        let idle = ORPHANED.as_millis() as usize;
        let options = StreamAutoClaimOptions::default().count(100).with_justid();
        let orphans: StreamAutoClaimReply =
            conn.xautoclaim_options(stream, GROUP, "sweeper", idle, "0", options).await?;
        let ids: Vec<String> = orphans.claimed.into_iter().map(|entry| entry.id).collect();
        if !ids.is_empty() {
            let mut settle = redis::pipe();
            settle.xack(stream, GROUP, &ids).ignore().xdel(stream, &ids).ignore();
            settle.query_async::<()>(&mut conn).await?;
        }
        Ok(())
    }

    fn stream(&self, class: JobClass) -> String {
        format!("{}:jobs:{class}", self.prefix)
    }

    /// Answers doorbells of `classes`, at most `slots` at once, the most urgent class first, until
    /// `stop`; then waits up to `patience` for the handlers that still run.
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
            // One name for all: nothing stays pending, so nobody needs to know who heard what.
            consumer: "any".to_owned(),
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
                    .build(answer)
            })
            .run_with_signal(async move {
                stop.cancelled().await;
                Ok(())
            })
            .await
            .context("consuming the job streams")
    }
}

async fn answer(job: Uuid, handler: Data<Handler>) {
    handler(job.into()).await;
}
