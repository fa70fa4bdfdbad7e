//! The life of an order: the only code that changes an order.
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
//! *Unpaid* is a payment that takes days, such as a bank debit. The step to *paid* grants the credits, once,
//! whether we learn of it from the provider's message, from the buyer's return to our page, or by polling.
//! Messages arrive late, twice and in any order, so handling one is idempotent. Every function locks rows in the
//! same order: the payment, the user, the order.

mod place;
mod reversal;
mod settle;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgPool};

use crate::{OrderId, UserId};

pub use place::{PlaceError, attach_session, expire_abandoned, place, refuse};
pub use reversal::{Reversal, ReversalEvent, Reversed};
pub use settle::{
    DueCheck, Message, Outcome, Payment, PaymentEvent, PaymentStatus, due_for_check, forget_texts,
    receive, settle,
};

/// The status of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum OrderStatus {
    /// Not paid yet.
    Open,
    /// The buyer authorized a payment that takes days.
    Unpaid,
    /// Paid; the credits are granted unless the amount was wrong or the buyer's account was deleted before.
    Paid,
    /// The payment failed.
    Failed,
    /// The buyer did not pay in time.
    Expired,
    /// The whole payment was refunded.
    Refunded,
    /// The payer's bank disputes the payment, or has won the dispute.
    Disputed,
}

impl OrderStatus {
    /// Returns its name in the database and in JSON.
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

/// A user's purchase of a pack.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its id, which the payment provider also stores.
    pub id: OrderId,
    /// The buyer.
    pub user: UserId,
    pub pack: i16,
    pub credits: i32,
    pub amount_cents: i64,
    /// ISO 4217, lower case.
    pub currency: String,
    pub status: OrderStatus,
    /// The time its credits were granted.
    pub fulfilled_at: Option<DateTime<Utc>>,
    /// The provider's id of the checkout page.
    pub session: Option<String>,
    pub checkout_url: Option<String>,
    /// The email address the buyer entered when paying.
    pub email: Option<String>,
    /// The credits taken back after refunds and disputes.
    pub credits_taken_back: i32,
    pub created_at: DateTime<Utc>,
}

/// Returns the orders of `user` that have a checkout page, the newest first.
pub async fn list(pool: &PgPool, user: UserId) -> sqlx::Result<Vec<Order>> {
    let mut conn = pool.acquire().await?;
    let all = select(&mut conn, Filter { user: Some(user), ..Filter::default() }).await?;
    Ok(all.into_iter().filter(|order| order.session.is_some()).collect())
}

/// Returns an order if `user` owns it.
pub async fn owned(pool: &PgPool, user: UserId, id: OrderId) -> sqlx::Result<Option<Order>> {
    let mut conn = pool.acquire().await?;
    let filter = Filter { user: Some(user), id: Some(id), ..Filter::default() };
    Ok(select(&mut conn, filter).await?.pop())
}

/// Returns the order of `user` with the checkout page `session`.
pub async fn for_session(
    pool: &PgPool,
    user: UserId,
    session: &str,
) -> sqlx::Result<Option<Order>> {
    let mut conn = pool.acquire().await?;
    let filter = Filter { user: Some(user), session: Some(session), ..Filter::default() };
    Ok(select(&mut conn, filter).await?.pop())
}

/// Returns the order, whoever owns it.
async fn get(conn: &mut PgConnection, id: OrderId) -> sqlx::Result<Order> {
    let found = select(conn, Filter { id: Some(id), ..Filter::default() }).await?.pop();
    found.ok_or(sqlx::Error::RowNotFound)
}

/// Selects orders; a field that is `None` matches every order.
#[derive(Default)]
struct Filter<'a> {
    user: Option<UserId>,
    id: Option<OrderId>,
    session: Option<&'a str>,
}

async fn select(conn: &mut PgConnection, filter: Filter<'_>) -> sqlx::Result<Vec<Order>> {
    sqlx::query_as!(
        Order,
        r#"select id as "id: OrderId", user_id as "user: UserId", pack, credits, amount_cents, currency,
                  status as "status: OrderStatus", fulfilled_at, session, checkout_url, email,
                  credits_reversed - credits_missing as "credits_taken_back!", created_at
           from orders
           where ($1::uuid is null or user_id = $1) and ($2::uuid is null or id = $2)
             and ($3::text is null or session = $3)
           order by created_at desc, id desc"#,
        filter.user.map(UserId::uuid),
        filter.id.map(OrderId::uuid),
        filter.session,
    )
    .fetch_all(conn)
    .await
}
