//! Checks the invariants: balances, holds, debits, orders, and the objects behind the rows.
//!
//! The database's constraints enforce most of them. An audit covers what constraints cannot express, and is
//! evidence for operators. It walks through the tables in pages, so that none of its statements takes long. Each
//! check of a page is one statement, and so one snapshot: an audit can run at any time.

mod objects;

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

use crate::chores::AUDIT;
use crate::credits::{self, Discrepancy};
use crate::db::pages::{Page, Pages};
use crate::{JobId, OrderId, UserId};

pub use objects::{Comparison, objects, objects_in_pages};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// A balance differs from the sum of its ledger entries.
    Balance {
        user: UserId,
        /// `users.credits`.
        credits: i32,
        /// The sum of the ledger entries.
        ledger: i64,
    },
    /// A hold differs from the cost of the active jobs.
    Hold {
        user: UserId,
        /// `users.reserved`.
        reserved: i32,
        /// The cost of the active jobs.
        held: i64,
    },
    /// A paid job is done, but its price was not debited from its owner.
    Debit {
        job: JobId,
        /// Its price.
        cost: i32,
        /// The amount debited; `None` without a debit.
        debited: Option<i32>,
    },
    /// A job was debited but is not done.
    DebitWithoutEnd { job: JobId, state: String },
    /// A job is done, but its result is missing and nobody deleted it.
    Result { job: JobId },
    /// A job that is not done has a result.
    ResultWithoutEnd { job: JobId },
    /// The ledger entries of an order differ from the credits granted and taken back.
    Order {
        order: OrderId,
        /// The credits granted less those taken back, by the order's row.
        granted: i64,
        /// The sum of its ledger entries.
        ledger: i64,
    },
    /// An order was paid, but its credits were not granted: grant them, or refund the payment.
    OrderNotGranted {
        order: OrderId,
        /// True if the account was deleted before the payment arrived.
        owner_is_gone: bool,
    },
    /// The payment of an order differs from its price, so nothing was granted: refund the payment.
    OrderMismatch { order: OrderId },
    /// An order has the credits of its payment and an operator's for the same payment.
    OrderGrantedTwice { order: OrderId },
    /// A deleted account still has data.
    DeletedAccount {
        user: UserId,
        /// The data that remains, in words.
        left: String,
    },
    /// A row refers to an object that is not in the bucket.
    MissingObject { key: String },
    /// No row refers to an object that is too old to be an upload in progress.
    UnknownObject { key: String },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Balance { user, credits, ledger } => {
                write!(f, "user {user} has {credits} credits, but the ledger adds up to {ledger}")
            }
            Self::Hold { user, reserved, held } => {
                write!(
                    f,
                    "user {user} has {reserved} credits held, but their active jobs cost {held}"
                )
            }
            Self::Debit { job, cost, debited: None } => {
                write!(f, "job {job} is done but was not debited; it costs {cost}")
            }
            Self::Debit { job, cost, debited: Some(debited) } => {
                write!(
                    f,
                    "job {job} costs {cost}, but the debit is {debited}, or from another user"
                )
            }
            Self::DebitWithoutEnd { job, state } => {
                write!(f, "job {job} was debited but is {state}")
            }
            Self::Result { job } => {
                write!(f, "job {job} is done, but its result is missing and was not deleted")
            }
            Self::ResultWithoutEnd { job } => write!(f, "job {job} has a result but is not done"),
            Self::Order { order, granted, ledger } => {
                write!(
                    f,
                    "order {order} granted {granted} credits, but its ledger entries add up to {ledger}"
                )
            }
            Self::OrderNotGranted { order, owner_is_gone: false } => {
                write!(f, "order {order} was paid, but its credits were not granted")
            }
            Self::OrderNotGranted { order, owner_is_gone: true } => {
                write!(
                    f,
                    "order {order} was paid after its account was deleted: refund the payment"
                )
            }
            Self::OrderMismatch { order } => {
                write!(
                    f,
                    "the payment of order {order} does not match its price: refund the payment"
                )
            }
            Self::OrderGrantedTwice { order } => {
                write!(f, "order {order} was granted by its payment and by an operator")
            }
            Self::DeletedAccount { user, left } => {
                write!(f, "user {user} deleted their account, but it still has {left}")
            }
            Self::MissingObject { key } => write!(f, "object {key} is missing from the bucket"),
            Self::UnknownObject { key } => write!(f, "no row refers to object {key}"),
        }
    }
}

/// How often one of the processes audits the books.
const INTERVAL: Duration = Duration::from_hours(1);
/// Grace period for erasing the data of a deleted account.
const ERASURE_HOURS: i32 = 1;
/// Jobs, orders, or users that one statement reads.
const PAGE: i64 = 5000;

/// Checks the books if no process has within the last hour. Returns the findings; `None` if no audit was due, or
/// another process is auditing.
pub async fn hourly(pool: &PgPool) -> sqlx::Result<Option<Vec<Finding>>> {
    let audited = AUDIT.alone(pool, async {
        if !AUDIT.is_due(pool, INTERVAL).await? {
            return Ok(None);
        }
        let findings = books(pool).await?;
        record(pool, &findings).await?;
        Ok(Some(findings))
    });
    audited.await.map(Option::flatten)
}

/// Records the findings of an audit of the books, for [`last`].
pub async fn record(pool: &PgPool, findings: &[Finding]) -> sqlx::Result<()> {
    AUDIT.finish(pool, findings.len()).await
}

/// Returns when the last audit of the books ended and its number of findings, whichever process ran it.
pub async fn last(pool: &PgPool) -> sqlx::Result<Option<(DateTime<Utc>, usize)>> {
    AUDIT.last(pool).await
}

/// Checks the books: every balance and hold, every job and every order.
pub async fn books(pool: &PgPool) -> sqlx::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for Discrepancy { user, credits, ledger, reserved, held } in credits::audit(pool).await? {
        if i64::from(credits) != ledger {
            findings.push(Finding::Balance { user, credits, ledger });
        }
        if i64::from(reserved) != held {
            findings.push(Finding::Hold { user, reserved, held });
        }
    }
    let mut pages = Pages::of("jobs", PAGE);
    while let Some(page) = pages.next(pool).await? {
        findings.extend(debits(pool, page).await?);
        findings.extend(results(pool, page).await?);
    }
    let mut pages = Pages::of("orders", PAGE);
    while let Some(page) = pages.next(pool).await? {
        findings.extend(orders(pool, page).await?);
        findings.extend(mismatches(pool, page).await?);
        findings.extend(granted_twice(pool, page).await?);
    }
    let mut pages = Pages::of("users", PAGE);
    while let Some(page) = pages.next(pool).await? {
        findings.extend(deleted_accounts(pool, page).await?);
    }
    Ok(findings)
}

/// Checks that each done paid job has exactly one debit, of its price and from its owner, and that no other job has any.
async fn debits(pool: &PgPool, (first, last): Page) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"select j.id as "job: JobId", j.state, j.cost, -l.amount as debited
           from jobs j left join lateral (
               -- `offset` makes this a look into an index for each job, whatever number of jobs Postgres expects.
               select id, amount, user_id from ledger where job_id = j.id offset 0
           ) l on true
           where j.id > $1 and j.id <= $2
             and case when j.state = 'done' and j.cost > 0
                      then l.id is null or l.amount <> -j.cost or l.user_id <> j.owner_id
                      else l.id is not null end
           order by j.id"#,
        first,
        last,
    )
    .fetch_all(pool)
    .await?;
    let findings = rows.into_iter().map(|row| match (row.state.as_str(), row.debited) {
        ("done", debited) => Finding::Debit { job: row.job, cost: row.cost, debited },
        _ => Finding::DebitWithoutEnd { job: row.job, state: row.state },
    });
    Ok(findings.collect())
}

/// Checks that each done job has one result unless it was deleted, and that no other job has any.
async fn results(pool: &PgPool, (first, last): Page) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"select j.id as "job: JobId", j.state = 'done' as "is_done!"
           from jobs j left join lateral (
               select id from results where job_id = j.id offset 0
           ) r on true
           where j.id > $1 and j.id <= $2
             and case when j.state = 'done' then r.id is null and j.result_deleted_at is null
                      else r.id is not null end
           order by j.id"#,
        first,
        last,
    )
    .fetch_all(pool)
    .await?;
    let findings = rows.into_iter().map(|row| {
        let job = row.job;
        if row.is_done { Finding::Result { job } } else { Finding::ResultWithoutEnd { job } }
    });
    Ok(findings.collect())
}

/// Checks that each fulfilled order has exactly one purchase entry, of its credits, and that its entries add up
/// to the credits that refunds and disputes left; no other order has entries. A payment that granted nothing is
/// resolved once an operator grants something for it with the reference `order-ID`. Leaves those with a wrong amount to
/// [`mismatches`].
async fn orders(pool: &PgPool, (first, last): Page) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"with due as (
               select o.id, o.user_id, o.status, o.fulfilled_at, u.deleted_at, o.credits as bought,
                      o.credits - (o.credits_reversed - o.credits_missing) as amount
               from orders o join users u on u.id = o.user_id
               where o.id > $1 and o.id <= $2
           )
           select d.id as "order: OrderId", d.deleted_at is not null as "owner_is_gone!",
                  d.fulfilled_at is null and d.status in ('paid', 'refunded', 'disputed') as "is_owed!",
                  case when d.fulfilled_at is null then 0 else d.amount::bigint end as "granted!",
                  coalesce(b.amount, 0) as "ledger!"
           from due d left join lateral (
               select order_id, sum(amount)::bigint as amount,
                      coalesce(sum(amount) filter (where kind = 'purchase'), 0)::bigint as bought,
                      bool_and(user_id = d.user_id) as is_owners
               from ledger where order_id = d.id group by order_id
           ) b on true
           where case when d.fulfilled_at is null
                      then b.order_id is not null or d.status = 'paid' and not exists (
                          select from ledger l where l.kind = 'admin' and l.reference = 'order-' || d.id)
                          and not exists (
                          select from payment_events p where p.order_id = d.id and p.outcome = 'mismatch')
                      else b.amount is distinct from d.amount or b.bought is distinct from d.bought
                           or not b.is_owners end
           order by d.id"#,
        first,
        last,
    )
    .fetch_all(pool)
    .await?;
    let findings = rows.into_iter().map(|row| {
        if row.is_owed && row.ledger == 0 {
            Finding::OrderNotGranted { order: row.order, owner_is_gone: row.owner_is_gone }
        } else {
            Finding::Order { order: row.order, granted: row.granted, ledger: row.ledger }
        }
    });
    Ok(findings.collect())
}

/// Finds payments with a wrong amount that were neither refunded nor resolved by an operator's grant.
async fn mismatches(pool: &PgPool, (first, last): Page) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query_scalar!(
        r#"select id as "order: OrderId" from orders o
           where id > $1 and id <= $2 and fulfilled_at is null and status not in ('refunded', 'disputed')
             and exists (select from payment_events where order_id = o.id and outcome = 'mismatch')
             and not exists (select from ledger l where l.kind = 'admin' and l.reference = 'order-' || o.id)
           order by id"#,
        first,
        last,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|order| Finding::OrderMismatch { order }).collect())
}

/// Finds orders whose payment granted credits and for which an operator did, too, unless the operator has recorded a
/// correction with the reference `order-ID-back`.
async fn granted_twice(pool: &PgPool, (first, last): Page) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query_scalar!(
        r#"select id as "order: OrderId" from orders o
           where id > $1 and id <= $2 and fulfilled_at is not null
             and exists (select from ledger l where l.kind = 'admin' and l.reference = 'order-' || o.id)
             and not exists (
                 select from ledger l where l.kind = 'admin' and l.reference = 'order-' || o.id || '-back')
           order by id"#,
        first,
        last,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|order| Finding::OrderGrantedTwice { order }).collect())
}

/// Checks that deleted accounts have nothing but ledger entries, paid jobs and orders. Accounts being erased are left
/// out for an hour.
async fn deleted_accounts(pool: &PgPool, (first, last): Page) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"select id as "user: UserId", concat_ws(' and ',
               case when credits <> 0 then credits || ' credits' end,
               case when exists (select from images where owner_id = users.id) then 'images' end,
               case when exists (select from results where owner_id = users.id) then 'results' end,
               case when exists (select from unfinished_deletions where user_id = users.id) then 'jobs' end,
               case when exists (select from api_keys where owner_id = users.id) then 'API keys' end,
               case when exists (select from orders where user_id = users.id and email is not null)
                    then 'email addresses in orders' end,
               case when exists (select from payment_events p join orders o on o.id = p.order_id
                                 where o.user_id = users.id and p.payload <> '')
                    then 'messages about payments' end) as "left!"
           from users
           where id > $1 and id <= $2 and deleted_at is not null
             and not exists (select from unfinished_deletions
                             where user_id = users.id and since > now() - make_interval(hours => $3))
           order by id"#,
        first,
        last,
        ERASURE_HOURS,
    )
    .fetch_all(pool)
    .await?;
    let rows = rows.into_iter().filter(|row| !row.left.is_empty());
    Ok(rows.map(|row| Finding::DeletedAccount { user: row.user, left: row.left }).collect())
}
