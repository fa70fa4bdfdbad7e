//! Credits that refunds and disputes take back or return.

use sqlx::PgConnection;

use crate::webhooks::announce::announce_low;
use crate::{OrderId, UserId};

/// Why the credits of a paid order move again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReversalKind {
    /// We refunded money.
    Refund,
    /// The payer's bank withdrew the money, or returned it.
    Dispute,
}

impl ReversalKind {
    /// `ledger.kind`.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Dispute => "dispute",
        }
    }
}

/// Takes back up to `credits` of an order, and never more than the user's balance less their holds. Returns
/// the number taken. The caller has locked the user's row.
pub(crate) async fn take_back(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    credits: i32,
    kind: ReversalKind,
) -> sqlx::Result<i32> {
    let available = sqlx::query_scalar!(
        r#"select credits - reserved as "available!" from users where id = $1"#,
        user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let taken = credits.min(available).max(0);
    if taken > 0 {
        insert(&mut *conn, user, order, -taken, kind).await?;
        announce_low(conn, user, taken).await?;
    }
    Ok(taken)
}

/// Returns credits that a dispute had taken and that we won back.
pub(crate) async fn give_back(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    credits: i32,
) -> sqlx::Result<()> {
    insert(conn, user, order, credits, ReversalKind::Dispute).await
}

async fn insert(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    amount: i32,
    kind: ReversalKind,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ledger (user_id, kind, amount, order_id) values ($1, $2, $3, $4)",
        user.uuid(),
        kind.as_str(),
        amount,
        order.uuid(),
    )
    .execute(conn)
    .await
    .map(drop)
}
