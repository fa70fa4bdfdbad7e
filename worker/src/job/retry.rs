//! Waits for the database.

use std::time::{Duration, Instant};

use retouch_core::db::{self, DatabaseError};

/// How long to retry while the database is unavailable. The lease cannot go to another worker meanwhile.
const DATABASE_RETRY_TIME: Duration = Duration::from_mins(15);
/// The longest pause between two tries.
const DATABASE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Retries a query with backoff while the database is unavailable, for up to [`DATABASE_RETRY_TIME`]. The query must be
/// idempotent.
pub(super) async fn retry_database<T, F>(query: impl Fn() -> F) -> Result<T, DatabaseError>
where
    F: Future<Output = Result<T, DatabaseError>>,
{
    let deadline = Instant::now() + DATABASE_RETRY_TIME;
    let mut delay = Duration::from_millis(100);
    loop {
        match db::within(query()).await {
            Err(error) if Instant::now() < deadline => {
                tracing::warn!(%error, "The database is unavailable; retrying");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(DATABASE_RETRY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
