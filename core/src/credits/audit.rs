//! Sums over the ledger, and the check that balances and holds agree with it.

use sqlx::PgPool;

use crate::UserId;

/// Returns the sum of all ledger entries of each kind, in credits.
pub async fn sums_by_kind(pool: &PgPool) -> sqlx::Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        r#"select kind, sum(amount)::bigint as "sum!" from ledger group by kind order by kind"#,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.kind, row.sum)).collect())
}

/// A user whose balance disagrees with their ledger, or whose hold disagrees with their jobs.
#[derive(Debug, PartialEq, Eq)]
pub struct Discrepancy {
    /// The user.
    pub user: UserId,
    /// `users.credits`.
    pub credits: i32,
    /// The sum of their ledger entries.
    pub ledger: i64,
    /// `users.reserved`.
    pub reserved: i32,
    /// The cost of their active jobs.
    pub held: i64,
}

/// Recomputes every balance and every hold. Returns those that are wrong.
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
