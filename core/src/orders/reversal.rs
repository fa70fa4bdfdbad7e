//! After the payment: refunds and disputes take back the credits that are not yet spent.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::credits::{self, LedgerKind};
use crate::{OrderId, UserId};

/// A refund or a dispute of a payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reversal {
    /// The provider's id of the payment.
    pub payment_intent: String,
    pub event: ReversalEvent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReversalEvent {
    Refunded {
        /// The sum of all refunds of the payment so far, in cents.
        total_cents: i64,
        /// The payment's amount. Both may be in another currency than the order, so only their ratio counts. `None` in an
        /// event that an older version stored, in the order's currency.
        of_cents: Option<i64>,
    },
    /// The payer's bank withdrew the money until the dispute is decided.
    DisputeOpened {
        /// The provider's id of the dispute.
        dispute: String,
        /// The disputed part of the payment in cents; `None` if unknown, which counts as all of it.
        amount_cents: Option<i64>,
    },
    /// The dispute is decided.
    DisputeClosed {
        /// The provider's id of the dispute.
        dispute: String,
        /// As in [`ReversalEvent::DisputeOpened`].
        amount_cents: Option<i64>,
        /// True if we got the money back.
        won: bool,
    },
}

/// The credits that a reversal moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reversed {
    /// Taken from the user.
    pub taken: i32,
    /// Due, but already spent or held.
    pub missing: i32,
    /// Returned to the user.
    pub returned: i32,
}

/// Records the reversal on its order and moves the credits that follow. The caller has locked user and order.
pub(super) async fn apply(
    conn: &mut PgConnection,
    order: OrderId,
    reversal: &Reversal,
) -> sqlx::Result<Reversed> {
    let kind = match &reversal.event {
        ReversalEvent::Refunded { total_cents, of_cents } => {
            sqlx::query!(
                // `numeric`, because the product may not fit into a bigint.
                "update orders set refunded_cents = greatest(refunded_cents, coalesce(
                     div(least($2::bigint, $3::bigint)::numeric * amount_cents, $3::bigint)::bigint, $2::bigint))
                 where id = $1",
                order.uuid(),
                total_cents.max(&0),
                of_cents.filter(|cents| *cents > 0),
            )
            .execute(&mut *conn)
            .await?;
            LedgerKind::Refund
        }
        ReversalEvent::DisputeOpened { dispute, amount_cents } => {
            record_dispute(conn, order, dispute, *amount_cents, "open").await?;
            LedgerKind::Dispute
        }
        ReversalEvent::DisputeClosed { dispute, amount_cents, won } => {
            let state = if *won { "won" } else { "lost" };
            record_dispute(conn, order, dispute, *amount_cents, state).await?;
            LedgerKind::Dispute
        }
    };
    balance(conn, order, kind).await
}

async fn record_dispute(
    conn: &mut PgConnection,
    order: OrderId,
    dispute: &str,
    amount_cents: Option<i64>,
    state: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into disputes (id, order_id, state, amount_cents) values ($1, $2, $3, $4)
         on conflict (id) do update
         set state = excluded.state, amount_cents = coalesce(excluded.amount_cents, disputes.amount_cents)
         where disputes.state = 'open'",
        dispute,
        order.uuid(),
        state,
        amount_cents.map(|cents| cents.max(0)),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Adjusts the credits of an order to the part of its payment that we still have. An order whose credits were
/// never granted has none to move: its buyer's account was deleted, or the payment did not match its price. An account
/// that was deleted since then gets nothing back.
async fn balance(
    conn: &mut PgConnection,
    order: OrderId,
    kind: LedgerKind,
) -> sqlx::Result<Reversed> {
    let row = sqlx::query!(
        r#"select user_id as "user: UserId", credits, amount_cents, refunded_cents, credits_reversed,
                  credits_missing, fulfilled_at is not null as "is_fulfilled!",
                  exists (select from disputes d where d.order_id = orders.id and d.state <> 'won')
                      as "is_disputed!",
                  (select coalesce(sum(coalesce(d.amount_cents, orders.amount_cents)), 0)::bigint
                   from disputes d where d.order_id = orders.id and d.state <> 'won') as "disputed_cents!",
                  exists (select from users u where u.id = orders.user_id and u.deleted_at is not null)
                      as "is_buyer_deleted!"
           from orders where id = $1"#,
        order.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let due = if row.is_fulfilled {
        share(row.credits, row.refunded_cents + row.disputed_cents, row.amount_cents)
    } else {
        0
    };
    let due = if row.is_buyer_deleted { due.max(row.credits_reversed) } else { due };
    let change = due - row.credits_reversed;
    let mut moved = Reversed::default();
    if change > 0 {
        moved.taken = credits::take_back(conn, row.user, order, change, kind).await?;
        moved.missing = change - moved.taken;
    } else {
        // Credits that could not be taken are not returned either.
        moved.missing = change.max(-row.credits_missing);
        moved.returned = moved.missing - change;
        if moved.returned > 0 {
            credits::give_back(conn, row.user, order, moved.returned).await?;
        }
    }
    // A payment that granted nothing need not equal our price: any refund of it means an operator dealt with it.
    let price = if row.is_fulfilled { row.amount_cents } else { 1 };
    let is_refunded = row.refunded_cents >= price;
    let status = match (row.is_disputed, is_refunded) {
        (true, _) => "disputed",
        (false, true) => "refunded",
        (false, false) => "paid",
    };
    sqlx::query!(
        "update orders set credits_reversed = $2, credits_missing = credits_missing + $3, status = $4 where id = $1",
        order.uuid(),
        due,
        moved.missing,
        status,
    )
    .execute(&mut *conn)
    .await?;
    record_owed(conn, order, moved.missing).await?;
    if moved.missing > 0 {
        tracing::warn!(order.id = %order, missing = moved.missing,
            "{} credits of order {order} were spent or held when the money was returned", moved.missing);
    }
    Ok(moved)
}

/// Records how many of the `missing` credits runs hold now, to be taken back when those runs release them, and how many
/// were spent. A negative `missing` lowers earlier records, newest first.
async fn record_owed(conn: &mut PgConnection, order: OrderId, missing: i32) -> sqlx::Result<()> {
    if missing > 0 {
        sqlx::query!(
            // Use the clock, not the start of the transaction, because the transaction has waited for holds.
            "insert into owed_by_runs (order_id, since, credits, spent)
             select $1, clock_timestamp(), least($2, u.reserved), $2 - least($2, u.reserved)
             from orders o join users u on u.id = o.user_id where o.id = $1",
            order.uuid(),
            missing,
        )
        .execute(conn)
        .await?;
    } else if missing < 0 {
        sqlx::query!(
            // Lowers the spent part first, then the part that runs hold.
            "update owed_by_runs w
             set spent = w.spent - least(w.spent, newest.returned),
                 credits = w.credits - least(w.credits, newest.returned - least(w.spent, newest.returned))
             from (
                 select since, greatest(
                     $2::integer - (sum(credits + spent) over (order by since desc) - credits - spent), 0)::integer as returned
                 from owed_by_runs where order_id = $1
             ) newest
             where w.order_id = $1 and newest.since = w.since",
            order.uuid(),
            -missing,
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

/// Returns the part of `credits` that `returned` of `amount` is worth, rounded down in the buyer's favor.
fn share(credits: i32, returned: i64, amount: i64) -> i32 {
    let share = i64::from(credits) * returned.min(amount) / amount;
    i32::try_from(share).unwrap_or(credits)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_rounded_down_and_at_most_all_credits() {
        assert_eq!(
            [0, 1, 3, 250, 499, 500, 900].map(|cents| share(55, cents, 500)),
            [0, 0, 0, 27, 54, 55, 55]
        );
    }
}
