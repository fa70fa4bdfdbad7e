//! Holds: credits reserved for jobs that have not ended (`users.reserved`).

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::reversal::take_owed;
use crate::{UserId, db, users};

/// Locks the user's row and holds `cost` for a job. Returns false if the balance is too low, and `None` if the account
/// was deleted; the row is locked in any case.
pub(crate) async fn lock_and_hold(
    conn: &mut PgConnection,
    user: UserId,
    cost: i32,
) -> sqlx::Result<Option<bool>> {
    let held = sqlx::query!(
        "update users set reserved = reserved + $2
         where id = $1 and deleted_at is null and credits - reserved >= $2",
        user.uuid(),
        cost,
    )
    .execute(&mut *conn)
    .await?;
    if held.rows_affected() == 1 {
        return Ok(Some(true));
    }
    Ok(users::lock(conn, user).await?.then_some(false))
}

/// Releases the hold of a job that was submitted at this time, and takes back the credits that a refund since then
/// could not take.
pub(crate) async fn release(
    conn: &mut PgConnection,
    user: UserId,
    cost: i32,
    submitted_at: DateTime<Utc>,
) -> sqlx::Result<()> {
    let released =
        sqlx::query!("update users set reserved = reserved - $2 where id = $1", user.uuid(), cost)
            .execute(&mut *conn)
            .await?;
    db::exactly_one(released.rows_affected())?;
    take_owed(conn, user, cost, submitted_at).await
}
