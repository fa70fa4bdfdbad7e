//! News about jobs over Redis pub/sub: progress, and "look again, it changed". Sent after commit.

use std::time::Duration;

use futures::StreamExt;
use redis::{AsyncCommands, RedisResult};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::{Queue, QueueError};
use crate::JobId;
use crate::jobs::JobState;
use retouch_catalog::Count;

/// The step of a run that a worker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reading the picture from S3.
    Fetch,
    /// Decoding it.
    Decode,
    /// Making the model's input of it.
    Preprocess,
    /// Running the model.
    Infer,
    /// Making the result of the model's output.
    Postprocess,
    /// Encoding the PNG.
    Encode,
    /// Writing it to S3.
    Store,
}

/// How far a running job is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The step it is at.
    pub stage: Stage,
    /// How much of the whole run is behind it, from 0 to 1.
    pub fraction: f32,
    /// Seconds until it ends, as measured during this very run; `None` where that cannot be told yet.
    pub eta_secs: Option<u32>,
    /// Tiles or steps; `None` while nothing can be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
}

impl Progress {
    /// At the beginning of `stage`, with `fraction` of the whole run behind it.
    pub const fn at(stage: Stage, fraction: f32) -> Self {
        Self { stage, fraction, eta_secs: None, count: None }
    }
}

/// Something about a job that somebody may be waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobNews {
    /// Which job.
    pub job: JobId,
    /// How far it is; `None` when its row changed.
    pub progress: Option<Progress>,
    /// Where it is now, when its row changed and whoever tells it knows; else those who care look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<JobState>,
}

impl JobNews {
    /// The row of `job` changed.
    pub const fn changed(job: JobId) -> Self {
        Self { job, progress: None, state: None }
    }

    /// A worker has just taken `job`.
    pub const fn started(job: JobId) -> Self {
        Self { job, progress: None, state: Some(JobState::Running) }
    }

    /// `job` has ended.
    pub const fn ended(job: JobId, state: JobState) -> Self {
        Self { job, progress: None, state: Some(state) }
    }

    /// `job` is so far.
    pub const fn progress(job: JobId, progress: Progress) -> Self {
        Self { job, progress: Some(progress), state: None }
    }

    /// Whether the job may have ended.
    pub fn may_be_its_end(&self) -> bool {
        self.progress.is_none() && self.state.is_none_or(JobState::is_final)
    }
}

impl Queue {
    /// Tells everybody who listens. News may get lost; what matters is in Postgres.
    pub async fn tell(&self, news: JobNews) -> Result<(), QueueError> {
        let text = serde_json::to_string(&news).map_err(std::io::Error::from);
        let text = text.map_err(redis::RedisError::from)?;
        let told: RedisResult<()> = self.conn.clone().publish(self.channel(), text).await;
        Ok(told?)
    }

    /// Passes news on to `listeners` for ever, through restarts and silences of the server.
    pub async fn listen(&self, listeners: broadcast::Sender<JobNews>) {
        loop {
            if let Err(error) = self.listen_once(&listeners).await {
                tracing::warn!(%error, "Lost the news channel; waiting requests look at Postgres meanwhile");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn listen_once(&self, listeners: &broadcast::Sender<JobNews>) -> RedisResult<()> {
        let mut subscription = self.client.get_async_pubsub().await?;
        subscription.subscribe(self.channel()).await?;
        let mut messages = subscription.on_message();
        while let Some(message) = messages.next().await {
            let text: String = message.get_payload()?;
            match serde_json::from_str(&text) {
                // Nobody waiting is no error.
                Ok(news) => drop(listeners.send(news)),
                Err(error) => tracing::warn!(%error, "Dropped a message that is no news"),
            }
        }
        Ok(())
    }

    fn channel(&self) -> String {
        format!("{}:news", self.prefix)
    }
}
