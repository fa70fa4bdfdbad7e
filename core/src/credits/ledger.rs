//! The ledger: every change of a balance, and why.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{PgConnection, PgPool};

use crate::{JobId, OrderId, UserId};

/// Why a balance changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum LedgerKind {
    /// The free credits of a new user.
    SignupGrant,
    Purchase,
    Job,
    /// Money of an order was refunded.
    Refund,
    /// The payer's bank withdrew the money of an order, or returned it.
    Dispute,
    /// An operator's adjustment.
    Admin,
    /// The credits that remained when the account was deleted.
    Forfeit,
}

impl LedgerKind {
    /// Returns its name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SignupGrant => "signup_grant",
            Self::Purchase => "purchase",
            Self::Job => "job",
            Self::Refund => "refund",
            Self::Dispute => "dispute",
            Self::Admin => "admin",
            Self::Forfeit => "forfeit",
        }
    }
}

/// One change of a balance.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerEntry {
    /// Its number, ascending over time.
    pub id: i64,
    pub kind: LedgerKind,
    /// In credits.
    pub amount: i32,
    pub job: Option<JobId>,
    pub order: Option<OrderId>,
    /// The reference of an operator's adjustment.
    pub reference: Option<String>,
    /// The operator's note.
    pub note: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// Returns the next `limit` entries of `user`, the oldest first, from the one after `after`.
pub async fn ledger_after(
    pool: &PgPool,
    user: UserId,
    after: i64,
    limit: i64,
) -> sqlx::Result<Vec<LedgerEntry>> {
    sqlx::query_as!(
        LedgerEntry,
        r#"select id, kind as "kind: LedgerKind", amount, job_id as "job: JobId",
                  order_id as "order: OrderId", reference, note, created_at
           from ledger where user_id = $1 and id > $2 order by id limit $3"#,
        user.uuid(),
        after,
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Returns the last `limit` entries of `user`, the newest first.
pub async fn recent_ledger(
    pool: &PgPool,
    user: UserId,
    limit: i64,
) -> sqlx::Result<Vec<LedgerEntry>> {
    sqlx::query_as!(
        LedgerEntry,
        r#"select id, kind as "kind: LedgerKind", amount, job_id as "job: JobId",
                  order_id as "order: OrderId", reference, note, created_at
           from ledger where user_id = $1 order by id desc limit $2"#,
        user.uuid(),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Adds an entry, which changes the balance of `user` by `amount` credits. A second signup grant of a user, or a second
/// purchase for an order, violates a constraint. Entries for jobs and adjustments are written with what they belong to.
pub(super) async fn add(
    conn: &mut PgConnection,
    user: UserId,
    kind: LedgerKind,
    amount: i32,
    order: Option<OrderId>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ledger (user_id, kind, amount, order_id) values ($1, $2, $3, $4)",
        user.uuid(),
        kind.as_str(),
        amount,
        order.map(OrderId::uuid),
    )
    .execute(conn)
    .await
    .map(drop)
}
