//! Probes the object store. While it is unavailable, or the bucket does not belong to the database, this worker claims no
//! jobs: they would only fail, and another worker may still reach the right bucket.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketState {
    /// No probe has ended yet.
    Unknown,
    /// The store answers, and has the bucket.
    Available,
    /// The store does not answer, or lacks the bucket.
    Unavailable,
    /// The bucket does not belong to this database.
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
        Self { state: watch::Sender::new(BucketState::Unknown), doubt: Arc::default() }
    }
}

impl StorageProbe {
    pub fn state(&self) -> BucketState {
        *self.state.borrow()
    }

    pub fn is_available(&self) -> bool {
        self.state() == BucketState::Available
    }

    pub fn subscribe(&self) -> watch::Receiver<BucketState> {
        self.state.subscribe()
    }

    /// Probes at once, because a job failed at the store.
    pub fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Probes `storage` until `stop`.
    pub async fn run(self, pool: PgPool, storage: Storage, stop: CancellationToken) {
        let probing = async {
            loop {
                self.probe(&pool, &storage).await;
                let is_available = self.is_available();
                let pause = if is_available { INTERVAL } else { INTERVAL_UNAVAILABLE };
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.doubt.notified(), if is_available => {}
                }
            }
        };
        stop.run_until_cancelled(probing).await;
    }

    async fn probe(&self, pool: &PgPool, storage: &Storage) {
        let (state, reason) = match check_owner(pool, storage).await {
            Ok(()) => (BucketState::Available, String::new()),
            // The store answers but the database does not: the owner is unknown, so keep the last state.
            Err(OwnerError::Database(_)) => return,
            Err(error @ OwnerError::Foreign { .. }) => (BucketState::Foreign, error.to_string()),
            Err(error @ OwnerError::Storage(_)) => (BucketState::Unavailable, error.to_string()),
        };
        let before = self.state();
        if before == state {
            return;
        }
        self.state.send_replace(state);
        match state {
            BucketState::Available if before != BucketState::Unknown => {
                tracing::info!("The object store is available again; claiming jobs");
            }
            BucketState::Available | BucketState::Unknown => {}
            BucketState::Unavailable => {
                tracing::error!(%reason, "The object store is unavailable; claiming no jobs");
            }
            BucketState::Foreign => tracing::error!("Claiming no jobs: {reason}"),
        }
    }
}
