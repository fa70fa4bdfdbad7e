//! Deletes old deliveries and old secrets.

use sqlx::PgPool;
use uuid::Uuid;

/// How long deliveries are kept.
pub const DELIVERY_DAYS: i32 = 14;
/// Maximum number of deliveries kept per webhook, not counting waiting ones.
pub const DELIVERIES_KEPT: i64 = 1000;
/// Deliveries that one statement deletes.
const BATCH: i64 = 5000;

/// Deletes deliveries that are too old, too many, or whose webhook is gone, and secrets that no longer sign. Returns the
/// number of deliveries.
pub async fn delete_old(pool: &PgPool) -> sqlx::Result<u64> {
    sqlx::query!(
        "update webhooks set old_secret = null, old_secret_until = null where old_secret_until < now()"
    )
    .execute(pool)
    .await?;
    let (mut deleted, mut webhook) = (0, None);
    // One webhook at a time, because a statement over all deliveries can run into its timeout.
    while let Some(next) = webhook_after(pool, webhook).await? {
        loop {
            let batch = delete_some(pool, next).await?;
            deleted += batch;
            if batch < BATCH.unsigned_abs() {
                break;
            }
        }
        webhook = Some(next);
    }
    Ok(deleted)
}

/// Returns the next webhook that has deliveries.
async fn webhook_after(pool: &PgPool, webhook: Option<Uuid>) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select webhook_id from webhook_deliveries where webhook_id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid)
         order by webhook_id limit 1",
        webhook,
    )
    .fetch_optional(pool)
    .await
}

/// Deletes up to [`BATCH`] deliveries of a webhook. Returns their number.
async fn delete_some(pool: &PgPool, webhook: Uuid) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from webhook_deliveries d using (
             select id from webhook_deliveries
             where webhook_id = $1
               and (created_at < now() - make_interval(days => $2)
                    or not exists (select from webhooks where id = $1)
                    or state <> 'waiting' and id <= (
                        select id from webhook_deliveries where webhook_id = $1 and state <> 'waiting'
                        order by id desc offset $3 limit 1
                    ))
             limit $4
         ) old
         where d.webhook_id = $1 and d.id = old.id",
        webhook,
        DELIVERY_DAYS,
        DELIVERIES_KEPT,
        BATCH,
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}
