//! After the payment: refunds and disputes take credits back, as far as they are left.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::credits::{self, Reverse};
use crate::{OrderId, UserId};

/// Money of a payment that went back, or may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reversal {
    /// The provider's name for the payment.
    pub payment_intent: String,
    /// What happened.
    pub event: ReversalEvent,
}

/// What happened to the money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReversalEvent {
    /// So much has been given back by now, in all.
    Refunded {
        /// In cents, counting earlier refunds.
        total_cents: i64,
    },
    /// The payer's bank has taken it back for as long as the dispute lasts.
    DisputeOpened {
        /// The provider's name for the dispute.
        dispute: String,
    },
    /// The dispute is decided.
    DisputeClosed {
        /// The provider's name for the dispute.
        dispute: String,
        /// Whether the money is ours again.
        won: bool,
    },
}

/// What a reversal moved, in credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reversed {
    /// Taken from the user.
    pub taken: i32,
    /// Should have been taken, but was spent or held already.
    pub missing: i32,
    /// Given back to the user.
    pub returned: i32,
}

/// Notes the reversal on its order and moves what follows from it. The caller has locked user and order.
pub(super) async fn apply(
    conn: &mut PgConnection,
    order: OrderId,
    reversal: &Reversal,
) -> sqlx::Result<Reversed> {
    let why = match &reversal.event {
        ReversalEvent::Refunded { total_cents } => {
            sqlx::query!(
                "update orders set refunded_cents = greatest(refunded_cents, $2) where id = $1",
                order.uuid(),
                total_cents.max(&0),
            )
            .execute(&mut *conn)
            .await?;
            Reverse::Refund
        }
        ReversalEvent::DisputeOpened { dispute } => {
            note_dispute(conn, order, dispute, "open").await?;
            Reverse::Dispute
        }
        ReversalEvent::DisputeClosed { dispute, won } => {
            note_dispute(conn, order, dispute, if *won { "won" } else { "lost" }).await?;
            Reverse::Dispute
        }
    };
    balance(conn, order, why).await
}

async fn note_dispute(
    conn: &mut PgConnection,
    order: OrderId,
    dispute: &str,
    state: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into disputes (id, order_id, state) values ($1, $2, $3)
         on conflict (id) do update set state = excluded.state where disputes.state = 'open'",
        dispute,
        order.uuid(),
        state,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Brings the credits of an order into line with what is left of its payment. One whose credits were never
/// granted has none to move: its buyer was gone, or something else than its price was paid.
async fn balance(conn: &mut PgConnection, order: OrderId, why: Reverse) -> sqlx::Result<Reversed> {
    let stands = sqlx::query!(
        r#"select user_id as "user: UserId", credits, amount_cents, refunded_cents, credits_reversed,
                  credits_missing, fulfilled_at is not null as "is_fulfilled!",
                  exists (select from disputes d where d.order_id = orders.id and d.state <> 'won')
                      as "is_disputed!"
           from orders where id = $1"#,
        order.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let due = match (stands.is_fulfilled, stands.is_disputed) {
        (false, _) => 0,
        (true, true) => stands.credits,
        (true, false) => share(stands.credits, stands.refunded_cents, stands.amount_cents),
    };
    let change = due - stands.credits_reversed;
    let mut moved = Reversed::default();
    if change > 0 {
        moved.taken = credits::take_back(conn, stands.user, order, change, why).await?;
        moved.missing = change - moved.taken;
    } else {
        // What could not be taken need not be given back.
        moved.missing = change.max(-stands.credits_missing);
        moved.returned = moved.missing - change;
        if moved.returned > 0 {
            credits::give_back(conn, stands.user, order, moved.returned).await?;
        }
    }
    // What was paid for nothing is not our price: whatever of it went back, somebody has dealt with it.
    let price = if stands.is_fulfilled { stands.amount_cents } else { 1 };
    let is_refunded = stands.refunded_cents >= price;
    let status = match (stands.is_disputed, is_refunded) {
        (true, _) => "disputed",
        (false, true) => "refunded",
        (false, false) => "paid",
    };
    sqlx::query!(
        "update orders set credits_reversed = $2, credits_missing = credits_missing + $3, status = $4
         where id = $1",
        order.uuid(),
        due,
        moved.missing,
        status,
    )
    .execute(conn)
    .await?;
    if moved.missing > 0 {
        tracing::warn!(order.id = %order, missing = moved.missing,
            "{} credits of order {order} were spent before its money went back", moved.missing);
    }
    Ok(moved)
}

/// The part of `credits` that `refunded` of `amount` is worth, rounded down in the buyer's favour.
fn share(credits: i32, refunded: i64, amount: i64) -> i32 {
    let share = i64::from(credits) * refunded.min(amount) / amount;
    i32::try_from(share).unwrap_or(credits)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_rounded_down_and_never_more_than_everything() {
        assert_eq!(
            [0, 1, 3, 250, 499, 500, 900].map(|cents| share(55, cents, 500)),
            [0, 0, 0, 27, 54, 55, 55]
        );
    }
}
