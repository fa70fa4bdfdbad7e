//! When the database was reachable. A worker that cannot reach it cannot renew its leases, so an outage must not
//! look like a crash.
//!
//! Every process updates one row each second. A gap means that none of them reached the database: it was stopped,
//! paused or cut off. After a gap, [`super::sweep`] waits for one lease, in which workers renew what they hold.

use std::time::Duration;

use sqlx::PgPool;

use crate::db;

/// How often a process should call [`record_reachable`].
pub const REACHABLE_INTERVAL: Duration = Duration::from_secs(1);
/// A longer pause between two updates counts as an outage.
pub(super) const LONGEST_GAP: Duration = Duration::from_secs(5);

/// Records that the database is reachable. Any number of processes may call it.
pub async fn record_reachable(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query!(
        "update reachability
         set since = case when seen_at < now() - $1::interval then now() else since end, seen_at = now()
         where seen_at < now() - $2::interval",
        db::interval(LONGEST_GAP),
        // One update per interval is enough, however many processes there are.
        db::interval(REACHABLE_INTERVAL / 2),
    )
    .execute(pool)
    .await
    .map(drop)
}
