//! A person's whole account: deleting it, handing it out, looking it up.
//!
//! Deleting takes the pictures, the results, the keys and the name. What stays is what the books need: the
//! ledger, the jobs that were paid for (without their words) and the orders (without an address), all of a
//! user who is called by nothing but an id.

mod export;
mod lookup;

use sqlx::{PgConnection, PgPool};

use crate::jobs::AllOf;
use crate::{JobId, UserId, api_keys, credits, db, images, jobs};

pub use export::{
    LedgerEntry, LedgerKind, Profile, images_after, jobs_after, last_changes, ledger_after,
    profile, results_after,
};
pub use lookup::{Account, find, get};

/// What deleting an account left for others to do.
#[derive(Clone, Debug, Default)]
pub struct Deleted {
    /// Jobs that were called off: tell those who work on them or wait for them.
    pub cancelled: Vec<JobId>,
    /// Pages at the payment provider on which an order could still be paid: have them closed.
    pub open_sessions: Vec<String>,
}

/// Deletes the account of `user`, in one transaction. `None` when that had been done before.
///
/// Active jobs are cancelled and their holds given back; pictures, results and masks go, their objects are
/// left to the janitor; keys stop working at once; what is left of the credits is forfeited. For twelve
/// months the account is remembered by `identity_hash`, a keyed hash of issuer and subject that only the
/// caller can make, so that the same person's next account gets no free credits.
///
/// Whatever runs at the same time either ends before or finds nothing: submit, finish, orders and uploads
/// all lock the user's row first.
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
    let cancelled = jobs::cancel_all(&mut tx, AllOf::Owner(user)).await?;
    images::delete_all_of(&mut tx, user).await?;
    jobs::forget_all_of(&mut tx, user).await?;
    api_keys::revoke_all_of(&mut tx, user).await?;
    let open_sessions = forget_buyer(&mut tx, user).await?;
    credits::forfeit(&mut tx, user).await?;
    sqlx::query!(
        "insert into former_users (identity_hash) values ($1)
         on conflict (identity_hash) do update set deleted_at = excluded.deleted_at",
        identity_hash,
    )
    .execute(&mut *tx)
    .await?;
    let nameless = sqlx::query!(
        "update users set issuer = 'deleted', subject = id::text, email = null, email_checked_at = null,
                          deleted_at = now()
         where id = $1",
        user.uuid(),
    )
    .execute(&mut *tx)
    .await?;
    credits::exactly_one(nameless.rows_affected())?;
    tx.commit().await?;
    tracing::info!(user.id = %user, "Deleted the account of user {user}");
    Ok(Some(Deleted { cancelled, open_sessions }))
}

/// Takes the buyer's address off their orders, and whatever leads to a page that names them. Returns the
/// pages on which an order could still be paid.
async fn forget_buyer(conn: &mut PgConnection, user: UserId) -> sqlx::Result<Vec<String>> {
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

/// Forgets who deleted an account more than twelve months ago. Returns how many.
pub async fn forget_former(pool: &PgPool) -> sqlx::Result<u64> {
    let forgotten =
        sqlx::query!("delete from former_users where deleted_at < now() - interval '12 months'")
            .execute(pool)
            .await?;
    Ok(forgotten.rows_affected())
}
