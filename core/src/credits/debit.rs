//! The debit: one statement that finishes a job, takes its price from the balance, and writes the deliveries
//! to webhooks.

use sqlx::PgPool;

use crate::results::NewResult;
use crate::{Attempt, EventId};

/// Marks the job done, records the result, releases the hold and debits the price: all of it or nothing.
/// Returns false if the attempt no longer holds the lease.
///
/// One statement instead of a transaction: a crash cannot separate the parts, and the payer's lock is not held
/// over several round trips. The lease is the fence: only the attempt that holds it can finish the job, and
/// only once. Two constraints back it up: a second debit or a second result of the same job is an error.
pub(crate) async fn finish_and_debit(
    pool: &PgPool,
    Attempt { job, worker, number }: Attempt,
    made: &NewResult,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        // The payer is locked before the job, as everywhere that a job ends. If someone canceled the job while
        // this waited for that lock, the hold is already released and the job is no longer running. The ledger's
        // own trigger runs after all of this and lowers `users.credits`.
        r#"with payer as (
               select u.id, u.credits from users u join jobs j on j.owner_id = u.id where j.id = $2 for update of u
           ), ended as (
               update jobs set state = 'done', finished_at = now(), lease_owner = null, lease_until = null
               where id = $2 and state = 'running' and lease_owner = $1 and attempt = $18
                 and (owner_id is null or exists (select from payer))
               returning id, image_id, owner_id, tool, factor, mode, prompt, cost
           ), recorded as (
               insert into results (id, job_id, image_id, owner_id, tool, factor, object_key, thumbnail_key,
                                    size_bytes, width, height, model, model_sha256, device, duration_ms,
                                    is_demo, preview_key, source, mode, prompt)
               select $3, id, image_id, owner_id, tool, factor, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                      $15, mode, prompt
               from ended
           ), kept as (
               -- A picture that expires stays for an hour after its last result: work continues from either.
               update images i set expires_at = greatest(i.expires_at, now() + interval '1 hour') from ended
               where i.id = ended.image_id and i.expires_at is not null
           ), unmasked as (
               -- A mask is useless once its job has ended.
               delete from masks where job_id in (select id from ended where tool = 'magic-fix')
           ), released as (
               update users u set reserved = reserved - ended.cost from ended
               where u.id = ended.owner_id and ended.cost > 0
           ), debited as (
               insert into ledger (user_id, kind, amount, job_id)
               select owner_id, 'job', -cost, id from ended where cost > 0
           ), told as (
               -- Without webhooks, this is one look into an index. The payer's row is locked, so debits of one balance
               -- follow one another, and exactly one of them crosses a threshold.
               insert into webhook_deliveries (webhook_id, id, event, job_id, balance, credits_below)
               select w.id, events.id, events.event, events.job_id, payer.credits - ended.cost, events.credits_below
               from ended
               join payer on payer.id = ended.owner_id
               join webhooks w on w.owner_id = payer.id and w.is_enabled
               cross join lateral (
                   values ($16::uuid, 'job.done', ended.id, null::integer, true),
                          ($17::uuid, 'credits.low', null, w.credits_below,
                           payer.credits >= w.credits_below and payer.credits - ended.cost < w.credits_below)
               ) as events (id, event, job_id, credits_below, has_happened)
               where events.has_happened and events.event = any (w.events)
           )
           select exists (select from ended) as "ended!""#,
        worker.uuid(),
        job.uuid(),
        made.id.uuid(),
        made.object_key,
        made.thumbnail_key,
        made.size_bytes,
        made.width,
        made.height,
        made.model,
        made.model_sha256,
        made.device,
        made.duration_ms,
        made.is_demo,
        made.preview_key,
        made.source,
        EventId::new().uuid(),
        EventId::new().uuid(),
        number,
    )
    .fetch_one(pool)
    .await
}
