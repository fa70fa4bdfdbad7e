//! Settling payments: messages and polled states of a payment, and the credits they grant.

use serde_json::json;
use sqlx::{PgConnection, PgPool};

use super::reversal::{self, Reversal, Reversed};
use super::{OrderStatus, get};
use crate::{OrderId, UserId, credits, db, users};

/// The provider's status of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentStatus {
    /// Not started.
    Open,
    /// Authorized; the money arrives later, or never.
    Unpaid,
    /// The money has arrived.
    Paid,
    Failed,
    /// The checkout page closed without a payment.
    Expired,
}

/// The state of a payment, as the provider reports it.
#[derive(Clone, Debug)]
pub struct Payment {
    /// The provider's id of the checkout page.
    pub session: String,
    /// The order that we attached to the checkout page.
    pub order: Option<OrderId>,
    /// The buyer that we attached to it.
    pub buyer: Option<UserId>,
    pub status: PaymentStatus,
    pub amount_cents: Option<i64>,
    /// ISO 4217, lower case.
    pub currency: Option<String>,
    /// The provider's id of the payment; `None` until the buyer starts one.
    pub payment_intent: Option<String>,
    /// The email address the buyer entered.
    pub email: Option<String>,
}

/// A webhook message from the payment provider.
#[derive(Clone, Debug)]
pub struct Message {
    /// The provider's id; a repeated delivery has the same one.
    pub id: String,
    /// The provider's event type.
    pub kind: String,
    /// The body as received.
    pub payload: String,
    pub event: PaymentEvent,
}

#[derive(Clone, Debug)]
pub enum PaymentEvent {
    Payment(Payment),
    Reversal(Reversal),
    /// An event that we ignore.
    Other,
}

/// The outcome of handling a message or a polled payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The credits were granted now.
    Granted,
    /// The credits were granted earlier, perhaps by an operator.
    AlreadyGranted,
    /// The order's status was updated if needed; no credits moved.
    Noted,
    /// Credits were taken back or returned, as far as possible.
    Reversed,
    /// A refund or a dispute arrived before its payment and applies once that arrives.
    Waiting,
    /// A repeated delivery of a message.
    Repeated,
    /// The amount paid differs from the price. An operator must decide.
    Mismatch,
    /// The buyer's account was deleted before the payment. An operator should refund it.
    OwnerGone,
    /// The order that we attached to the payment is not in the database and cannot be placed again, or it has another
    /// checkout page. An operator must decide.
    OrderMissing,
    /// The payment belongs to no order of ours.
    Unknown,
    Ignored,
}

impl Outcome {
    /// Returns its name in the database and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::AlreadyGranted => "already_granted",
            Self::Noted => "noted",
            Self::Reversed => "reversed",
            Self::Waiting => "waiting",
            Self::Repeated => "repeated",
            Self::Mismatch => "mismatch",
            Self::OwnerGone => "owner_gone",
            Self::OrderMissing => "order_missing",
            Self::Unknown => "unknown",
            Self::Ignored => "ignored",
        }
    }
}

/// Stores a message of the provider and applies it, in one transaction. A repeated delivery changes nothing. A
/// message about a missing order is not stored, so it can be sent again.
pub async fn receive(pool: &PgPool, message: &Message) -> sqlx::Result<Outcome> {
    let mut tx = db::begin(pool).await?;
    // A concurrent delivery of the same message waits here until the first one commits.
    let stored = sqlx::query!(
        "insert into payment_events (id, kind, payload, outcome) values ($1, $2, $3, 'ignored')
         on conflict (id) do nothing",
        message.id,
        message.kind,
        message.payload,
    )
    .execute(&mut *tx)
    .await?;
    if stored.rows_affected() == 0 {
        return Ok(Outcome::Repeated);
    }
    let (outcome, order) = match &message.event {
        PaymentEvent::Payment(payment) => settle_found(&mut tx, payment).await?,
        PaymentEvent::Reversal(reversal) => match find_paid(&mut tx, reversal).await? {
            Some(order) => (reverse_in(&mut tx, order, reversal).await?, Some(order)),
            None => (Outcome::Waiting, None),
        },
        PaymentEvent::Other => (Outcome::Ignored, None),
    };
    if outcome == Outcome::OrderMissing {
        // Without its id, the message can be sent again.
        tx.rollback().await?;
        return Ok(outcome);
    }
    let waiting = match &message.event {
        PaymentEvent::Reversal(reversal) if outcome == Outcome::Waiting => Some(reversal),
        _ => None,
    };
    sqlx::query!(
        // The payload names the buyer, so it is not kept if their account was deleted.
        "update payment_events set outcome = $2, payment_intent = $3, reversal = $4, order_id = $5,
                payload = case when exists (
                    select from orders o join users u on u.id = o.user_id
                    where o.id = $5 and u.deleted_at is not null
                ) then '' else payload end
         where id = $1",
        message.id,
        outcome.as_str(),
        waiting.map(|reversal| reversal.payment_intent.as_str()),
        waiting.map(|reversal| json!(reversal)),
        order.map(OrderId::uuid),
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(outcome)
}

/// Applies the state of a payment to its order. Safe to call any number of times, concurrently and in any order.
pub async fn settle(pool: &PgPool, payment: &Payment) -> sqlx::Result<Outcome> {
    let mut tx = db::begin(pool).await?;
    let (outcome, order) = settle_found(&mut tx, payment).await?;
    if outcome == Outcome::Mismatch {
        // Write a placeholder event: the audit and refunds look one up, and Stripe may never send it.
        sqlx::query!(
            "insert into payment_events (id, kind, payload, outcome, order_id) values ('polled:' || $1, 'polled', '', $2, $3)
             on conflict (id) do nothing",
            payment.session,
            outcome.as_str(),
            order.map(OrderId::uuid),
        )
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await?;
    Ok(outcome)
}

/// Applies the state of a payment to its order, and returns the order. A restore may have lost it.
async fn settle_found(
    conn: &mut PgConnection,
    payment: &Payment,
) -> sqlx::Result<(Outcome, Option<OrderId>)> {
    let mut found = find(conn, payment).await?;
    if let (None, Some(missing), PaymentStatus::Paid) = (found, payment.order, payment.status) {
        place_again(conn, missing, payment).await?;
        found = find(conn, payment).await?;
    }
    let settled = match found {
        Some(order) => settle_in(conn, order, payment).await?,
        None => None,
    };
    Ok(match (settled, payment.order, payment.status) {
        (Some(outcome), ..) => (outcome, found),
        (None, Some(order), PaymentStatus::Paid) => {
            tracing::error!(order.id = %order, "Order {order} was paid, but is missing or has another checkout page; granting nothing");
            (Outcome::OrderMissing, None)
        }
        (None, ..) => (Outcome::Unknown, None),
    })
}

/// Places an order that is missing, if the payment names an account and has the price of a pack.
async fn place_again(
    conn: &mut PgConnection,
    order: OrderId,
    payment: &Payment,
) -> sqlx::Result<()> {
    let pack = credits::PACKS.iter().find(|pack| {
        payment.amount_cents == Some(pack.amount_cents)
            && payment.currency.as_deref() == Some(pack.currency)
    });
    let (Some(buyer), Some(pack)) = (payment.buyer, pack) else { return Ok(()) };
    users::lock(conn, buyer).await?;
    let placed = sqlx::query!(
        "insert into orders (id, user_id, pack, credits, amount_cents, currency)
         select $1, id, $3, $4, $5, $6 from users where id = $2
         on conflict (id) do nothing",
        order.uuid(),
        buyer.uuid(),
        i16::from(pack.number),
        pack.credits,
        pack.amount_cents,
        pack.currency,
    )
    .execute(conn)
    .await?;
    if placed.rows_affected() == 1 {
        tracing::warn!(order.id = %order, user.id = %buyer, "Placed order {order} again, which was missing");
    }
    Ok(())
}

/// Applies the state of a payment to an order; `None` if the order got another checkout page since it was found.
async fn settle_in(
    conn: &mut PgConnection,
    id: OrderId,
    payment: &Payment,
) -> sqlx::Result<Option<Outcome>> {
    let is_buyer_deleted = lock(conn, id).await?;
    let found = sqlx::query!(
        "update orders set session = coalesce(session, $2), email = coalesce($3, email),
                           payment_intent = coalesce(payment_intent, $4)
         where id = $1 and coalesce(session, $2) = $2",
        id.uuid(),
        payment.session,
        payment.email.as_deref().filter(|_| !is_buyer_deleted),
        payment.payment_intent,
    )
    .execute(&mut *conn)
    .await?;
    if found.rows_affected() == 0 {
        return Ok(None);
    }
    let order = get(conn, id).await?;
    if order.fulfilled_at.is_some() {
        return Ok(Some(Outcome::AlreadyGranted));
    }
    let status = match (payment.status, order.status) {
        // Older than what we know.
        (_, OrderStatus::Refunded | OrderStatus::Disputed) => return Ok(Some(Outcome::Noted)),
        (PaymentStatus::Paid, _) => OrderStatus::Paid,
        (_, OrderStatus::Paid)
        | (PaymentStatus::Open, _)
        | (PaymentStatus::Unpaid, OrderStatus::Failed) => return Ok(Some(Outcome::Noted)),
        (PaymentStatus::Unpaid, _) => OrderStatus::Unpaid,
        (PaymentStatus::Failed, _) => OrderStatus::Failed,
        (PaymentStatus::Expired, _) => OrderStatus::Expired,
    };
    set_status(conn, id, status).await?;
    if status != OrderStatus::Paid {
        return Ok(Some(Outcome::Noted));
    }
    let is_price = payment.amount_cents == Some(order.amount_cents)
        && payment.currency.as_deref() == Some(&order.currency);
    let outcome = if credits::is_order_adjusted(conn, id).await? {
        Outcome::AlreadyGranted
    } else if !is_price {
        tracing::error!(order.id = %id, "The payment of order {id} does not match its price; granting nothing");
        Outcome::Mismatch
    } else if is_buyer_deleted {
        tracing::error!(order.id = %id, "Order {id} was paid after its buyer's account was deleted; refund the payment");
        Outcome::OwnerGone
    } else {
        grant(conn, &order).await?;
        Outcome::Granted
    };
    if let Some(intent) = &payment.payment_intent {
        for reversal in take_waiting(conn, id, intent).await? {
            reversal::apply(conn, id, &reversal).await?;
        }
    }
    Ok(Some(outcome))
}

async fn grant(conn: &mut PgConnection, order: &super::Order) -> sqlx::Result<()> {
    let id = order.id;
    sqlx::query!(
        "update orders set fulfilled_at = now() where id = $1 and fulfilled_at is null",
        id.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    credits::grant_purchase(conn, order.user, id, order.credits).await?;
    tracing::info!(order.id = %id, user.id = %order.user, credits = order.credits, "Fulfilled order {id}");
    Ok(())
}

async fn reverse_in(
    conn: &mut PgConnection,
    id: OrderId,
    reversal: &Reversal,
) -> sqlx::Result<Outcome> {
    lock(conn, id).await?;
    let Reversed { taken, missing, returned } = reversal::apply(conn, id, reversal).await?;
    tracing::info!(order.id = %id, taken, missing, returned, "Reversed credits of order {id}");
    Ok(Outcome::Reversed)
}

/// Serializes everything about one payment, so that a refund either finds the paid order or waits for it.
async fn lock_payment(conn: &mut PgConnection, intent: &str) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended('payment:' || $1, 0))", intent)
        .execute(conn)
        .await
        .map(drop)
}

/// Returns the order that the reversed payment paid for, even if its credits could not be granted.
async fn find_paid(conn: &mut PgConnection, reversal: &Reversal) -> sqlx::Result<Option<OrderId>> {
    lock_payment(conn, &reversal.payment_intent).await?;
    sqlx::query_scalar!(
        r#"select id as "id: OrderId" from orders o
           where payment_intent = $1
             and (status in ('paid', 'refunded', 'disputed')
                  or exists (select from payment_events where order_id = o.id and outcome = 'mismatch'))"#,
        reversal.payment_intent,
    )
    .fetch_optional(conn)
    .await
}

/// Returns the order of a payment: the order with this checkout page or, if we crashed before recording the page, the
/// order that we attached to the page.
async fn find(conn: &mut PgConnection, payment: &Payment) -> sqlx::Result<Option<OrderId>> {
    if let Some(intent) = &payment.payment_intent {
        lock_payment(conn, intent).await?;
    }
    sqlx::query_scalar!(
        r#"select id as "id: OrderId" from orders
           where session = $1 or (session is null and id = $2) order by session nulls last limit 1"#,
        payment.session,
        payment.order.map(OrderId::uuid),
    )
    .fetch_optional(conn)
    .await
}

/// Locks the buyer's row, then the order's. Returns true if the buyer's account was deleted.
async fn lock(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<bool> {
    let buyer = sqlx::query!(
        r#"select u.id as "id: UserId", u.deleted_at is not null as "is_deleted!" from users u
           join orders o on o.user_id = u.id where o.id = $1 for update of u"#,
        order.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query!("select id from orders where id = $1 for update", order.uuid())
        .fetch_one(conn)
        .await?;
    Ok(buyer.is_deleted)
}

async fn set_status(
    conn: &mut PgConnection,
    order: OrderId,
    status: OrderStatus,
) -> sqlx::Result<()> {
    sqlx::query!("update orders set status = $2 where id = $1", order.uuid(), status.as_str())
        .execute(conn)
        .await
        .map(drop)
}

/// Returns the refunds and disputes that arrived before their payment, and marks them as applied.
async fn take_waiting(
    conn: &mut PgConnection,
    order: OrderId,
    intent: &str,
) -> sqlx::Result<Vec<Reversal>> {
    let rows = sqlx::query_scalar!(
        r#"update payment_events
           set outcome = 'reversed', order_id = $2,
               -- The buyer may have deleted the account since it came.
               payload = case when exists (
                   select from orders o join users u on u.id = o.user_id where o.id = $2 and u.deleted_at is not null
               ) then '' else payload end
           where outcome = 'waiting' and payment_intent = $1 returning reversal as "reversal!""#,
        intent,
        order.uuid(),
    )
    .fetch_all(conn)
    .await?;
    let read = rows.into_iter().map(serde_json::from_value::<Reversal>);
    read.collect::<Result<_, _>>().map_err(|error| sqlx::Error::Decode(error.into()))
}

/// A checkout session to poll the provider about.
#[derive(Clone, Debug)]
pub struct DueCheck {
    pub session: String,
    pub buyer: UserId,
    /// True if the buyer's account was deleted, so that nobody should pay.
    pub is_buyer_deleted: bool,
}

/// Returns up to `limit` checkout sessions to poll the provider about, because no message has arrived for a while.
/// Each goes to one caller only, and again after an interval that grows with the order's age, for 90 days: no payment takes
/// longer to succeed or fail.
pub async fn due_for_check(pool: &PgPool, limit: i64) -> sqlx::Result<Vec<DueCheck>> {
    sqlx::query_as!(
        DueCheck,
        r#"update orders set next_check_at = now() + greatest(interval '2 minutes',
                                 least(interval '1 hour', (now() - created_at) / 2))
           where id in (
               select id from orders
               where status in ('open', 'unpaid') and session is not null and next_check_at < now()
                 and created_at > now() - interval '90 days'
               order by next_check_at limit $1 for update skip locked
           )
           returning session as "session!", user_id as "buyer: UserId", exists (
               select from users u where u.id = orders.user_id and u.deleted_at is not null
           ) as "is_buyer_deleted!""#,
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Deletes the text of messages that are older than `days` and belong to no order: it names a buyer, and deleting their
/// account would not find it. Returns their number.
pub async fn forget_texts(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let forgotten = sqlx::query!(
        "update payment_events set payload = ''
         where order_id is null and payload <> '' and received_at < now() - make_interval(days => $1)",
        days,
    )
    .execute(pool)
    .await?;
    Ok(forgotten.rows_affected())
}
