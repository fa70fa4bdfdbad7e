//! Recomputing what must always be true: balances, holds, debits, orders, and the objects behind the rows.
//!
//! The database's own constraints keep most of it; an audit is for what they cannot say, and for whoever has
//! to trust them. Each check is one statement and so sees one moment: an audit can run while everybody works.

mod objects;

use std::fmt;

use serde::Serialize;
use sqlx::PgPool;

use crate::credits::{self, Discrepancy};
use crate::{JobId, OrderId, UserId};

pub use objects::{Compared, objects, objects_in_pages};

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// A balance is not the sum of its ledger.
    Balance {
        /// Whose.
        user: UserId,
        /// What the user's row says.
        credits: i32,
        /// What the ledger sums up to.
        ledger: i64,
    },
    /// What is held is not what the active jobs cost.
    Hold {
        /// Whose.
        user: UserId,
        /// What the user's row says.
        reserved: i32,
        /// What the active jobs cost.
        held: i64,
    },
    /// A paid job is done, and its price was not debited from its owner.
    Debit {
        /// The job.
        job: JobId,
        /// What it costs.
        cost: i32,
        /// What was debited, if anything.
        debited: Option<i32>,
    },
    /// A job was paid for that is not done.
    DebitWithoutEnd {
        /// The job.
        job: JobId,
        /// Where it is.
        state: String,
    },
    /// A job is done, and nobody deleted its result, but there is none.
    Result {
        /// The job.
        job: JobId,
    },
    /// A job that is not done has a result.
    ResultWithoutEnd {
        /// The job.
        job: JobId,
    },
    /// An order's credits in the ledger are not what was granted and taken back.
    Order {
        /// The order.
        order: OrderId,
        /// What the order's row says was granted.
        granted: i64,
        /// What the ledger says of it.
        ledger: i64,
    },
    /// An order was paid, and its credits were not granted: grant them, or give the money back.
    OrderNotGranted {
        /// The order.
        order: OrderId,
        /// Whether that is because the account was deleted before the payment came.
        owner_is_gone: bool,
    },
    /// Something else was paid than the order costs, so that nothing was granted: give the money back.
    OrderMismatch {
        /// The order.
        order: OrderId,
    },
    /// An account was deleted, but something of it is left.
    DeletedAccount {
        /// Whose.
        user: UserId,
        /// What is left.
        left: String,
    },
    /// A row names an object that is not in the bucket.
    MissingObject {
        /// The object's key.
        key: String,
    },
    /// An object that no row names, and that is too old to be under way.
    UnknownObject {
        /// The object's key.
        key: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Balance { user, credits, ledger } => {
                write!(f, "user {user} owns {credits} credits, but the ledger sums up to {ledger}")
            }
            Self::Hold { user, reserved, held } => {
                write!(
                    f,
                    "user {user} has {reserved} credits held, but their active jobs cost {held}"
                )
            }
            Self::Debit { job, cost, debited: None } => {
                write!(f, "job {job} is done and was not debited; it costs {cost}")
            }
            Self::Debit { job, cost, debited: Some(debited) } => {
                write!(
                    f,
                    "job {job} costs {cost}, but {debited} were debited, or not from its owner"
                )
            }
            Self::DebitWithoutEnd { job, state } => {
                write!(f, "job {job} was debited, but it is {state}")
            }
            Self::Result { job } => {
                write!(f, "job {job} is done, but its result is neither there nor deleted")
            }
            Self::ResultWithoutEnd { job } => write!(f, "job {job} has a result but is not done"),
            Self::Order { order, granted, ledger } => {
                write!(f, "order {order} granted {granted} credits, but the ledger says {ledger}")
            }
            Self::OrderNotGranted { order, owner_is_gone: false } => {
                write!(f, "order {order} was paid, but its credits were not granted")
            }
            Self::OrderNotGranted { order, owner_is_gone: true } => {
                write!(
                    f,
                    "order {order} was paid after its account was deleted: give the money back"
                )
            }
            Self::OrderMismatch { order } => {
                write!(
                    f,
                    "order {order} was paid with another amount than it costs: give the money back"
                )
            }
            Self::DeletedAccount { user, left } => {
                write!(f, "user {user} deleted their account, but {left} left")
            }
            Self::MissingObject { key } => write!(f, "object {key} is missing from the bucket"),
            Self::UnknownObject { key } => write!(f, "object {key} belongs to no row"),
        }
    }
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
    findings.extend(debits(pool).await?);
    findings.extend(results(pool).await?);
    findings.extend(orders(pool).await?);
    findings.extend(mismatches(pool).await?);
    findings.extend(deleted_accounts(pool).await?);
    Ok(findings)
}

/// Each paid job that is done has exactly one debit, of its price and from its owner; no other has one.
async fn debits(pool: &PgPool) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"select j.id as "job: JobId", j.state, j.cost, -l.amount as debited
           from jobs j left join ledger l on l.job_id = j.id
           where case when j.state = 'done' and j.cost > 0
                      then l.id is null or l.amount <> -j.cost or l.user_id <> j.owner_id
                      else l.id is not null end
           order by j.id"#,
    )
    .fetch_all(pool)
    .await?;
    let findings = rows.into_iter().map(|row| match (row.state.as_str(), row.debited) {
        ("done", debited) => Finding::Debit { job: row.job, cost: row.cost, debited },
        _ => Finding::DebitWithoutEnd { job: row.job, state: row.state },
    });
    Ok(findings.collect())
}

/// Each job that is done has its one result, unless somebody deleted that; no other has one.
async fn results(pool: &PgPool) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"select j.id as "job: JobId", j.state = 'done' as "is_done!"
           from jobs j left join results r on r.job_id = j.id
           where case when j.state = 'done' then r.id is null and j.result_deleted_at is null
                      else r.id is not null end
           order by j.id"#,
    )
    .fetch_all(pool)
    .await?;
    let findings = rows.into_iter().map(|row| {
        let job = row.job;
        if row.is_done { Finding::Result { job } } else { Finding::ResultWithoutEnd { job } }
    });
    Ok(findings.collect())
}

/// Each order that was fulfilled has exactly one purchase in the ledger, of its credits, and in all what
/// refunds and disputes left of them; no other order has anything there. A payment that could grant nothing is
/// dealt with once an operator has granted something for it, with the reference `order-ID`.
async fn orders(pool: &PgPool) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"with booked as (
               select order_id, sum(amount)::bigint as amount,
                      coalesce(sum(amount) filter (where kind = 'purchase'), 0)::bigint as bought,
                      bool_and(l.user_id = o.user_id) as is_owners
               from ledger l join orders o on o.id = l.order_id group by order_id
           ), due as (
               select o.id, o.status, o.fulfilled_at, u.deleted_at, o.credits as bought,
                      o.credits - (o.credits_reversed - o.credits_missing) as amount
               from orders o join users u on u.id = o.user_id
           )
           select d.id as "order: OrderId", d.deleted_at is not null as "owner_is_gone!",
                  d.fulfilled_at is null and d.status in ('paid', 'refunded', 'disputed') as "is_owed!",
                  case when d.fulfilled_at is null then 0 else d.amount::bigint end as "granted!",
                  coalesce(b.amount, 0) as "ledger!"
           from due d left join booked b on b.order_id = d.id
           where case when d.fulfilled_at is null
                      then b.order_id is not null or d.status = 'paid' and not exists (
                          select from ledger l where l.kind = 'admin' and l.reference = 'order-' || d.id)
                      else b.amount is distinct from d.amount or b.bought is distinct from d.bought
                           or not b.is_owners end
           order by d.id"#,
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

/// No money was kept for which nothing was granted, by itself or by an operator's hand.
async fn mismatches(pool: &PgPool) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query_scalar!(
        r#"select id as "order: OrderId" from orders o
           where fulfilled_at is null and status not in ('refunded', 'disputed')
             and exists (select from payment_events where order_id = o.id and outcome = 'mismatch')
             and not exists (select from ledger l where l.kind = 'admin' and l.reference = 'order-' || o.id)
           order by id"#,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|order| Finding::OrderMismatch { order }).collect())
}

/// Nothing but the books is left of a deleted account.
async fn deleted_accounts(pool: &PgPool) -> sqlx::Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"select id as "user: UserId", concat_ws(' and ',
               case when credits <> 0 then credits || ' credits are' end,
               case when exists (select from images where owner_id = users.id) then 'pictures are' end,
               case when exists (select from results where owner_id = users.id) then 'results are' end,
               case when exists (select from api_keys where owner_id = users.id) then 'keys are' end,
               case when exists (select from orders where user_id = users.id and email is not null)
                    then 'addresses in orders are' end) as "left!"
           from users where deleted_at is not null order by id"#,
    )
    .fetch_all(pool)
    .await?;
    let rows = rows.into_iter().filter(|row| !row.left.is_empty());
    Ok(rows.map(|row| Finding::DeletedAccount { user: row.user, left: row.left }).collect())
}
