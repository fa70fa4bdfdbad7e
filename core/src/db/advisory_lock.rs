//! The advisory locks of Postgres sessions. Each ensures that one process at a time does a certain task.

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockGuard, PgAdvisoryLockKey};
use sqlx::{PgPool, Postgres};

/// A lock and its number in the database. The numbers are arbitrary; the compiler rejects one that occurs twice.
#[derive(Clone, Copy, Debug)]
#[repr(i64)]
pub(crate) enum AdvisoryLock {
    Migration = 0x0072_6574_6f75_6368,
    /// The janitor's hourly tasks.
    Hourly = 0x7265_746f_7563_6801,
    /// The audit of the books.
    Audit = 0x7265_746f_7563_6802,
    /// Adding up the ledger.
    Sums = 0x7265_746f_7563_6803,
    /// Clearing old idempotency keys.
    Keys = 0x7265_746f_7563_6804,
    /// Looking for orphans in the bucket.
    Orphans = 0x7265_746f_7563_6805,
}

/// A lock that this process holds. Dropping it releases it, at the latest when its connection closes.
pub(crate) type Held = PgAdvisoryLockGuard<PoolConnection<Postgres>>;

impl AdvisoryLock {
    /// Takes the lock; `None` if another process holds it.
    pub(crate) async fn try_take(self, pool: &PgPool) -> sqlx::Result<Option<Held>> {
        let lock = PgAdvisoryLock::with_key(PgAdvisoryLockKey::BigInt(self as i64));
        Ok(lock.try_acquire(pool.acquire().await?).await?.left())
    }
}
