//! Asks the process that runs a call to cancel it. A request may get lost; the call then ends on its own.

use redis::{AsyncCommands, RedisResult};

use super::{Queue, QueueError};

/// How long a request is kept, in seconds. Calls look for it once a second.
const KEPT_SECS: u64 = 60;

impl Queue {
    /// Asks the process that runs `call` to cancel it.
    pub async fn request_cancellation(&self, call: &str) -> Result<(), QueueError> {
        let key = self.cancellation(call);
        let set: RedisResult<()> = self.conn.clone().set_ex(key, 1, KEPT_SECS).await;
        Ok(set?)
    }

    /// Returns true if the cancellation of `call` was requested within the last minute.
    pub async fn is_cancellation_requested(&self, call: &str) -> Result<bool, QueueError> {
        let exists: RedisResult<bool> = self.conn.clone().exists(self.cancellation(call)).await;
        Ok(exists?)
    }

    fn cancellation(&self, call: &str) -> String {
        format!("{}:cancel:{call}", self.prefix)
    }
}
