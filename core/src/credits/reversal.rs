//! Credits that refunds and disputes take back or return.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::ledger::{self, LedgerKind};
use crate::webhooks::announce::announce_low;
use crate::{OrderId, UserId};

/// Takes back up to `credits` of an order, and never more than the user's balance less their holds. Returns
/// the number taken. The caller has locked the user's row.
pub(crate) async fn take_back(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    credits: i32,
    kind: LedgerKind,
) -> sqlx::Result<i32> {
    let available = sqlx::query_scalar!(
        r#"select credits - reserved as "available!" from users where id = $1"#,
        user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let taken = credits.min(available).max(0);
    if taken > 0 {
        ledger::add(&mut *conn, user, kind, -taken, Some(order)).await?;
        announce_low(conn, user, taken).await?;
    }
    Ok(taken)
}

/// Takes back the credits that refunds and disputes could not take because runs held them: up to `released` credits,
/// which a run has held since `held_since` and just released. A run pays only for refunds and disputes that came while
/// it held them. The caller has locked the user's row.
pub(crate) async fn take_owed(
    conn: &mut PgConnection,
    user: UserId,
    released: i32,
    held_since: DateTime<Utc>,
) -> sqlx::Result<()> {
    let taken = sqlx::query_scalar!(
        // A row counts for at most what its order still lacks: processes from before migration 0058 lower that, and
        // leave the rows as they are.
        r#"with of_user as (
               select o.id, o.status, w.since, greatest(least(w.credits, o.credits_missing - (
                          sum(w.credits) over (partition by o.id order by w.since) - w.credits)), 0) as credits
               from owed_by_runs w join orders o on o.id = w.order_id where o.user_id = $1
           ), owed as (
               select id, status, since, credits::integer as credits,
                      (sum(credits) over (order by since, id) - credits)::integer as before
               from of_user where since > $3
           ), taken as (
               select id, status, since, least(credits, $2 - before) as amount from owed
               where before < $2 and credits > 0
           ), lowered as (
               update owed_by_runs w set credits = w.credits - taken.amount
               from taken where w.order_id = taken.id and w.since = taken.since
           ), of_order as (
               select id, status, sum(amount)::integer as amount from taken group by id, status
           ), reduced as (
               update orders o set credits_missing = o.credits_missing - of_order.amount
               from of_order where o.id = of_order.id
           ), recorded as (
               insert into ledger (user_id, kind, amount, order_id)
               select $1, case status when 'disputed' then 'dispute' else 'refund' end, -amount, id from of_order
           )
           select coalesce(sum(amount), 0)::integer as "taken!" from taken"#,
        user.uuid(),
        released,
        held_since,
    )
    .fetch_one(&mut *conn)
    .await?;
    if taken > 0 {
        tracing::info!(user.id = %user, taken, "Took back {taken} credits that a run had held during a refund");
        announce_low(conn, user, taken).await?;
    }
    Ok(())
}

/// Returns credits that a dispute had taken and that we won back.
pub(crate) async fn give_back(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    credits: i32,
) -> sqlx::Result<()> {
    ledger::add(conn, user, LedgerKind::Dispute, credits, Some(order)).await
}
