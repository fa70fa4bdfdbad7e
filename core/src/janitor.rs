//! Cleaning up behind everybody: objects whose rows are gone, uploads nobody ended, visitors' pictures, silent workers.
//!
//! Any number of janitors may run at once; each task is safe to repeat.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::storage::Storage;
use crate::{images, storage, workers};

/// How often the janitor looks.
const ROUND: Duration = Duration::from_secs(10);

/// Cleans until `stop`.
pub async fn run(pool: PgPool, storage: Storage, stop: CancellationToken) {
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        if let Err(error) = round(&pool, &storage).await {
            tracing::warn!(%error, "Cleaning up broke off; the next round goes on");
        }
    }
}

/// One round.
pub async fn round(pool: &PgPool, storage: &Storage) -> anyhow::Result<()> {
    images::delete_expired(pool).await?;
    workers::forget_silent(pool).await?;
    loop {
        let doomed = storage::doomed(pool, 100).await?;
        if doomed.is_empty() {
            return Ok(());
        }
        for key in &doomed {
            storage.abort_uploads(pool, key).await?;
            storage.delete(key).await?;
        }
        storage::forget_doomed(pool, &doomed).await?;
    }
}
