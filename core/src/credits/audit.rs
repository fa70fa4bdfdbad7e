//! Sums over the ledger, and the check that balances and holds agree with it.

use std::collections::HashMap;

use sqlx::PgPool;
use uuid::Uuid;

use crate::db::pages::Pages;
use crate::{UserId, chores};

/// Ledger entries that one statement adds up.
const ENTRIES: i64 = 20_000;

/// Returns the sum of all ledger entries of each kind, in credits.
///
/// Adds the entries since [`add_up`] to what it has added up.
pub async fn sums_by_kind(pool: &PgPool) -> sqlx::Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        r#"select kind as "kind!", sum(amount)::bigint as "sum!" from (
               select kind, amount from ledger_sums
               union all
               select kind, amount from ledger
               where id > (select coalesce(max(through_id), 0) from ledger_sums)
           ) parts group by kind order by kind"#,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.kind, row.sum)).collect())
}

/// Adds up the entries that are older than ten minutes, in one process, so that [`sums_by_kind`] reads only the others.
pub async fn add_up(pool: &PgPool) -> sqlx::Result<()> {
    let work = async {
        while add_up_some(pool).await? > 0 {}
        Ok(())
    };
    chores::SUMS.alone(pool, work).await.map(drop)
}

/// Adds up the next entries. Returns the number of rows that changed, 0 if there are none.
///
/// An entry can become visible after one with a higher number, so the youngest are left alone: no transaction that
/// writes the ledger lasts ten minutes.
async fn add_up_some(pool: &PgPool) -> sqlx::Result<u64> {
    let added = sqlx::query!(
        r#"with known as (
               select coalesce(max(through_id), 0) as through_id from ledger_sums
           ), entries as (
               select id, kind, amount from ledger
               where id > (select through_id from known)
                 and id <= (select id from ledger where created_at < now() - interval '10 minutes' order by id desc limit 1)
               order by id limit $1
           ), added as (
               select kind, sum(amount)::bigint as amount from entries group by kind
           )
           insert into ledger_sums (kind, amount, through_id)
           select kind, coalesce(added.amount, 0), (select max(id) from entries)
           from added full join (select kind from ledger_sums) summed using (kind)
           where exists (select from entries)
           on conflict (kind) do update
           set amount = ledger_sums.amount + excluded.amount, through_id = excluded.through_id
           -- Another process may have added them, if this one lost its lock and did not notice.
           where ledger_sums.through_id = (select through_id from known)"#,
        ENTRIES,
    )
    .execute(pool)
    .await?;
    Ok(added.rows_affected())
}

/// A user whose balance disagrees with their ledger, or whose hold disagrees with their jobs.
#[derive(Debug, PartialEq, Eq)]
pub struct Discrepancy {
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

/// Users that one statement reads.
const USERS: i64 = 1000;
/// Users that one statement checks exactly.
const SUSPECTS: usize = 20;

/// Recomputes every balance and every hold. Returns those that are wrong.
///
/// Adds up the ledger in the order in which it was written, which is fast however many entries one user has, and
/// compares each balance with its sum and the entries since. An entry can become visible after one with a higher number
/// and be missed, so what seems wrong is checked again from the beginning. Keeps a sum for each user in memory, about
/// 50 bytes.
pub async fn audit(pool: &PgPool) -> sqlx::Result<Vec<Discrepancy>> {
    let (sums, through) = sums_by_user(pool).await?;
    let mut suspects = Vec::new();
    let mut pages = Pages::of("users", USERS);
    while let Some((first, last)) = pages.next(pool).await? {
        let users = sqlx::query!(
            r#"select id, credits - coalesce((
                      select sum(amount) from ledger where user_id = users.id and id > $3
                  ), 0)::bigint as "before!", reserved <> coalesce((
                      select sum(cost) from jobs where owner_id = users.id and state in ('queued', 'running')
                  ), 0) as "is_hold_wrong!"
               from users where id > $1 and id <= $2 order by id"#,
            first,
            last,
            through,
        )
        .fetch_all(pool)
        .await?;
        let sum = |user| sums.get(user).copied().unwrap_or(0);
        let wrong = users.iter().filter(|user| user.is_hold_wrong || user.before != sum(&user.id));
        suspects.extend(wrong.map(|user| user.id));
    }
    let mut wrong = Vec::new();
    for some in suspects.chunks(SUSPECTS) {
        wrong.extend(wrong_books(pool, some).await?);
    }
    Ok(wrong)
}

/// Returns the sum of the ledger entries of each user, and the last entry in it.
async fn sums_by_user(pool: &PgPool) -> sqlx::Result<(HashMap<Uuid, i64>, i64)> {
    let (mut sums, mut after) = (HashMap::new(), 0);
    loop {
        let last = sqlx::query_scalar!(
            "select max(id) from (select id from ledger where id > $1 order by id limit $2) next",
            after,
            ENTRIES,
        )
        .fetch_one(pool)
        .await?;
        let Some(last) = last else { return Ok((sums, after)) };
        let part = sqlx::query!(
            r#"select user_id, sum(amount)::bigint as "sum!" from ledger where id > $1 and id <= $2 group by user_id"#,
            after,
            last,
        )
        .fetch_all(pool)
        .await?;
        for user in part {
            *sums.entry(user.user_id).or_default() += user.sum;
        }
        after = last;
    }
}

/// Returns the users among `users` whose books are wrong. One statement, one snapshot: balance and ledger belong
/// together.
async fn wrong_books(pool: &PgPool, users: &[Uuid]) -> sqlx::Result<Vec<Discrepancy>> {
    sqlx::query_as!(
        Discrepancy,
        r#"select id as "user: UserId", credits, ledger as "ledger!", reserved, held as "held!"
           from users, lateral (
               select coalesce(sum(amount), 0)::bigint as ledger from ledger where user_id = users.id
           ) booked, lateral (
               select coalesce(sum(cost), 0)::bigint as held from jobs
               where owner_id = users.id and state in ('queued', 'running')
           ) active
           where id = any($1) and (credits <> ledger or reserved <> held) order by id"#,
        users,
    )
    .fetch_all(pool)
    .await
}
