//! Requests that a worker answers within seconds, without a job: one list per kind of request that all workers pop from,
//! and a list for each reply.
//!
//! A request names its deadline on the clock of the Redis server, so that a worker drops one whose caller has gone. A
//! request that is lost with Redis or with a worker is repeated by the person who is waiting for it.

use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, RedisResult};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Queue, QueueError};

/// How long one read blocks at the server, which bounds how long an idle worker takes to stop.
const BLOCK: Duration = Duration::from_secs(1);
/// Grace period for an answer before the connection is dropped.
const RESPONSE_GRACE: Duration = Duration::from_secs(1);
/// Maximum number of waiting requests of a kind; more are refused.
pub const MAX_WAITING: usize = 64;
/// How long unread requests and replies are kept, in seconds.
const KEPT_SECS: i64 = 60;
/// How long a worker's announcement is valid; workers renew it several times in that time.
const ANNOUNCED_SECS: u64 = 6;
/// The first byte of a reply with an answer, and of one without.
const ANSWERED: u8 = 1;
const FAILED: u8 = 0;

/// A request to the workers.
pub trait Request: Serialize + DeserializeOwned + Send + Sync {
    /// The name of its kind, in the plural: part of keys in Redis.
    const KIND: &'static str;
    /// Why a worker has no answer.
    type Failure: Serialize + DeserializeOwned + Send;

    /// Returns the id, which distinguishes the reply from others.
    fn id(&self) -> Uuid;

    /// Returns the failure that stands for a reply that cannot be read.
    fn unreadable_reply(reason: String) -> Self::Failure;
}

/// A worker's reply to a request: an answer, or why there is none.
pub type Reply<R> = Result<Bytes, <R as Request>::Failure>;

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("no worker is listening")]
    NoWorker,
    /// Too many requests are waiting.
    #[error("{MAX_WAITING} requests are waiting")]
    Busy,
    #[error("no worker replied in time")]
    TimedOut,
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl From<redis::RedisError> for RequestError {
    fn from(error: redis::RedisError) -> Self {
        Self::Queue(error.into())
    }
}

/// A request that a worker has taken, and how long its caller still waits.
#[derive(Clone, Debug)]
pub struct Pending<R> {
    pub request: R,
    /// After this time nobody reads the reply.
    pub time_left: Duration,
}

/// The content of the list.
#[derive(Serialize, Deserialize)]
struct Envelope<R> {
    request: R,
    /// Microseconds since 1970, on the server's clock.
    deadline: u64,
}

impl Queue {
    /// Sends a request to the workers and waits up to `wait` for the reply, or until `abandoned`: then it takes the request
    /// back, if no worker has it yet, and returns [`RequestError::TimedOut`].
    pub async fn request<R: Request>(
        &self,
        request: R,
        wait: Duration,
        abandoned: impl Future<Output = ()>,
    ) -> Result<Reply<R>, RequestError> {
        let mut conn = self.conn.clone();
        let (now, has_worker): ((u64, u64), bool) = redis::pipe()
            .cmd("TIME")
            .exists(self.request_workers::<R>())
            .query_async(&mut conn)
            .await?;
        if !has_worker {
            return Err(RequestError::NoWorker);
        }
        // Connects before it asks, so that it hears the reply.
        let mut reading = self.blocking_connection(wait).await?;
        let reply = self.request_reply::<R>(request.id());
        let deadline = micros(now) + wait.as_micros() as u64;
        let envelope = serde_json::to_string(&Envelope { request, deadline });
        let envelope =
            envelope.map_err(|error| redis::RedisError::from(std::io::Error::from(error)))?;
        let list = self.request_list::<R>();
        let (waiting,): (usize,) = redis::pipe()
            .rpush(&list, &envelope)
            .expire(&list, KEPT_SECS)
            .ignore()
            .query_async(&mut conn)
            .await?;
        if waiting > MAX_WAITING {
            conn.lrem::<_, _, ()>(&list, 1, &envelope).await?;
            return Err(RequestError::Busy);
        }
        let replied: Option<(String, Vec<u8>)> = tokio::select! {
            replied = reading.blpop(&reply, wait.as_secs_f64()) => replied?,
            () = abandoned => None,
        };
        if let Some((_, bytes)) = replied {
            return Ok(decode::<R>(bytes.into()));
        }
        conn.lrem::<_, _, ()>(&list, 1, &envelope).await?;
        Err(RequestError::TimedOut)
    }

    /// Announces for some seconds that this process answers requests of a kind.
    pub async fn announce<R: Request>(&self) -> Result<(), QueueError> {
        let announced: RedisResult<()> =
            self.conn.clone().set_ex(self.request_workers::<R>(), 1, ANNOUNCED_SECS).await;
        Ok(announced?)
    }

    /// Returns the requests of a kind as they come.
    pub fn requests<R: Request>(&self) -> Requests<R> {
        Requests { queue: self.clone(), conn: None, kind: PhantomData }
    }

    pub async fn reply<R: Request>(&self, id: Uuid, reply: Reply<R>) -> Result<(), QueueError> {
        let key = self.request_reply::<R>(id);
        let sent: RedisResult<()> = redis::pipe()
            .rpush(&key, encode::<R>(reply))
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

    fn request_list<R: Request>(&self) -> String {
        format!("{}:{}", self.prefix, R::KIND)
    }

    fn request_workers<R: Request>(&self) -> String {
        format!("{}:{}:workers", self.prefix, R::KIND)
    }

    fn request_reply<R: Request>(&self, id: Uuid) -> String {
        format!("{}:{}:{id}", self.prefix, R::KIND)
    }
}

/// The requests of a kind as a worker takes them, over a connection of its own.
pub struct Requests<R> {
    queue: Queue,
    conn: Option<MultiplexedConnection>,
    kind: PhantomData<fn() -> R>,
}

impl<R: Request> Requests<R> {
    /// Waits up to a second for the next request. Drops requests whose callers have gone.
    ///
    /// # Errors
    /// If Redis is unavailable; the next call connects again.
    pub async fn next(&mut self) -> Result<Option<Pending<R>>, QueueError> {
        let taken = self.try_next().await;
        if taken.is_err() {
            self.conn = None;
        }
        Ok(taken?)
    }

    async fn try_next(&mut self) -> RedisResult<Option<Pending<R>>> {
        let mut conn = match &self.conn {
            Some(conn) => conn.clone(),
            None => self.conn.insert(self.queue.blocking_connection(BLOCK).await?).clone(),
        };
        let list = self.queue.request_list::<R>();
        let popped: Option<(String, String)> = conn.blpop(&list, BLOCK.as_secs_f64()).await?;
        let Some((_, text)) = popped else { return Ok(None) };
        let now: (u64, u64) = redis::cmd("TIME").query_async(&mut conn).await?;
        let Ok(Envelope { request, deadline }) = serde_json::from_str::<Envelope<R>>(&text) else {
            tracing::warn!(kind = R::KIND, "Dropped an entry that is not a request");
            return Ok(None);
        };
        let time_left = Duration::from_micros(deadline.saturating_sub(micros(now)));
        if time_left.is_zero() {
            tracing::debug!(kind = R::KIND, "Dropped a request whose caller has gone");
            return Ok(None);
        }
        Ok(Some(Pending { request, time_left }))
    }
}

const fn micros((seconds, micros): (u64, u64)) -> u64 {
    seconds * 1_000_000 + micros
}

fn encode<R: Request>(reply: Reply<R>) -> Vec<u8> {
    match reply {
        Ok(answer) => [&[ANSWERED], answer.as_ref()].concat(),
        Err(failure) => {
            let text = serde_json::to_vec(&failure).unwrap_or_default();
            [&[FAILED], text.as_slice()].concat()
        }
    }
}

fn decode<R: Request>(mut bytes: Bytes) -> Reply<R> {
    match bytes.first() {
        Some(&ANSWERED) => Ok(bytes.split_off(1)),
        Some(&FAILED) => Err(serde_json::from_slice(&bytes[1..])
            .unwrap_or_else(|error| R::unreadable_reply(format!("an unknown reply: {error}")))),
        _ => Err(R::unreadable_reply("an empty reply".to_owned())),
    }
}
