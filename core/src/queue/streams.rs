//! An apalis backend over Redis Streams in which a message is only a doorbell.
//!
//! A message carries only a job id; the job itself is in Postgres. A message is therefore acknowledged and
//! deleted on delivery and never redelivered, and the sweeper rings again for a lost one.
//!
//! apalis polls a backend only after it has reserved a free slot, and at most one read is in progress, so no
//! worker holds a message that another worker could handle.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use apalis_core::backend::{Backend, BackendConfig, finalize::Ephemeral, queue::Queue};
use apalis_core::layers::Identity;
use apalis_core::task::{Task, builder::TaskBuilder, task_id::TaskId};
use apalis_core::worker::context::WorkerContext;
use redis::aio::MultiplexedConnection;
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands, AsyncConnectionConfig, Client, Pipeline, RedisResult};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// The field of a message that holds the job id.
pub(super) const FIELD: &str = "job";
/// How long one read blocks at the server, which bounds how long an idle worker takes to stop.
const BLOCK: Duration = Duration::from_secs(1);
/// Grace period for an answer before the connection is dropped.
const RESPONSE_GRACE: Duration = Duration::from_secs(1);
/// The first and the maximum backoff after an error.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The streams that one worker reads.
#[derive(Clone, Debug)]
pub(super) struct StreamsConfig {
    /// The most urgent stream first: each is read only while those before it are empty.
    pub streams: Vec<String>,
    /// The consumer group that the workers share.
    pub group: String,
    /// This worker's name within the group.
    pub consumer: String,
    /// Set to whether the last read succeeded.
    pub rings: watch::Sender<bool>,
}

impl StreamsConfig {
    /// Notifies receivers only of changes.
    fn set_rings(&self, now: bool) {
        self.rings.send_if_modified(|rings| std::mem::replace(rings, now) != now);
    }
}

/// Reads the streams over its own connection, because a blocking read delays every other command on it.
struct Reader {
    client: Client,
    config: Arc<StreamsConfig>,
    conn: Option<MultiplexedConnection>,
    backoff: Duration,
}

impl Reader {
    fn new(client: Client, config: Arc<StreamsConfig>) -> Self {
        Self { client, config, conn: None, backoff: BACKOFF.0 }
    }

    /// Waits for the next doorbell, through errors; `None` once the worker is shutting down.
    async fn next(&mut self, worker: &WorkerContext) -> Option<Task<Uuid>> {
        while !worker.is_shutting_down() {
            match self.try_next(worker).await {
                Ok(task) => {
                    self.backoff = BACKOFF.0;
                    self.config.set_rings(true);
                    if task.is_some() {
                        return task;
                    }
                }
                Err(error) => {
                    self.config.set_rings(false);
                    tracing::warn!(%error, pause = ?self.backoff, "Could not read the job streams; retrying");
                    self.conn = None;
                    tokio::time::sleep(self.backoff).await;
                    self.backoff = (self.backoff * 2).min(BACKOFF.1);
                }
            }
        }
        None
    }

    /// Reads the first message by urgency, or waits up to [`BLOCK`] for one from any stream.
    async fn try_next(&mut self, worker: &WorkerContext) -> RedisResult<Option<Task<Uuid>>> {
        let config = self.config.clone();
        let mut conn = self.connection().await?;
        let once = StreamReadOptions::default().group(&config.group, &config.consumer).count(1);
        let mut found: Option<StreamReadReply> = None;
        // COUNT applies per stream, so one read of all streams could return several messages.
        for stream in &config.streams {
            if found.is_none() {
                found = conn.xread_options(&[stream], &[">"], &once).await?;
            }
        }
        if found.is_none() {
            let wait = once.block(BLOCK.as_millis() as usize);
            let new = vec![">"; config.streams.len()];
            found = conn.xread_options(&config.streams, &new, &wait).await?;
        }
        let mut settle = Pipeline::new();
        let mut taken = None;
        for key in found.into_iter().flat_map(|reply| reply.keys) {
            for message in key.ids {
                settle.xack(&key.key, &config.group, &[&message.id]).ignore();
                settle.xdel(&key.key, &[&message.id]).ignore();
                let job = message.get::<String>(FIELD).unwrap_or_default();
                let Ok(job) = job.parse::<Uuid>() else {
                    tracing::warn!(
                        stream = key.key,
                        entry = message.id,
                        "Dropped an entry that is not a doorbell"
                    );
                    continue;
                };
                // Two streams may have filled at once, or the worker may be shutting down by now.
                if taken.is_some() || worker.is_shutting_down() {
                    settle.xadd(&key.key, "*", &[(FIELD, job.to_string())]).ignore();
                } else {
                    let task = TaskBuilder::new(job).task_id(TaskId::from_string(message.id));
                    taken = Some(task.queue(Queue::from(key.key.as_str())).build());
                }
            }
        }
        if !settle.is_empty()
            && let Err(error) = settle.exec_async(&mut conn).await
        {
            tracing::warn!(%error, "Could not acknowledge a doorbell");
            self.conn = None;
        }
        Ok(taken)
    }

    /// Returns the open connection, or a new one after creating the consumer groups, which a flush or a restart
    /// of the server deletes. A group created at `0` also delivers doorbells rung in the meantime.
    async fn connection(&mut self) -> RedisResult<MultiplexedConnection> {
        if let Some(conn) = &self.conn {
            return Ok(conn.clone());
        }
        let timeouts = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(BLOCK + RESPONSE_GRACE));
        let mut conn = self.client.get_multiplexed_async_connection_with_config(&timeouts).await?;
        for stream in &self.config.streams {
            let made: RedisResult<()> =
                conn.xgroup_create_mkstream(stream, &self.config.group, "0").await;
            match made {
                Err(error) if error.code() != Some("BUSYGROUP") => return Err(error),
                _ => {}
            }
        }
        tracing::info!(streams = ?self.config.streams, "Listening for jobs");
        Ok(self.conn.insert(conn).clone())
    }

    /// Rings again for a doorbell that was read but can no longer be delivered.
    async fn put_back(&mut self, task: Task<Uuid>) {
        let stream = task.queue().map_or("", AsRef::as_ref);
        let fields = [(FIELD, task.args.to_string())];
        let rung: RedisResult<()> = match self.connection().await {
            Ok(mut conn) => conn.xadd(stream, "*", &fields).await,
            Err(error) => Err(error),
        };
        if let Err(error) = rung {
            tracing::warn!(%error, job.id = %task.args, "Lost a doorbell during shutdown; the sweeper rings again");
        }
    }
}

/// The apalis backend: job ids from Redis Streams, one read at a time.
///
/// The read is a separate task because apalis stops polling a backend between the stop signal and the end of
/// the last handler, and a message that arrives then must not wait that long. Dropping the backend aborts the
/// read.
pub(super) struct StreamsBackend {
    client: Client,
    config: Arc<StreamsConfig>,
    reader: Option<Reader>,
    reading: JoinSet<(Reader, Option<Task<Uuid>>)>,
}

impl StreamsBackend {
    /// Creates the backend; the first poll connects.
    pub fn new(client: Client, config: StreamsConfig) -> Self {
        Self { client, config: Arc::new(config), reader: None, reading: JoinSet::new() }
    }
}

impl Backend for StreamsBackend {
    type Task = Task<Uuid>;
    /// [`Reader`] retries after errors: an error that reached apalis would end the worker.
    type Error = Infallible;

    fn poll_ready(
        &mut self,
        _: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Self::Error>>> {
        loop {
            match ready!(self.reading.poll_join_next(cx)) {
                Some(Ok((reader, task))) => {
                    self.reader = Some(reader);
                    if let Some(task) = task {
                        return Poll::Ready(Some(Ok(task)));
                    }
                }
                Some(Err(error)) => {
                    tracing::error!(%error, "The stream reader panicked; starting a new one");
                }
                None => {}
            }
            if worker.is_shutting_down() {
                return Poll::Ready(None);
            }
            let mut reader = self
                .reader
                .take()
                .unwrap_or_else(|| Reader::new(self.client.clone(), self.config.clone()));
            let worker = worker.clone();
            self.reading.spawn(async move {
                let task = reader.next(&worker).await;
                (reader, task)
            });
        }
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Self::Error>> {
        while let Some(read) = ready!(self.reading.poll_join_next(cx)) {
            if let Ok((mut reader, Some(task))) = read {
                self.reading.spawn(async move {
                    reader.put_back(task).await;
                    (reader, None)
                });
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for StreamsBackend {
    type Args = Uuid;
    type Id = String;
    type Kind = Ephemeral;
    type Config = StreamsConfig;
    type Layer = Identity;

    fn config(&self) -> &StreamsConfig {
        &self.config
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Identity {
        Identity::new()
    }
}
