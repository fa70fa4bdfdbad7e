//! Before the payment: placing an order, recording its checkout page, expiring it.

use sqlx::{PgConnection, PgPool};

use super::{Order, get};
use crate::credits::Pack;
use crate::{OrderId, UserId, db, users};

/// Maximum number of open orders of a pack per user.
const MAX_OPEN: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The account was deleted in the meantime.
    #[error("this account does not exist or was deleted")]
    NoSuchUser,
    /// The key belongs to an order of another pack.
    #[error("This Idempotency-Key was used for a different request")]
    IdempotencyKeyReused,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Places an order, or returns the order of an earlier identical request.
///
/// A repeat is recognized by its idempotency key. Without a key, an open order of the same pack from the last
/// 30 seconds counts as the same order, which covers a double click. A user with many open orders of a pack gets the
/// latest of them again.
pub async fn place(
    pool: &PgPool,
    user: UserId,
    pack: &Pack,
    idempotency_key: Option<&str>,
) -> Result<Order, PlaceError> {
    let mut tx = db::begin(pool).await?;
    // Serializes concurrent requests of one user: the second waits here and finds the order of the first.
    if !users::lock(&mut tx, user).await? {
        return Err(PlaceError::NoSuchUser);
    }
    let number = i16::from(pack.number);
    let repeated = earlier(&mut tx, user, number, idempotency_key).await?;
    let earlier = match repeated {
        Some(repeated) => Some(repeated),
        None => latest_of_many(&mut tx, user, number).await?,
    };
    if let Some(earlier) = earlier {
        let order = get(&mut tx, earlier).await?;
        return if order.pack == number {
            Ok(order)
        } else {
            Err(PlaceError::IdempotencyKeyReused)
        };
    }
    let id = OrderId::new();
    sqlx::query!(
        "insert into orders (id, user_id, pack, credits, amount_cents, currency, idempotency_key)
         values ($1, $2, $3, $4, $5, $6, $7)",
        id.uuid(),
        user.uuid(),
        number,
        pack.credits,
        pack.amount_cents,
        pack.currency,
        idempotency_key,
    )
    .execute(&mut *tx)
    .await?;
    let order = get(&mut tx, id).await?;
    tx.commit().await?;
    tracing::info!(order.id = %id, user.id = %user, pack = number, "Placed order {id}");
    Ok(order)
}

async fn earlier(
    conn: &mut PgConnection,
    user: UserId,
    pack: i16,
    idempotency_key: Option<&str>,
) -> sqlx::Result<Option<OrderId>> {
    match idempotency_key {
        Some(key) => sqlx::query_scalar!(
            r#"select id as "id: OrderId" from orders where user_id = $1 and idempotency_key = $2"#,
            user.uuid(),
            key,
        )
        .fetch_optional(conn)
        .await,
        None => {
            sqlx::query_scalar!(
                r#"select id as "id: OrderId" from orders
                   where user_id = $1 and pack = $2 and status = 'open' and idempotency_key is null
                     and created_at > now() - interval '30 seconds'
                   order by created_at desc limit 1"#,
                user.uuid(),
                pack,
            )
            .fetch_optional(conn)
            .await
        }
    }
}

/// Returns the latest open order of a pack, if there are as many as a user may have.
async fn latest_of_many(
    conn: &mut PgConnection,
    user: UserId,
    pack: i16,
) -> sqlx::Result<Option<OrderId>> {
    let open = sqlx::query_scalar!(
        r#"select id as "id: OrderId" from orders where user_id = $1 and pack = $2 and status = 'open'
           order by created_at desc, id desc limit $3"#,
        user.uuid(),
        pack,
        MAX_OPEN as i64,
    )
    .fetch_all(conn)
    .await?;
    Ok(if open.len() < MAX_OPEN { None } else { open.first().copied() })
}

/// Records the checkout page of an order, and returns its address. The first page wins: a later one is forgotten, and the
/// address of the first returned. An order that had failed or expired without a page is open again, as if it was placed now.
/// Returns `None` if the buyer's account was deleted meanwhile: the page must be closed.
pub async fn attach_session(
    pool: &PgPool,
    order: &Order,
    session: &str,
    checkout_url: &str,
) -> sqlx::Result<Option<String>> {
    let mut tx = db::begin(pool).await?;
    // A deletion closes the pages that it finds, so none may appear after it.
    let is_active = users::lock(&mut tx, order.user).await?;
    let url = sqlx::query_scalar!(
        "update orders o set session = coalesce(session, $2),
                             status = case when reopens then 'open' else status end,
                             created_at = case when reopens then now() else created_at end,
                             checkout_url = case when $4 then coalesce(checkout_url, $3) end
         from (select session is null and status in ('failed', 'expired') as reopens from orders where id = $1) before
         where id = $1 returning checkout_url",
        order.id.uuid(),
        session,
        checkout_url,
        is_active,
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(url)
}

/// Fails an order for which the payment provider refused to create a checkout page.
pub async fn refuse(pool: &PgPool, order: OrderId) -> sqlx::Result<()> {
    sqlx::query!(
        "update orders set status = 'failed' where id = $1 and status = 'open' and session is null",
        order.uuid(),
    )
    .execute(pool)
    .await
    .map(drop)
}

/// Expires orders that can no longer be paid and returns their number. Checkout pages close after a day, and by
/// then we have polled the provider about them. A payment we learn of later still counts.
pub async fn expire_abandoned(pool: &PgPool) -> sqlx::Result<u64> {
    let expired = sqlx::query!(
        "update orders set status = 'expired'
         where status = 'open' and created_at < now() - case when session is null then interval '25 hours'
                                                             else interval '72 hours' end",
    )
    .execute(pool)
    .await?;
    Ok(expired.rows_affected())
}
