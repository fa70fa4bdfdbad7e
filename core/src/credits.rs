//! Prices of packs, holds and the ledger: the only code that touches a balance, but for the one statement that
//! finishes a job (`jobs/finish.rs`).
//!
//! A paid job *holds* its cost from submit to end. Only a finished job is *debited*, in the same
//! transaction that marks it done; anything else gives the hold back. The database keeps
//! `credits >= reserved >= 0` and `credits = sum of the ledger`, whatever this code does.

mod by_hand;
mod price;

use sqlx::{PgConnection, PgPool};

use crate::{OrderId, UserId};

pub(crate) use by_hand::forfeit;
pub use by_hand::{AdjustError, Adjusted, Adjustment, adjust};
pub use price::price;

/// What a new user starts with, in credits.
pub const SIGNUP_CREDITS: i32 = 20;

/// An amount of credits on sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pack {
    /// 1, 2 or 3: the number in the address of its checkout.
    pub number: u8,
    /// What the buyer gets.
    pub credits: i32,
    /// What the buyer pays, in cents.
    pub amount_cents: i64,
    /// ISO 4217, lower case.
    pub currency: &'static str,
    /// How the price list calls it.
    pub label: &'static str,
    /// What the price list adds.
    pub note: Option<&'static str>,
}

/// The packs on sale.
pub const PACKS: [Pack; 3] = [
    Pack {
        number: 1,
        credits: 20,
        amount_cents: 200,
        currency: "usd",
        label: "Cheapest",
        note: None,
    },
    Pack {
        number: 2,
        credits: 55,
        amount_cents: 500,
        currency: "usd",
        label: "Most popular",
        note: Some("10% More Value"),
    },
    Pack {
        number: 3,
        credits: 180,
        amount_cents: 1500,
        currency: "usd",
        label: "Best Value",
        note: Some("20% More Value"),
    },
];

/// Gives a new user their free credits. A second grant to the same user breaks a constraint.
pub(crate) async fn grant_signup(conn: &mut PgConnection, user: UserId) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ledger (user_id, kind, amount) values ($1, 'signup_grant', $2)",
        user.uuid(),
        SIGNUP_CREDITS,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Locks the user's row and sets `cost` aside for a job. False when the user has not got that much left; the
/// row is locked all the same.
pub(crate) async fn lock_and_hold(
    conn: &mut PgConnection,
    user: UserId,
    cost: i32,
) -> sqlx::Result<bool> {
    let held = sqlx::query!(
        "update users set reserved = reserved + $2 where id = $1 and credits - reserved >= $2",
        user.uuid(),
        cost,
    )
    .execute(&mut *conn)
    .await?;
    if held.rows_affected() == 1 {
        return Ok(true);
    }
    sqlx::query!("select id from users where id = $1 for update", user.uuid())
        .fetch_one(conn)
        .await?;
    Ok(false)
}

/// Gives a hold back.
pub(crate) async fn release(conn: &mut PgConnection, user: UserId, cost: i32) -> sqlx::Result<()> {
    let released =
        sqlx::query!("update users set reserved = reserved - $2 where id = $1", user.uuid(), cost)
            .execute(conn)
            .await?;
    exactly_one(released.rows_affected())
}

/// Adds what was paid for. A second grant for the same order breaks a constraint.
pub(crate) async fn grant_purchase(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    credits: i32,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ledger (user_id, kind, amount, order_id) values ($1, 'purchase', $2, $3)",
        user.uuid(),
        credits,
        order.uuid(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Why credits of an order that was paid move again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reverse {
    /// The money was given back.
    Refund,
    /// The payer's bank took the money back, or returned it.
    Dispute,
}

impl Reverse {
    const fn kind(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Dispute => "dispute",
        }
    }
}

/// Takes credits of an order back: at most `wanted`, and never more than the user has left beside what is
/// held. Returns how many. The caller has locked the user's row.
pub(crate) async fn take_back(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    wanted: i32,
    why: Reverse,
) -> sqlx::Result<i32> {
    let left = sqlx::query_scalar!(
        r#"select credits - reserved as "left!" from users where id = $1"#,
        user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let taken = wanted.min(left).max(0);
    if taken > 0 {
        move_of_order(conn, user, order, -taken, why).await?;
    }
    Ok(taken)
}

/// Returns credits of an order that a dispute had taken and that was decided for us.
pub(crate) async fn give_back(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    credits: i32,
) -> sqlx::Result<()> {
    move_of_order(conn, user, order, credits, Reverse::Dispute).await
}

async fn move_of_order(
    conn: &mut PgConnection,
    user: UserId,
    order: OrderId,
    amount: i32,
    why: Reverse,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ledger (user_id, kind, amount, order_id) values ($1, $2, $3, $4)",
        user.uuid(),
        why.kind(),
        amount,
        order.uuid(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// What has been granted and spent in all, in credits, by the kind of entry.
pub async fn sums_by_kind(pool: &PgPool) -> sqlx::Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        r#"select kind, sum(amount)::bigint as "sum!" from ledger group by kind order by kind"#,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.kind, row.sum)).collect())
}

/// A user whose balance does not agree with their ledger or whose hold does not agree with their jobs.
#[derive(Debug, PartialEq, Eq)]
pub struct Discrepancy {
    /// Whose it is.
    pub user: UserId,
    /// `users.credits`.
    pub credits: i32,
    /// The sum of their ledger.
    pub ledger: i64,
    /// `users.reserved`.
    pub reserved: i32,
    /// The cost of their jobs that have not ended.
    pub held: i64,
}

/// Recomputes every balance and every hold; empty when all is well.
pub async fn audit(pool: &PgPool) -> sqlx::Result<Vec<Discrepancy>> {
    sqlx::query_as!(
        Discrepancy,
        r#"with sums as (
               select user_id, sum(amount)::bigint as ledger from ledger group by user_id
           ), holds as (
               select owner_id, sum(cost)::bigint as held from jobs
               where state in ('queued', 'running') group by owner_id
           )
           select u.id as "user: UserId", u.credits, u.reserved,
                  coalesce(s.ledger, 0) as "ledger!", coalesce(h.held, 0) as "held!"
           from users u
           left join sums s on s.user_id = u.id
           left join holds h on h.owner_id = u.id
           where u.credits <> coalesce(s.ledger, 0) or u.reserved <> coalesce(h.held, 0)"#,
    )
    .fetch_all(pool)
    .await
}

/// Fails unless exactly one row changed.
pub(crate) fn exactly_one(rows: u64) -> sqlx::Result<()> {
    if rows == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}
