//! Deletes, exports and looks up whole accounts.
//!
//! Deletion removes the images, the results, the API keys and the identity. The books keep what they need: the
//! ledger, the paid jobs (without prompts) and the orders (without email addresses), identified only by the user
//! id.

mod export;
mod lookup;

use sqlx::{PgConnection, PgPool};

use crate::jobs::CancelScope;
use crate::{JobId, UserId, api_keys, credits, db, images, jobs};

pub use export::{
    LedgerEntry, LedgerKind, Profile, images_after, jobs_after, ledger_after, profile,
    recent_ledger, results_after,
};
pub use lookup::{Account, find, get};

/// The follow-up work that [`delete`] leaves to its caller.
#[derive(Clone, Debug, Default)]
pub struct Deleted {
    /// Canceled jobs, whose workers and waiting requests need an event.
    pub canceled: Vec<JobId>,
    /// Open checkout pages at the payment provider, to be closed.
    pub open_sessions: Vec<String>,
}

/// Deletes the account of `user` in one transaction. Returns `None` if it was already deleted.
///
/// Cancels active jobs and releases their holds; deletes images, results and masks, and dooms their objects;
/// revokes API keys; forfeits the remaining credits. Stores `identity_hash`, a keyed hash of issuer and subject
/// that only the caller can compute, for twelve months, so that the same person's next account gets no free
/// credits.
///
/// Submitting, finishing, ordering and uploading lock the user's row first, so a concurrent operation either
/// completes first or finds no account.
pub async fn delete(
    pool: &PgPool,
    user: UserId,
    identity_hash: &[u8],
) -> sqlx::Result<Option<Deleted>> {
    let mut tx = db::begin(pool).await?;
    let found = sqlx::query!(
        "select id from users where id = $1 and deleted_at is null for update",
        user.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    if found.is_none() {
        return Ok(None);
    }
    let canceled = jobs::cancel_all(&mut tx, CancelScope::Owner(user)).await?;
    images::delete_all(&mut tx, user).await?;
    jobs::erase_jobs_of(&mut tx, user).await?;
    api_keys::revoke_all(&mut tx, user).await?;
    let open_sessions = erase_buyer(&mut tx, user).await?;
    credits::forfeit(&mut tx, user).await?;
    sqlx::query!(
        "insert into former_users (identity_hash) values ($1)
         on conflict (identity_hash) do update set deleted_at = excluded.deleted_at",
        identity_hash,
    )
    .execute(&mut *tx)
    .await?;
    let anonymized = sqlx::query!(
        "update users set issuer = 'deleted', subject = id::text, email = null, email_checked_at = null,
                          deleted_at = now()
         where id = $1",
        user.uuid(),
    )
    .execute(&mut *tx)
    .await?;
    db::exactly_one(anonymized.rows_affected())?;
    tx.commit().await?;
    tracing::info!(user.id = %user, "Deleted the account of user {user}");
    Ok(Some(Deleted { canceled, open_sessions }))
}

/// Erases the buyer's email address, links to checkout pages, and stored provider messages, which name the buyer.
/// Returns the checkout pages that are still open.
async fn erase_buyer(conn: &mut PgConnection, user: UserId) -> sqlx::Result<Vec<String>> {
    let open = sqlx::query_scalar!(
        r#"select session as "session!" from orders
           where user_id = $1 and status = 'open' and session is not null"#,
        user.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query!(
        "update orders set email = null, checkout_url = null where user_id = $1",
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update payment_events set payload = '' from orders
         where orders.id = payment_events.order_id and orders.user_id = $1",
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(open)
}

/// Deletes the identity hashes of accounts deleted more than twelve months ago. Returns their number.
pub async fn forget_former_users(pool: &PgPool) -> sqlx::Result<u64> {
    let forgotten =
        sqlx::query!("delete from former_users where deleted_at < now() - interval '12 months'")
            .execute(pool)
            .await?;
    Ok(forgotten.rows_affected())
}
