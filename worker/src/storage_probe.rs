//! Watches the object store. While it is unavailable, this worker claims no jobs: they would only fail, and another
//! worker may still reach the store.

use std::sync::Arc;
use std::time::Duration;

use retouch_core::storage::Storage;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// The interval between probes while the store is available.
const INTERVAL: Duration = Duration::from_secs(5);
/// The interval while it is not.
const INTERVAL_UNAVAILABLE: Duration = Duration::from_secs(1);

/// Whether the object store is available, as of the last probe. Clones share the answer.
#[derive(Clone)]
pub struct StorageProbe {
    available: watch::Sender<bool>,
    doubt: Arc<Notify>,
}

impl Default for StorageProbe {
    fn default() -> Self {
        Self { available: watch::Sender::new(true), doubt: Arc::default() }
    }
}

impl StorageProbe {
    /// Returns true unless the last probe failed.
    pub fn is_available(&self) -> bool {
        *self.available.borrow()
    }

    /// Returns a receiver that is notified of changes.
    pub fn subscribe(&self) -> watch::Receiver<bool> {
        self.available.subscribe()
    }

    /// Probes at once, because a job failed at the store.
    pub fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Probes `storage` until `stop`.
    pub async fn run(self, storage: Storage, stop: CancellationToken) {
        let probing = async {
            loop {
                let answer = storage.ping().await;
                let is_news = self.available.send_if_modified(|available| {
                    std::mem::replace(available, answer.is_ok()) != answer.is_ok()
                });
                match &answer {
                    Ok(()) if is_news => {
                        tracing::info!("The object store is available again; claiming jobs");
                    }
                    Err(error) if is_news => {
                        tracing::error!(%error, "The object store is unavailable; claiming no jobs");
                    }
                    _ => {}
                }
                let pause = if answer.is_ok() { INTERVAL } else { INTERVAL_UNAVAILABLE };
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.doubt.notified(), if answer.is_ok() => {}
                }
            }
        };
        stop.run_until_cancelled(probing).await;
    }
}
