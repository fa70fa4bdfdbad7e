//! An order's life: the only code that changes an order.
//!
//! ```text
//!         place              paid                 all refunded
//!  (none) ─────▶ open ──────────────────▶ paid ───────────────▶ refunded
//!                 │ │ ▲                    ▲ │ ▲
//!                 │ └─┴▶ unpaid ───────────┘ ▼ │ won
//!                 ▼         │             disputed
//!         expired, failed ◀─┘
//! ```
//!
//! *Unpaid* is a payment that takes days, like a bank debit. Credits are granted with the step to *paid*,
//! once, whatever brings the news: the provider's message, the buyer's return, or our own question. Messages
//! come late, twice and in any order, so each says what is true now and changes nothing when it is said again.
//! Rows are locked in one order everywhere: the payment, the user, the order.

mod place;
mod reversal;
mod settle;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgPool};

use crate::{OrderId, UserId};

pub use place::{PlaceError, attach_session, expire_abandoned, place, refuse};
pub use reversal::{Reversal, ReversalEvent, Reversed};
pub use settle::{Message, News, Outcome, Payment, Progress, due_for_check, receive, settle};

/// Where an order is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum OrderStatus {
    /// The buyer has not paid yet.
    Open,
    /// The buyer has ordered a payment that takes its time.
    Unpaid,
    /// Paid; the credits are granted, unless their owner was gone by then.
    Paid,
    /// The payment did not come about.
    Failed,
    /// The buyer did not pay in time.
    Expired,
    /// The whole payment was given back.
    Refunded,
    /// The payer's bank disputes the payment, or did so with success.
    Disputed,
}

impl OrderStatus {
    /// Its name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Unpaid => "unpaid",
            Self::Paid => "paid",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Refunded => "refunded",
            Self::Disputed => "disputed",
        }
    }
}

/// Somebody's purchase of a pack.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its id; the payment provider knows it too.
    pub id: OrderId,
    /// The buyer.
    pub user: UserId,
    /// The pack's number.
    pub pack: i16,
    /// What it grants.
    pub credits: i32,
    /// What it costs, in cents.
    pub amount_cents: i64,
    /// ISO 4217, lower case.
    pub currency: String,
    /// Where it is.
    pub status: OrderStatus,
    /// When its credits were granted.
    pub fulfilled_at: Option<DateTime<Utc>>,
    /// The provider's name for the page it is paid on.
    pub session: Option<String>,
    /// The address of that page.
    pub checkout_url: Option<String>,
    /// What the buyer gave as their address when they paid.
    pub email: Option<String>,
    /// How many of its credits were taken back after a refund or a dispute.
    pub credits_taken_back: i32,
    /// When it was placed.
    pub created_at: DateTime<Utc>,
}

/// The orders that `user` went to pay for, the newest first.
pub async fn list(pool: &PgPool, user: UserId) -> sqlx::Result<Vec<Order>> {
    let mut conn = pool.acquire().await?;
    let all = select(&mut conn, Wanted { user: Some(user), ..Wanted::default() }).await?;
    Ok(all.into_iter().filter(|order| order.session.is_some()).collect())
}

/// One order of `user`.
pub async fn owned(pool: &PgPool, user: UserId, id: OrderId) -> sqlx::Result<Option<Order>> {
    let mut conn = pool.acquire().await?;
    let wanted = Wanted { user: Some(user), id: Some(id), ..Wanted::default() };
    Ok(select(&mut conn, wanted).await?.pop())
}

/// The order of `user` that is paid on the page called `session`.
pub async fn of_session(pool: &PgPool, user: UserId, session: &str) -> sqlx::Result<Option<Order>> {
    let mut conn = pool.acquire().await?;
    let wanted = Wanted { user: Some(user), session: Some(session), ..Wanted::default() };
    Ok(select(&mut conn, wanted).await?.pop())
}

/// The order called `id`, whoever it belongs to.
async fn get(conn: &mut PgConnection, id: OrderId) -> sqlx::Result<Order> {
    let found = select(conn, Wanted { id: Some(id), ..Wanted::default() }).await?.pop();
    found.ok_or(sqlx::Error::RowNotFound)
}

/// Which orders to look for; what is `None` does not matter.
#[derive(Default)]
struct Wanted<'a> {
    user: Option<UserId>,
    id: Option<OrderId>,
    session: Option<&'a str>,
}

async fn select(conn: &mut PgConnection, wanted: Wanted<'_>) -> sqlx::Result<Vec<Order>> {
    sqlx::query_as!(
        Order,
        r#"select id as "id: OrderId", user_id as "user: UserId", pack, credits, amount_cents, currency,
                  status as "status: OrderStatus", fulfilled_at, session, checkout_url, email,
                  credits_reversed - credits_missing as "credits_taken_back!", created_at
           from orders
           where ($1::uuid is null or user_id = $1) and ($2::uuid is null or id = $2)
             and ($3::text is null or session = $3)
           order by created_at desc, id desc"#,
        wanted.user.map(UserId::uuid),
        wanted.id.map(OrderId::uuid),
        wanted.session,
    )
    .fetch_all(conn)
    .await
}
