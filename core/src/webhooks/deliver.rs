//! Claims due deliveries and records their outcomes.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use retouch_catalog::{FixMode, Tier, ToolName};
use sqlx::PgPool;

use super::register::disable;
use super::{DeliveryProblem, DisabledReason, EventType};
use crate::{EventId, ImageId, JobId, ResultId, UserId, WebhookId, db};

/// The maximum number of attempts for a delivery.
pub const MAX_ATTEMPTS: i16 = 8;
/// A delivery older than this is not retried after a failure, so the backlog of a receiver that was down does not stay
/// forever. The retry delays add up to less.
const LONGEST_WAIT: Duration = Duration::from_hours(36);
/// A webhook is turned off once every attempt has failed for this long.
const HOPELESS_AFTER: Duration = Duration::from_hours(5 * 24);

/// Returns the time between the `attempts`-th attempt (from 1) and the next; `None` after the last. [`record`] varies it
/// by a fifth either way.
pub const fn retry_delay(attempts: i16) -> Option<Duration> {
    Some(match attempts {
        ..=1 => Duration::from_secs(5),
        2 => Duration::from_mins(5),
        3 => Duration::from_mins(30),
        4 => Duration::from_hours(2),
        5 => Duration::from_hours(5),
        6 | 7 => Duration::from_hours(8),
        MAX_ATTEMPTS.. => return None,
    })
}

/// Maximum delay that a receiver can ask for: the longest delay of [`retry_delay`].
const LONGEST_ASKED: Duration = Duration::from_hours(8);

/// Attempts that take longer are slow.
const SLOW_MS: i32 = 5000;

/// Which webhooks to send to. Slow and failing webhooks must not delay the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The last attempt succeeded within five seconds, or there was none.
    Fast,
    /// The last attempt failed or took longer, or the address is new since then.
    Slow,
}

/// How many deliveries of a lane a process may have in flight, and how many it has.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// How many more may start.
    pub free: i64,
    /// Maximum number at once for one webhook.
    pub per_webhook: i64,
    /// Maximum number at once for all webhooks of one owner.
    pub per_owner: i64,
    /// The number in flight, also of the other lane, by webhook.
    pub of_webhooks: &'a [(WebhookId, i64)],
    /// The number in flight by owner, those of webhooks that were deleted meanwhile included.
    pub of_owners: &'a [(UserId, i64)],
}

/// A secret that signs. `Debug` hides it.
#[derive(Clone)]
pub struct SigningSecret(pub Vec<u8>);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The job that a delivery is about.
#[derive(Clone, Debug)]
pub struct JobFacts {
    pub id: JobId,
    /// Its image; `None` after the deletion of the image.
    pub image: Option<ImageId>,
    /// Its result; `None` if it has none, or after the deletion of the result.
    pub result: Option<ResultId>,
    pub tool: ToolName,
    pub factor: Option<i16>,
    pub mode: Option<FixMode>,
    pub tier: Tier,
    /// The price in credits, which is charged only for a job that is done.
    pub cost: i32,
    /// Why it failed: the code, and the message for users.
    pub failure: Option<(String, String)>,
}

/// A claimed delivery.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The id of the event, the same for each attempt.
    pub id: EventId,
    pub webhook: WebhookId,
    pub owner: UserId,
    pub url: String,
    /// The valid secrets, the newest first.
    pub secrets: Vec<SigningSecret>,
    pub event: EventType,
    /// When it happened.
    pub created_at: DateTime<Utc>,
    /// The job that the event is about; `None` for other events, and after the deletion of the job.
    pub job: Option<JobFacts>,
    /// The credits of the account after it.
    pub balance: i32,
    /// The threshold of `credits.low`.
    pub credits_below: Option<i32>,
    /// The number of this attempt, from 1.
    pub attempt: i16,
    /// When the lease ends. Only its holder can record an outcome.
    lease_until: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub outcome: Outcome,
    pub status: Option<u16>,
    pub duration_ms: i32,
    /// How long the receiver asked to wait. The next attempt waits for [`retry_delay`] at least.
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver accepted it.
    Delivered,
    /// It failed; another attempt may succeed.
    Failed(DeliveryProblem),
    /// The receiver refuses further deliveries.
    Gone,
}

/// The state of a delivery after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The receiver has it.
    Delivered,
    /// Another attempt will follow.
    Waiting,
    /// That was the last attempt.
    Failed,
    /// It failed, and the webhook is now off.
    Disabled(DisabledReason),
    /// Another process claimed it, or the webhook was turned off or deleted.
    LeaseLost,
}

/// Claims the due deliveries to webhooks in `lane` for which there is room. Every webhook gets its first delivery before any
/// gets a second one.
///
/// A lease ends after `lease`; then any process can claim the delivery again.
pub async fn claim(
    pool: &PgPool,
    lane: Lane,
    room: Room<'_>,
    lease: Duration,
) -> sqlx::Result<Vec<Delivery>> {
    let (busy, in_flight): (Vec<_>, Vec<_>) =
        room.of_webhooks.iter().map(|(webhook, count)| (webhook.uuid(), *count)).unzip();
    let (owners, in_flight_of_owners): (Vec<_>, Vec<_>) =
        room.of_owners.iter().map(|(owner, count)| (owner.uuid(), *count)).unzip();
    let claimed = sqlx::query_as!(
        Claimed,
        // The candidates are all webhooks that have something due. Usually they are those of the few deliveries that are due.
        // If there are more than 500, most may be the backlog of one webhook. Then the recursion finds the candidates, with
        // one probe of the index for each webhook that has something waiting.
        //
        // The condition on `attempts` always holds; it is that of the index. `offset 0` makes Postgres look up each candidate
        // instead of reading all webhooks.
        r#"with recursive first_due as (
               select webhook_id from webhook_deliveries
               where state = 'waiting' and attempts >= 0 and due_at <= now() order by due_at limit 501
           ), waiting (webhook_id, due_at) as (
               (select webhook_id, due_at from webhook_deliveries
                where state = 'waiting' and (select count(*) from first_due) > 500
                order by webhook_id, due_at limit 1)
               union all
               select next.webhook_id, next.due_at
               from waiting cross join lateral (
                   select d.webhook_id, d.due_at from webhook_deliveries d
                   where d.state = 'waiting' and d.webhook_id > waiting.webhook_id
                   order by d.webhook_id, d.due_at limit 1
               ) next
           ), candidate as (
               select webhook_id from first_due
               union
               select webhook_id from waiting where due_at <= now()
           ), ready as (
               select first.webhook_id, first.id, first.place, first.due_at, w.owner_id,
                      row_number() over (partition by w.owner_id order by first.place, first.due_at) as place_of_owner
               from candidate
               cross join lateral (
                   select id, owner_id from webhooks
                   where id = candidate.webhook_id and is_enabled and (is_slow or failing_since is not null) = $1 offset 0
               ) w
               left join unnest($2::uuid[], $3::bigint[]) as busy (webhook_id, count) on busy.webhook_id = w.id
               cross join lateral (
                   select locked.*, row_number() over (order by locked.due_at) as place
                   from (
                       select d.webhook_id, d.id, d.due_at from webhook_deliveries d
                       where d.webhook_id = w.id and d.state = 'waiting' and d.due_at <= now()
                       order by d.due_at limit greatest($4 - coalesce(busy.count, 0), 0)
                       for update skip locked
                   ) locked
               ) first
           ), due as (
               select ready.webhook_id, ready.id
               from ready
               left join unnest($7::uuid[], $8::bigint[]) as busy (owner_id, count) on busy.owner_id = ready.owner_id
               where ready.place_of_owner <= $9 - coalesce(busy.count, 0)
               order by ready.place, ready.due_at limit $5
           ), claimed as (
               update webhook_deliveries d
               set attempts = d.attempts + 1, attempted_at = now(), due_at = now() + $6::interval,
                   lease_until = now() + $6::interval
               from due where d.webhook_id = due.webhook_id and d.id = due.id
               returning d.webhook_id, d.id, d.event, d.job_id, d.balance, d.credits_below, d.attempts, d.lease_until,
                         d.created_at
           )
           select c.id as "id: EventId", c.webhook_id as "webhook: WebhookId", c.event as "event: EventType", c.balance,
                  c.credits_below, c.attempts, c.lease_until as "lease_until!", c.created_at,
                  w.owner_id as "owner: UserId", w.url, w.secret,
                  case when w.old_secret_until > now() then w.old_secret end as old_secret,
                  j.id as "job?: JobId", j.image_id as "image?: ImageId", r.id as "result?: ResultId",
                  j.tool as "tool?: ToolName", j.factor as "factor?", j.mode as "mode?: FixMode",
                  j.tier as "tier?: Tier", j.cost as "cost?", j.failure_code as "failure_code?",
                  j.failure_detail as "failure_detail?"
           from claimed c
           join webhooks w on w.id = c.webhook_id
           left join jobs j on j.id = c.job_id
           left join results r on r.job_id = j.id"#,
        lane == Lane::Slow,
        &busy,
        &in_flight,
        room.per_webhook,
        room.free,
        db::interval(lease),
        &owners,
        &in_flight_of_owners,
        room.per_owner,
    )
    .fetch_all(pool)
    .await?;
    Ok(claimed.into_iter().map(Delivery::from).collect())
}

/// The row of a claimed delivery. The fields from `job` on are `None` without a job.
struct Claimed {
    id: EventId,
    webhook: WebhookId,
    event: EventType,
    balance: i32,
    credits_below: Option<i32>,
    attempts: i16,
    lease_until: DateTime<Utc>,
    created_at: DateTime<Utc>,
    owner: UserId,
    url: String,
    secret: Vec<u8>,
    old_secret: Option<Vec<u8>>,
    job: Option<JobId>,
    image: Option<ImageId>,
    result: Option<ResultId>,
    tool: Option<ToolName>,
    factor: Option<i16>,
    mode: Option<FixMode>,
    tier: Option<Tier>,
    cost: Option<i32>,
    failure_code: Option<String>,
    failure_detail: Option<String>,
}

impl From<Claimed> for Delivery {
    fn from(row: Claimed) -> Self {
        let secrets = [Some(row.secret), row.old_secret];
        let job = match (row.job, row.tool, row.tier, row.cost) {
            (Some(id), Some(tool), Some(tier), Some(cost)) => Some(JobFacts {
                id,
                image: row.image,
                result: row.result,
                tool,
                factor: row.factor,
                mode: row.mode,
                tier,
                cost,
                failure: row
                    .failure_code
                    .map(|code| (code, row.failure_detail.unwrap_or_default())),
            }),
            _ => None,
        };
        Self {
            id: row.id,
            webhook: row.webhook,
            owner: row.owner,
            url: row.url,
            secrets: secrets.into_iter().flatten().map(SigningSecret).collect(),
            event: row.event,
            created_at: row.created_at,
            job,
            balance: row.balance,
            credits_below: row.credits_below,
            attempt: row.attempts,
            lease_until: row.lease_until,
        }
    }
}

/// Records the outcome of an attempt, unless the lease was lost.
pub async fn record(
    pool: &PgPool,
    delivery: &Delivery,
    attempt: Attempt,
) -> sqlx::Result<Recorded> {
    match attempt.outcome {
        Outcome::Delivered => record_success(pool, delivery, attempt).await,
        Outcome::Gone => record_failure(pool, delivery, attempt, DeliveryProblem::Status).await,
        Outcome::Failed(problem) => record_failure(pool, delivery, attempt, problem).await,
    }
}

async fn record_success(
    pool: &PgPool,
    delivery: &Delivery,
    attempt: Attempt,
) -> sqlx::Result<Recorded> {
    let recorded = sqlx::query!(
        "update webhook_deliveries
         set state = 'delivered', lease_until = null, problem = null, status = $4, duration_ms = $5
         where webhook_id = $1 and id = $2 and lease_until = $3",
        delivery.webhook.uuid(),
        delivery.id.uuid(),
        delivery.lease_until,
        attempt.status.map(u16::cast_signed),
        attempt.duration_ms,
    )
    .execute(pool)
    .await?;
    if recorded.rows_affected() == 0 {
        return Ok(Recorded::LeaseLost);
    }
    sqlx::query!(
        "update webhooks set failing_since = null, is_slow = $2
         where id = $1 and url = $3 and (failing_since is not null or is_slow <> $2)",
        delivery.webhook.uuid(),
        attempt.duration_ms > SLOW_MS,
        delivery.url,
    )
    .execute(pool)
    .await?;
    Ok(Recorded::Delivered)
}

async fn record_failure(
    pool: &PgPool,
    delivery: &Delivery,
    attempt: Attempt,
    problem: DeliveryProblem,
) -> sqlx::Result<Recorded> {
    let mut tx = db::begin(pool).await?;
    let webhook = sqlx::query!(
        r#"select url, coalesce(failing_since < now() - $2::interval, false) as "is_hopeless!"
           from webhooks where id = $1 for update"#,
        delivery.webhook.uuid(),
        db::interval(HOPELESS_AFTER),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(webhook) = webhook else { return Ok(Recorded::LeaseLost) };
    let is_test = delivery.event == EventType::Test;
    // The statement below shortens the delay by up to a fifth, but no attempt may come before the receiver wants it.
    let asked = attempt.retry_after.map(|asked| asked.min(LONGEST_ASKED) * 5 / 4);
    let delay = retry_delay(delivery.attempt).filter(|_| !is_test);
    let delay = delay.map(|own| own.max(asked.unwrap_or_default()));
    let is_last = sqlx::query_scalar!(
        r#"update webhook_deliveries
           set state = case when $6::interval is null or waiting_since < now() - $7::interval then 'failed' else 'waiting' end,
               due_at = now() + coalesce($6, '0') * (0.8 + random() * 0.4), lease_until = null, status = $4,
               duration_ms = $5, problem = $8
           where webhook_id = $1 and id = $2 and lease_until = $3
           returning state = 'failed' as "is_last!""#,
        delivery.webhook.uuid(),
        delivery.id.uuid(),
        delivery.lease_until,
        attempt.status.map(u16::cast_signed),
        attempt.duration_ms,
        delay.map(db::interval),
        db::interval(LONGEST_WAIT),
        problem.as_str(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(is_last) = is_last else { return Ok(Recorded::LeaseLost) };
    // The owner may have changed the address during the attempt.
    let is_present = webhook.url == delivery.url;
    if is_present {
        // A failed test does not start the period after which a webhook is turned off.
        sqlx::query!(
            "update webhooks
             set is_slow = true, failing_since = case when $2 then failing_since else coalesce(failing_since, now()) end
             where id = $1",
            delivery.webhook.uuid(),
            is_test,
        )
        .execute(&mut *tx)
        .await?;
    }
    let reason = match attempt.outcome {
        _ if !is_present => None,
        Outcome::Gone => Some(DisabledReason::Gone),
        // A single failed attempt after days without events does not count: a delivery must have failed for good.
        _ if webhook.is_hopeless && is_last && !is_test => Some(DisabledReason::Failing),
        _ => None,
    };
    if let Some(reason) = reason {
        disable(&mut tx, delivery.webhook, reason).await?;
    }
    tx.commit().await?;
    Ok(match reason {
        Some(reason) => Recorded::Disabled(reason),
        None if is_last => Recorded::Failed,
        None => Recorded::Waiting,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attempts_take_about_a_day_and_end_before_the_longest_wait() {
        let delays: Vec<_> = (1..).map_while(retry_delay).collect();
        assert_eq!(delays.len(), MAX_ATTEMPTS as usize - 1);
        assert_eq!(delays.last(), Some(&LONGEST_ASKED));
        let all: Duration = delays.iter().sum();
        assert!(all > Duration::from_hours(20) && all * 12 / 10 < LONGEST_WAIT, "{all:?}");
    }
}
