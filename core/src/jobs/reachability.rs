//! Records when the database was reachable. A worker that cannot reach it cannot renew its leases, and that must not
//! look like a crash.
//!
//! Every process updates one row each second. A gap means that none of them reached the database: it was stopped,
//! paused or cut off. After a gap, [`super::sweep`] waits for one lease, in which workers renew what they hold.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::MissedTickBehavior;

use crate::db;

/// The time between two updates of a process.
const INTERVAL: Duration = Duration::from_secs(1);
/// A longer pause between two updates counts as an outage.
pub(super) const LONGEST_GAP: Duration = Duration::from_secs(5);

/// Calls [`record_reachable`] every second, forever. Every process that serves runs this.
pub async fn keep_recording_reachable(pool: &PgPool) {
    let mut rounds = tokio::time::interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        if let Err(error) = db::within(record_reachable(pool)).await {
            tracing::debug!(%error, "Cannot record that the database is reachable");
        }
    }
}

/// Records that the database is reachable. Any number of processes may call it.
pub async fn record_reachable(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query!(
        "update reachability
         set since = case when seen_at < now() - $1::interval then now() else since end, seen_at = now()
         where seen_at < now() - $2::interval",
        db::interval(LONGEST_GAP),
        // One update per interval is enough, however many processes there are.
        db::interval(INTERVAL / 2),
    )
    .execute(pool)
    .await
    .map(drop)
}
