//! Requests and replies of click to select: one list of requests that all workers pop from, and a list for each reply.
//!
//! A request names its deadline on the clock of the Redis server, so that a worker drops one whose caller has gone. What
//! is lost with Redis or with a worker is asked again by the person who clicked.

use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, RedisResult};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Queue, QueueError};
use crate::selection::{PendingSelection, SelectionFailure, SelectionReply, SelectionRequest};

/// How long one read blocks at the server, and so how long an idle worker may take to stop.
const BLOCK: Duration = Duration::from_secs(1);
/// How much longer an answer may take before the connection is dropped.
const RESPONSE_GRACE: Duration = Duration::from_secs(1);
/// More requests than this do not wait.
const MAX_WAITING: usize = 64;
/// How long requests and replies are kept that nobody reads, in seconds.
const KEPT_SECS: i64 = 30;
/// How long an announcement of a worker holds; it repeats it several times in this time.
const ANNOUNCED_SECS: u64 = 6;
/// The first byte of a reply with a selection, and of one without.
const SELECTED: u8 = 1;
const FAILED: u8 = 0;

/// Why a request got no reply.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// No worker selects.
    #[error("no worker is listening")]
    NoWorker,
    /// Too many requests are waiting.
    #[error("{MAX_WAITING} requests are waiting")]
    Busy,
    /// No reply came in time.
    #[error("no worker replied in time")]
    TimedOut,
    /// Redis is unavailable.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl From<redis::RedisError> for SelectionError {
    fn from(error: redis::RedisError) -> Self {
        Self::Queue(error.into())
    }
}

/// The content of the list.
#[derive(Serialize, Deserialize)]
struct Envelope {
    request: SelectionRequest,
    /// Microseconds since 1970, on the server's clock.
    deadline: u64,
}

impl Queue {
    /// Sends a request to the workers and waits up to `wait` for the reply.
    ///
    /// # Errors
    /// See [`SelectionError`].
    pub async fn request_selection(
        &self,
        request: SelectionRequest,
        wait: Duration,
    ) -> Result<SelectionReply, SelectionError> {
        let mut conn = self.conn.clone();
        let (now, has_worker): ((u64, u64), bool) =
            redis::pipe().cmd("TIME").exists(self.selectors()).query_async(&mut conn).await?;
        if !has_worker {
            return Err(SelectionError::NoWorker);
        }
        // Connects before it asks, so that it hears the reply.
        let mut reading = self.blocking_connection(wait).await?;
        let reply = self.selection_reply(request.id);
        let deadline = micros(now) + wait.as_micros() as u64;
        let envelope = serde_json::to_string(&Envelope { request, deadline });
        let envelope =
            envelope.map_err(|error| redis::RedisError::from(std::io::Error::from(error)))?;
        let list = self.selections_list();
        let (waiting,): (usize,) = redis::pipe()
            .rpush(&list, &envelope)
            .expire(&list, KEPT_SECS)
            .ignore()
            .query_async(&mut conn)
            .await?;
        if waiting > MAX_WAITING {
            conn.lrem::<_, _, ()>(&list, 1, &envelope).await?;
            return Err(SelectionError::Busy);
        }
        let replied: Option<(String, Vec<u8>)> = reading.blpop(&reply, wait.as_secs_f64()).await?;
        if let Some((_, bytes)) = replied {
            return Ok(decode(bytes.into()));
        }
        conn.lrem::<_, _, ()>(&list, 1, &envelope).await?;
        Err(SelectionError::TimedOut)
    }

    /// Announces for some seconds that this process takes requests.
    pub async fn announce_selector(&self) -> Result<(), QueueError> {
        let announced: RedisResult<()> =
            self.conn.clone().set_ex(self.selectors(), 1, ANNOUNCED_SECS).await;
        Ok(announced?)
    }

    /// Returns the requests as they come.
    pub fn selections(&self) -> Selections {
        Selections { queue: self.clone(), conn: None }
    }

    /// Replies to a request.
    pub async fn reply_selection(&self, id: Uuid, reply: SelectionReply) -> Result<(), QueueError> {
        let key = self.selection_reply(id);
        let sent: RedisResult<()> = redis::pipe()
            .rpush(&key, encode(reply))
            .expire(&key, KEPT_SECS)
            .query_async(&mut self.conn.clone())
            .await;
        Ok(sent?)
    }

    /// Opens a connection for reads that block for up to `wait`, which would delay other commands on a shared one.
    async fn blocking_connection(&self, wait: Duration) -> RedisResult<MultiplexedConnection> {
        let timeouts = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(wait + RESPONSE_GRACE));
        self.client.get_multiplexed_async_connection_with_config(&timeouts).await
    }

    fn selections_list(&self) -> String {
        format!("{}:selections", self.prefix)
    }

    fn selectors(&self) -> String {
        format!("{}:selectors", self.prefix)
    }

    fn selection_reply(&self, id: Uuid) -> String {
        format!("{}:selection:{id}", self.prefix)
    }
}

/// The requests as a worker takes them, over a connection of its own.
pub struct Selections {
    queue: Queue,
    conn: Option<MultiplexedConnection>,
}

impl Selections {
    /// Waits up to a second for the next request. Drops requests whose callers have gone.
    ///
    /// # Errors
    /// If Redis is unavailable; the next call connects again.
    pub async fn next(&mut self) -> Result<Option<PendingSelection>, QueueError> {
        let taken = self.try_next().await;
        if taken.is_err() {
            self.conn = None;
        }
        Ok(taken?)
    }

    async fn try_next(&mut self) -> RedisResult<Option<PendingSelection>> {
        let mut conn = match &self.conn {
            Some(conn) => conn.clone(),
            None => self.conn.insert(self.queue.blocking_connection(BLOCK).await?).clone(),
        };
        let list = self.queue.selections_list();
        let popped: Option<(String, String)> = conn.blpop(&list, BLOCK.as_secs_f64()).await?;
        let Some((_, text)) = popped else { return Ok(None) };
        let now: (u64, u64) = redis::cmd("TIME").query_async(&mut conn).await?;
        let Ok(Envelope { request, deadline }) = serde_json::from_str(&text) else {
            tracing::warn!("Dropped an entry that is not a selection");
            return Ok(None);
        };
        let time_left = Duration::from_micros(deadline.saturating_sub(micros(now)));
        if time_left.is_zero() {
            tracing::debug!(image.id = %request.image, "Dropped a selection whose caller has gone");
            return Ok(None);
        }
        Ok(Some(PendingSelection { request, time_left }))
    }
}

const fn micros((seconds, micros): (u64, u64)) -> u64 {
    seconds * 1_000_000 + micros
}

fn encode(reply: SelectionReply) -> Vec<u8> {
    match reply {
        Ok(png) => [&[SELECTED], png.as_ref()].concat(),
        Err(failure) => {
            let text = serde_json::to_vec(&failure).unwrap_or_default();
            [&[FAILED], text.as_slice()].concat()
        }
    }
}

fn decode(mut bytes: Bytes) -> SelectionReply {
    match bytes.first() {
        Some(&SELECTED) => Ok(bytes.split_off(1)),
        Some(&FAILED) => Err(serde_json::from_slice(&bytes[1..]).unwrap_or_else(|error| {
            SelectionFailure::Failed(format!("an unknown reply: {error}"))
        })),
        _ => Err(SelectionFailure::Failed("an empty reply".to_owned())),
    }
}
