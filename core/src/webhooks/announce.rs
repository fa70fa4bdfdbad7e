//! Records the events for webhooks, in the transaction of the event.
//!
//! `credits/debit.rs` does the same for jobs that are done, inside its one statement.

use sqlx::PgConnection;

use crate::{EventId, JobId, UserId};

/// Announces the end of jobs that failed or were canceled.
pub(crate) async fn announce_ended(conn: &mut PgConnection, jobs: &[JobId]) -> sqlx::Result<()> {
    let jobs: Vec<_> = jobs.iter().map(|job| job.uuid()).collect();
    let events: Vec<_> = jobs.iter().map(|_| EventId::new().uuid()).collect();
    sqlx::query!(
        "insert into webhook_deliveries (webhook_id, id, event, job_id, balance)
         select w.id, ended.event_id, ended.event, ended.job_id, u.credits
         from (
             select pairs.event_id, pairs.job_id, j.owner_id,
                    case j.state when 'failed' then 'job.failed' when 'cancelled' then 'job.canceled' end as event
             from unnest($1::uuid[], $2::uuid[]) as pairs (job_id, event_id) join jobs j on j.id = pairs.job_id
         ) ended
         join webhooks w on w.owner_id = ended.owner_id and w.is_enabled and ended.event = any (w.events)
         join users u on u.id = w.owner_id",
        &jobs,
        &events,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Announces that `user`, whose row is locked, has few credits left, if removing `taken` credits just took the balance
/// below the threshold. A balance that was already below it is not announced again.
pub(crate) async fn announce_low(
    conn: &mut PgConnection,
    user: UserId,
    taken: i32,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into webhook_deliveries (webhook_id, id, event, balance, credits_below)
         select w.id, $2, 'credits.low', u.credits, w.credits_below
         from users u join webhooks w on w.owner_id = u.id and w.is_enabled
         where u.id = $1 and 'credits.low' = any (w.events)
           and u.credits < w.credits_below and u.credits + $3 >= w.credits_below",
        user.uuid(),
        EventId::new().uuid(),
        taken,
    )
    .execute(conn)
    .await
    .map(drop)
}
