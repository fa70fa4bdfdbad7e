//! The lease for running suspects; one worker holds it at a time.
//!
//! It works like the lease of a job. A database lock would outlive a worker that freezes or loses its network: the
//! server notices that only hours later.

use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use crate::{Id, db};

/// Marks the id of one holder of the right.
enum Holder {}

/// Runs `work` with the right to run suspects; `None` if another worker has the right.
///
/// Renews the right every third of `lease`. If `work` is dropped, the right expires after one `lease`.
///
/// # Errors
/// If the right cannot be taken.
pub async fn with_suspect_right<T>(
    pool: &PgPool,
    lease: Duration,
    work: impl Future<Output = T>,
) -> sqlx::Result<Option<T>> {
    // The holder is not the worker id, because a worker's jobs run side by side, and only one of them may hold the
    // right.
    let holder = Id::<Holder>::new().uuid();
    let taken = sqlx::query!(
        "update suspect_right set holder = $1, held_until = now() + $2 where held_until < now()",
        holder,
        db::interval(lease),
    );
    if db::within(taken.execute(pool)).await?.rows_affected() == 0 {
        return Ok(None);
    }
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = keep(pool, holder, lease) => unreachable!("the right is renewed forever"),
    };
    let given_back = sqlx::query!(
        "update suspect_right set held_until = '-infinity' where holder = $1",
        holder,
    );
    if let Err(error) = db::within(given_back.execute(pool)).await {
        tracing::warn!(%error, "Cannot release the right to run suspects; it expires in {lease:?}");
    }
    Ok(Some(outcome))
}

/// Renews the right forever.
async fn keep(pool: &PgPool, holder: Uuid, lease: Duration) {
    loop {
        tokio::time::sleep(lease / 3).await;
        let renewed = sqlx::query!(
            "update suspect_right set held_until = now() + $2 where holder = $1",
            holder,
            db::interval(lease),
        );
        if let Err(error) = db::within(renewed.execute(pool)).await {
            tracing::warn!(%error, "Cannot renew the right to run suspects");
        }
    }
}
