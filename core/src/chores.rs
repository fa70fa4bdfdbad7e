//! Chores: work that one process at a time does at intervals, and the outcome of the last round.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgPool;

use crate::db;
use crate::db::advisory_lock::AdvisoryLock;

/// A chore, by its name in the database and its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chore {
    name: &'static str,
    lock: AdvisoryLock,
}

/// The janitor's hourly tasks.
pub(crate) const HOURLY: Chore = Chore { name: "hourly", lock: AdvisoryLock::Hourly };
/// Looking for orphans in the bucket.
pub(crate) const ORPHANS: Chore = Chore { name: "orphans", lock: AdvisoryLock::Orphans };
/// The audit of the books.
pub(crate) const AUDIT: Chore = Chore { name: "audit", lock: AdvisoryLock::Audit };
/// Adding up the ledger.
pub(crate) const SUMS: Chore = Chore { name: "sums", lock: AdvisoryLock::Sums };
/// Clearing old idempotency keys, a part of the hourly tasks.
pub(crate) const KEYS: Chore = Chore { name: "keys", lock: AdvisoryLock::Keys };

impl Chore {
    /// Does `work` unless another process is doing it; then returns `None`.
    pub(crate) async fn alone<T, E: From<sqlx::Error>>(
        self,
        pool: &PgPool,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Option<T>, E> {
        let Some(held) = self.lock.try_take(pool).await? else { return Ok(None) };
        let done = work.await;
        held.release_now().await?;
        done.map(Some)
    }

    /// Returns true, and records a new start, if no process started the chore within `interval`.
    pub(crate) async fn is_due(self, pool: &PgPool, interval: Duration) -> sqlx::Result<bool> {
        let begun = sqlx::query!(
            "insert into chores (name) values ($1)
             on conflict (name) do update set begun_at = now() where chores.begun_at < now() - $2::interval",
            self.name,
            db::interval(interval),
        )
        .execute(pool)
        .await?;
        Ok(begun.rows_affected() == 1)
    }

    /// Records that a round ended well, and its outcome.
    pub(crate) async fn finish(self, pool: &PgPool, outcome: impl Serialize) -> sqlx::Result<()> {
        let outcome =
            serde_json::to_value(outcome).map_err(|error| sqlx::Error::Encode(error.into()))?;
        sqlx::query!(
            "insert into chores (name, finished_at, outcome) values ($1, now(), $2)
             on conflict (name) do update set finished_at = now(), outcome = excluded.outcome",
            self.name,
            outcome,
        )
        .execute(pool)
        .await
        .map(drop)
    }

    /// Returns when the last round ended well, and its outcome; `None` before the first.
    pub(crate) async fn last<T: DeserializeOwned>(
        self,
        pool: &PgPool,
    ) -> sqlx::Result<Option<(DateTime<Utc>, T)>> {
        let last = sqlx::query!(
            r#"select finished_at as "at!", outcome as "outcome!" from chores
               where name = $1 and finished_at is not null and outcome is not null"#,
            self.name,
        )
        .fetch_optional(pool)
        .await?;
        let Some(last) = last else { return Ok(None) };
        let outcome = serde_json::from_value(last.outcome)
            .map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok(Some((last.at, outcome)))
    }
}
