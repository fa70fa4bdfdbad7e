//! Credits that come in with an account or an order, and those a deleted account forfeits.

use sqlx::PgConnection;

use super::ledger::{self, LedgerKind};
use crate::{OrderId, UserId};

/// The free credits of a new user.
pub const SIGNUP_CREDITS: i32 = 20;

/// Grants a new user their free credits. A second grant to the same user violates a constraint.
pub(crate) async fn grant_signup(conn: &mut PgConnection, user: UserId) -> sqlx::Result<()> {
    ledger::add(conn, user, LedgerKind::SignupGrant, SIGNUP_CREDITS, None).await
}

/// Grants the credits of a paid order. A second grant for the same order violates a constraint.
pub(crate) async fn grant_purchase(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    credits: i32,
) -> sqlx::Result<()> {
    ledger::add(conn, user, LedgerKind::Purchase, credits, Some(order)).await
}

/// Takes the remaining credits of an account that is being deleted. The caller has locked its row and ended
/// its jobs.
pub(crate) async fn forfeit(conn: &mut PgConnection, user: UserId) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ledger (user_id, kind, amount)
         select id, 'forfeit', -credits from users where id = $1 and credits > 0",
        user.uuid(),
    )
    .execute(conn)
    .await
    .map(drop)
}
