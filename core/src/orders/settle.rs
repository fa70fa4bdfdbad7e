//! What is heard of a payment, and what it leads to.

use serde_json::json;
use sqlx::{PgConnection, PgPool};

use super::reversal::{self, Reversal, Reversed};
use super::{OrderStatus, get};
use crate::{OrderId, UserId, credits, db};

/// How far a payment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing has happened yet.
    Open,
    /// It was ordered; the money comes later, or not at all.
    Unpaid,
    /// The money is there.
    Paid,
    /// The money will not come.
    Failed,
    /// The time to pay is over.
    Expired,
}

/// What the provider says of a payment.
#[derive(Clone, Debug)]
pub struct Payment {
    /// The provider's name for the page it is paid on.
    pub session: String,
    /// The order that we named when the page was made.
    pub order: Option<OrderId>,
    /// How far it is.
    pub progress: Progress,
    /// What is paid in all, in cents.
    pub amount_cents: Option<i64>,
    /// ISO 4217, lower case.
    pub currency: Option<String>,
    /// The provider's name for the payment itself, known once there is one.
    pub payment_intent: Option<String>,
    /// What the buyer gave as their address.
    pub email: Option<String>,
}

/// A message of the provider.
#[derive(Clone, Debug)]
pub struct Message {
    /// The provider's name for it; the same when it comes again.
    pub id: String,
    /// The provider's word for what it is about.
    pub kind: String,
    /// All of it, as it came.
    pub payload: String,
    /// What it says to us.
    pub news: News,
}

/// What a message says.
#[derive(Clone, Debug)]
pub enum News {
    /// How far a payment is.
    Payment(Payment),
    /// Money went back, or may.
    Reversal(Reversal),
    /// Nothing that we act on.
    Other,
}

/// What a piece of news led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The credits were granted, just now.
    Granted,
    /// They had been granted before.
    AlreadyGranted,
    /// The order has another status now, or had it already; no credits moved.
    Noted,
    /// Credits were taken back or returned, or nothing was left to move.
    Reversed,
    /// It is about a payment that we have not heard of yet; it will count when we do.
    Waiting,
    /// The same message had come before.
    Repeated,
    /// The money is there but is not what the order costs. Somebody has to look.
    Mismatch,
    /// The money is there but the buyer's account is gone. Somebody should give it back.
    OwnerGone,
    /// It is about no order of ours.
    Unknown,
    /// It says nothing that we act on.
    Ignored,
}

impl Outcome {
    /// Its name in the database and in metrics.
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
            Self::Unknown => "unknown",
            Self::Ignored => "ignored",
        }
    }
}

/// Takes in a message of the provider: stores it and does what it says, in one transaction. A message that
/// came before changes nothing.
pub async fn receive(pool: &PgPool, message: &Message) -> sqlx::Result<Outcome> {
    let mut tx = db::begin(pool).await?;
    // The same message twice at once: the second waits here for the first to be done.
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
    let (outcome, order) = match &message.news {
        News::Payment(payment) => match find(&mut tx, payment).await? {
            Some(order) => (settle_in(&mut tx, order, payment).await?, Some(order)),
            None => (Outcome::Unknown, None),
        },
        News::Reversal(reversal) => match find_paid(&mut tx, reversal).await? {
            Some(order) => (reverse_in(&mut tx, order, reversal).await?, Some(order)),
            None => (Outcome::Waiting, None),
        },
        News::Other => (Outcome::Ignored, None),
    };
    let waiting = match &message.news {
        News::Reversal(reversal) if outcome == Outcome::Waiting => Some(reversal),
        _ => None,
    };
    sqlx::query!(
        // The message names the buyer; nothing of one who left is kept.
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

/// Does what is known of a payment calls for. Safe to call any number of times, at once and in any order.
pub async fn settle(pool: &PgPool, payment: &Payment) -> sqlx::Result<Outcome> {
    let mut tx = db::begin(pool).await?;
    let Some(order) = find(&mut tx, payment).await? else { return Ok(Outcome::Unknown) };
    let outcome = settle_in(&mut tx, order, payment).await?;
    tx.commit().await?;
    Ok(outcome)
}

async fn settle_in(
    conn: &mut PgConnection,
    id: OrderId,
    payment: &Payment,
) -> sqlx::Result<Outcome> {
    let buyer_is_gone = lock(conn, id).await?;
    sqlx::query!(
        "update orders set session = coalesce(session, $2), email = coalesce($3, email),
                           payment_intent = coalesce(payment_intent, $4)
         where id = $1",
        id.uuid(),
        payment.session,
        payment.email.as_deref().filter(|_| !buyer_is_gone),
        payment.payment_intent,
    )
    .execute(&mut *conn)
    .await?;
    let order = get(conn, id).await?;
    if order.fulfilled_at.is_some() {
        return Ok(Outcome::AlreadyGranted);
    }
    let status = match (payment.progress, order.status) {
        (Progress::Paid, _) => OrderStatus::Paid,
        // Older news than what is known.
        (_, OrderStatus::Paid | OrderStatus::Refunded | OrderStatus::Disputed)
        | (Progress::Open, _)
        | (Progress::Unpaid, OrderStatus::Failed) => return Ok(Outcome::Noted),
        (Progress::Unpaid, _) => OrderStatus::Unpaid,
        (Progress::Failed, _) => OrderStatus::Failed,
        (Progress::Expired, _) => OrderStatus::Expired,
    };
    if status != OrderStatus::Paid {
        set_status(conn, id, status).await?;
        return Ok(Outcome::Noted);
    }
    let is_price = payment.amount_cents == Some(order.amount_cents)
        && payment.currency.as_deref() == Some(&order.currency);
    if !is_price {
        tracing::error!(order.id = %id, "Order {id} was paid with another amount than it costs; nothing is granted");
        return Ok(Outcome::Mismatch);
    }
    if buyer_is_gone {
        set_status(conn, id, status).await?;
        tracing::error!(order.id = %id, "Order {id} was paid after its buyer's account was deleted; give the money back");
        return Ok(Outcome::OwnerGone);
    }
    sqlx::query!(
        "update orders set status = 'paid', fulfilled_at = now() where id = $1 and fulfilled_at is null",
        id.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    credits::grant_purchase(conn, order.user, id, order.credits).await?;
    tracing::info!(order.id = %id, user.id = %order.user, credits = order.credits, "Fulfilled order {id}");
    if let Some(intent) = &payment.payment_intent {
        for reversal in waiting_for(conn, id, intent).await? {
            reversal::apply(conn, id, &reversal).await?;
        }
    }
    Ok(Outcome::Granted)
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

/// News about one payment are taken in one after the other: a refund either finds the order that was paid
/// or is found by it.
async fn lock_payment(conn: &mut PgConnection, intent: &str) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended('payment:' || $1, 0))", intent)
        .execute(conn)
        .await
        .map(drop)
}

/// The order that was paid with what went back, whether or not its credits could be granted.
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

/// The order that a payment is for: the one that is paid on this page or, should we have stopped before that
/// was noted, the one that we named when the page was made.
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

/// Locks the buyer's row and then the order's. Whether the buyer's account is gone.
async fn lock(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<bool> {
    let buyer = sqlx::query!(
        r#"select u.id as "id: UserId", u.deleted_at is not null as "is_gone!" from users u
           join orders o on o.user_id = u.id where o.id = $1 for update of u"#,
        order.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query!("select id from orders where id = $1 for update", order.uuid())
        .fetch_one(conn)
        .await?;
    Ok(buyer.is_gone)
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

/// Takes the refunds and disputes that came before their payment.
async fn waiting_for(
    conn: &mut PgConnection,
    order: OrderId,
    intent: &str,
) -> sqlx::Result<Vec<Reversal>> {
    let rows = sqlx::query_scalar!(
        r#"update payment_events set outcome = 'reversed', order_id = $2
           where outcome = 'waiting' and payment_intent = $1 returning reversal as "reversal!""#,
        intent,
        order.uuid(),
    )
    .fetch_all(conn)
    .await?;
    let read = rows.into_iter().map(serde_json::from_value::<Reversal>);
    read.collect::<Result<_, _>>().map_err(|error| sqlx::Error::Decode(error.into()))
}

/// The pages of orders that the provider should be asked about, because it has been silent for a while; each
/// is named to one caller only, and again after a pause that grows with its age.
pub async fn due_for_check(pool: &PgPool, most: i64) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"update orders set next_check_at = now() + greatest(interval '2 minutes',
                                 least(interval '1 hour', (now() - created_at) / 2))
           where id in (
               select id from orders
               where status in ('open', 'unpaid') and session is not null and next_check_at < now()
               order by next_check_at limit $1 for update skip locked
           )
           returning session as "session!""#,
        most,
    )
    .fetch_all(pool)
    .await
}
