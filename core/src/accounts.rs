//! Deletes, exports and looks up whole accounts.
//!
//! Deletion removes the images, the results, the API keys, the webhooks and the identity. The books keep what they need: the
//! ledger, the paid jobs (without prompts) and the orders (without email addresses), identified only by the user
//! id. The account ends at once; pictures and jobs beyond the first batch are erased by the janitor.

mod erase;
mod export;
mod issuer;
mod lookup;

use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use crate::jobs::CancelScope;
use crate::{JobId, UserId, api_keys, credits, db, jobs, users, webhooks};

pub use erase::erase_deleted;
pub use export::{PaymentMessage, images_after, jobs_after, payment_messages_after, results_after};
pub use issuer::{IssuerChange, change_issuer};
pub use lookup::{Account, find, get, get_active};

/// The follow-up work that [`delete`] leaves to its caller.
#[derive(Clone, Debug, Default)]
pub struct Deleted {
    /// Canceled jobs, whose workers and waiting requests need an event.
    pub canceled: Vec<JobId>,
    /// Open checkout pages at the payment provider, to be closed.
    pub open_sessions: Vec<String>,
}

/// Active jobs canceled per transaction, which locks their owner's row.
const CANCELED_TOGETHER: i64 = 50;

/// Deletes the account of `user`. Returns `None` if it was already deleted.
///
/// Cancels active jobs and releases their holds. Then one transaction ends the account: it revokes API keys, deletes
/// webhooks, forfeits the remaining credits and forgets the identity. Stores `identity_hash`, a keyed hash of issuer
/// and subject that only the caller can compute, for twelve months, so that the same person's next account gets no free
/// credits.
///
/// Images, results, masks and prompts are erased, and their objects doomed, in batches that nobody waits for. The
/// first batch, which is all that an ordinary account has, is erased before this returns; the janitor erases the others.
///
/// Submitting, finishing, ordering and uploading lock the user's row first, so a concurrent operation either
/// completes first or finds no account.
pub async fn delete(
    pool: &PgPool,
    user: UserId,
    identity_hash: &[u8],
) -> sqlx::Result<Option<Deleted>> {
    let mut canceled = Vec::new();
    let mut tx = loop {
        let Some(mut tx) = lock(pool, user).await? else { return Ok(None) };
        let some = jobs::cancel_some(&mut tx, CancelScope::Owner(user), CANCELED_TOGETHER).await?;
        if some.is_empty() {
            break tx;
        }
        tx.commit().await?;
        canceled.extend(some);
    };
    api_keys::revoke_all(&mut tx, user).await?;
    webhooks::delete_all(&mut tx, user).await?;
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
    sqlx::query!("insert into unfinished_deletions (user_id) values ($1)", user.uuid())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    tracing::info!(user.id = %user, "Deleted the account of user {user}");
    if let Err(error) = erase::erase_batch(pool, Some(user)).await {
        tracing::warn!(user.id = %user, "Could not erase a deleted account; the janitor will: {error}");
    }
    Ok(Some(Deleted { canceled, open_sessions }))
}

/// Locks the user's row; `None` if the account does not exist or was deleted.
async fn lock(pool: &PgPool, user: UserId) -> sqlx::Result<Option<Transaction<'static, Postgres>>> {
    let mut tx = db::begin(pool).await?;
    Ok(users::lock(&mut tx, user).await?.then_some(tx))
}

/// Erases the buyer's email address, idempotency keys, links to checkout pages, and stored provider messages, which name
/// the buyer. Returns the checkout pages that are still open.
async fn erase_buyer(conn: &mut PgConnection, user: UserId) -> sqlx::Result<Vec<String>> {
    let open = sqlx::query_scalar!(
        r#"select session as "session!" from orders
           where user_id = $1 and status = 'open' and session is not null"#,
        user.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query!(
        "update orders set email = null, checkout_url = null, idempotency_key = null where user_id = $1",
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
