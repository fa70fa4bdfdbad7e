//! Adjustments of a balance by an operator.

use sqlx::{PgConnection, PgPool};

use crate::webhooks::announce::announce_low;
use crate::{OrderId, UserId, db};

/// An operator's change of a balance.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment<'a> {
    pub user: UserId,
    /// The credits to add; negative to take away; never zero.
    pub amount: i32,
    /// Makes the change idempotent: each reference applies once.
    pub reference: &'a str,
    /// The reason. The ledger keeps it forever, so it must not name a person.
    pub note: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjusted {
    Applied,
    /// The same adjustment was applied earlier.
    AlreadyApplied,
}

#[derive(Debug, thiserror::Error)]
pub enum AdjustError {
    /// The amount is 0.
    #[error("the amount is 0")]
    Nothing,
    /// The account does not exist or was deleted.
    #[error("this account does not exist or was deleted")]
    NoSuchUser,
    /// The balance less the holds is smaller than the amount to take away.
    #[error("only {available} credits can be removed; credits held for jobs cannot")]
    Held {
        /// The balance less the holds, in credits.
        available: i32,
    },
    /// The reference belongs to another adjustment.
    #[error("this reference was already used for another user or amount")]
    ReferenceReused,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Applies an operator's adjustment, once per reference and never below the holds.
pub async fn adjust(pool: &PgPool, change: &Adjustment<'_>) -> Result<Adjusted, AdjustError> {
    if change.amount == 0 {
        return Err(AdjustError::Nothing);
    }
    let mut tx = db::begin(pool).await?;
    let user = sqlx::query!(
        r#"select credits - reserved as "available!" from users
           where id = $1 and deleted_at is null for update"#,
        change.user.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or(AdjustError::NoSuchUser)?;
    let added = sqlx::query!(
        "insert into ledger (user_id, kind, amount, reference, note)
         select $1, 'admin', $2, $3, $4 where $5::int + $2 >= 0
         on conflict on constraint ledger_reference_once do nothing",
        change.user.uuid(),
        change.amount,
        change.reference,
        change.note,
        user.available,
    )
    .execute(&mut *tx)
    .await?;
    if added.rows_affected() == 1 {
        announce_low(&mut tx, change.user, -change.amount).await?;
        tx.commit().await?;
        return Ok(Adjusted::Applied);
    }
    let earlier = sqlx::query!(
        r#"select user_id as "user: UserId", amount from ledger where kind = 'admin' and reference = $1"#,
        change.reference,
    )
    .fetch_optional(&mut *tx)
    .await?;
    match earlier {
        Some(same) if same.user == change.user && same.amount == change.amount => {
            Ok(Adjusted::AlreadyApplied)
        }
        Some(_) => Err(AdjustError::ReferenceReused),
        None => Err(AdjustError::Held { available: user.available }),
    }
}

/// Returns true if an operator resolved the payment of an order with an adjustment, whose reference is then `order-ID`.
pub(crate) async fn is_order_adjusted(
    conn: &mut PgConnection,
    order: OrderId,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
               select from ledger where kind = 'admin' and reference = 'order-' || $1::uuid
           ) as "exists!""#,
        order.uuid(),
    )
    .fetch_one(conn)
    .await
}
