//! Job events over Redis pub/sub: progress, and "this job changed". Published after the commit.

use std::time::Duration;

use futures::StreamExt;
use redis::RedisResult;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::time::timeout;

use super::{Queue, QueueError};
use crate::JobId;
use crate::jobs::JobState;
use retouch_catalog::Count;

/// The silence after which a subscription is checked: a connection to a vanished server stays open.
const SILENCE: Duration = Duration::from_secs(5);
/// Maximum time for the server to answer a subscription.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Stage))]
#[serde(rename_all = "lowercase")]
pub enum ProgressStage {
    /// Reading the image from S3.
    Fetch,
    /// Decoding it.
    Decode,
    /// Preparing the model's input.
    Preprocess,
    /// Running the model.
    Infer,
    /// Turning the model's output into the result.
    Postprocess,
    /// Encoding the result as PNG.
    Encode,
    /// Writing the result to S3.
    Store,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobProgress {
    pub stage: ProgressStage,
    /// The finished part of the whole run, from 0 to 1.
    pub fraction: f32,
    /// Seconds until it ends, extrapolated from this run; `None` until that is possible.
    pub eta_secs: Option<u32>,
    /// The finished tiles or steps; `None` in stages that have neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
}

impl JobProgress {
    /// Returns the progress at the start of `stage`, with `fraction` of the whole run finished.
    pub const fn at(stage: ProgressStage, fraction: f32) -> Self {
        Self { stage, fraction, eta_secs: None, count: None }
    }
}

/// A change of a job, or its progress.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobEvent {
    pub job: JobId,
    /// Its progress; `None` if its row changed.
    pub progress: Option<JobProgress>,
    /// The new state, if the row changed and the publisher knows it. Without it, receivers read the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<JobState>,
}

impl JobEvent {
    /// Returns the event "the row of `job` changed".
    pub const fn changed(job: JobId) -> Self {
        Self { job, progress: None, state: None }
    }

    /// Returns the event "a worker claimed `job`".
    pub const fn started(job: JobId) -> Self {
        Self { job, progress: None, state: Some(JobState::Running) }
    }

    /// Returns the event "`job` ended in `state`".
    pub const fn ended(job: JobId, state: JobState) -> Self {
        Self { job, progress: None, state: Some(state) }
    }

    pub const fn progress(job: JobId, progress: JobProgress) -> Self {
        Self { job, progress: Some(progress), state: None }
    }

    /// Returns true if the job may have ended.
    pub fn may_be_final(&self) -> bool {
        self.progress.is_none() && self.state.is_none_or(JobState::is_final)
    }
}

impl Queue {
    /// Publishes an event to all processes. Events may get lost; the state of a job is in Postgres.
    pub async fn publish(&self, event: JobEvent) -> Result<(), QueueError> {
        self.publish_all(&[event]).await
    }

    /// Publishes events in one round trip, so that a server that does not answer is waited for once.
    pub async fn publish_all(&self, events: &[JobEvent]) -> Result<(), QueueError> {
        if events.is_empty() {
            return Ok(());
        }
        let mut publishing = redis::pipe();
        for event in events {
            let text = serde_json::to_string(event).map_err(std::io::Error::from);
            publishing.publish(self.channel(), text.map_err(redis::RedisError::from)?).ignore();
        }
        Ok(publishing.query_async::<()>(&mut self.conn.clone()).await?)
    }

    /// Subscribes to all events and forwards them to `receivers`, forever, through restarts and outages of the
    /// server.
    pub async fn forward_events(&self, receivers: broadcast::Sender<JobEvent>) {
        loop {
            if let Err(error) = self.forward_until_error(&receivers).await {
                tracing::warn!(%error, "Lost the subscription to job events; waiting requests poll Postgres until it is back");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn forward_until_error(
        &self,
        receivers: &broadcast::Sender<JobEvent>,
    ) -> RedisResult<()> {
        let (mut subscription, mut messages) =
            in_time(self.client.get_async_pubsub()).await?.split();
        in_time(subscription.subscribe(self.channel())).await?;
        loop {
            let Ok(message) = timeout(SILENCE, messages.next()).await else {
                in_time(subscription.ping::<redis::Value>()).await?;
                continue;
            };
            let Some(message) = message else { return Ok(()) };
            let text: String = message.get_payload()?;
            match serde_json::from_str(&text) {
                // Sending fails if nobody is waiting, which is fine.
                Ok(event) => drop(receivers.send(event)),
                Err(error) => tracing::warn!(%error, "Dropped a message that is not a job event"),
            }
        }
    }

    fn channel(&self) -> String {
        // API and workers of different versions share this name.
        format!("{}:news", self.prefix)
    }
}

async fn in_time<T>(request: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let late = |_| std::io::Error::new(std::io::ErrorKind::TimedOut, "the server does not answer");
    timeout(ANSWER_TIMEOUT, request).await.map_err(late)?
}
