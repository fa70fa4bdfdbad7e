//! Watches the object store. While it is unavailable, or the bucket is another installation's, this worker claims no jobs:
//! they would only fail, and another worker may still reach the right bucket.

use std::sync::Arc;
use std::time::Duration;

use retouch_core::db::PgPool;
use retouch_core::storage::{OwnerError, Storage, check_owner};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// The interval between probes while the store is available.
const INTERVAL: Duration = Duration::from_secs(5);
/// The interval while it is not.
const INTERVAL_UNAVAILABLE: Duration = Duration::from_secs(1);

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketState {
    /// The store answers, and has the bucket.
    Available,
    /// The store does not answer, or lacks the bucket.
    Unavailable,
    /// The bucket belongs to another database.
    Foreign,
}

/// The state of the bucket, as of the last probe. Clones share it.
#[derive(Clone)]
pub struct StorageProbe {
    state: watch::Sender<BucketState>,
    doubt: Arc<Notify>,
}

impl Default for StorageProbe {
    fn default() -> Self {
        Self { state: watch::Sender::new(BucketState::Available), doubt: Arc::default() }
    }
}

impl StorageProbe {
    /// Returns what the last probe found.
    pub fn state(&self) -> BucketState {
        *self.state.borrow()
    }

    /// Returns true unless the last probe failed.
    pub fn is_available(&self) -> bool {
        self.state() == BucketState::Available
    }

    /// Returns a receiver that is notified of changes.
    pub fn subscribe(&self) -> watch::Receiver<BucketState> {
        self.state.subscribe()
    }

    /// Probes at once, because a job failed at the store.
    pub fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Probes `storage` until `stop`.
    pub async fn run(self, pool: PgPool, storage: Storage, stop: CancellationToken) {
        let mut is_ours = false;
        let probing = async {
            loop {
                let (state, reason) = match probe(&pool, &storage, &mut is_ours).await {
                    Ok(()) => (BucketState::Available, String::new()),
                    Err(error @ OwnerError::Foreign(_)) => {
                        (BucketState::Foreign, error.to_string())
                    }
                    Err(error) => (BucketState::Unavailable, error.to_string()),
                };
                let is_news =
                    self.state.send_if_modified(|before| std::mem::replace(before, state) != state);
                match state {
                    BucketState::Available if is_news => {
                        tracing::info!("The object store is available again; claiming jobs");
                    }
                    BucketState::Unavailable if is_news => {
                        tracing::error!(%reason, "The object store is unavailable; claiming no jobs");
                    }
                    BucketState::Foreign if is_news => {
                        tracing::error!("Claiming no jobs: {reason}");
                    }
                    _ => {}
                }
                let is_available = state == BucketState::Available;
                let pause = if is_available { INTERVAL } else { INTERVAL_UNAVAILABLE };
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.doubt.notified(), if is_available => {}
                }
            }
        };
        stop.run_until_cancelled(probing).await;
    }
}

/// Checks that the store answers and, until it is known, whose the bucket is.
async fn probe(pool: &PgPool, storage: &Storage, is_ours: &mut bool) -> Result<(), OwnerError> {
    storage.ping().await?;
    if *is_ours {
        return Ok(());
    }
    match check_owner(pool, storage).await {
        // The next probe knows more.
        Err(OwnerError::Database(_)) => Ok(()),
        checked => {
            *is_ours = checked.is_ok();
            checked
        }
    }
}
