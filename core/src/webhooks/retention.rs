//! Deleting old deliveries and old secrets.

use sqlx::PgPool;

/// How long deliveries are kept.
pub const DELIVERY_DAYS: i32 = 14;
/// The most deliveries that are kept of a webhook, not counting those that wait.
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
    let mut deleted = 0;
    loop {
        let batch = sqlx::query!(
            "delete from webhook_deliveries d using (
                 select webhook_id, id from (
                     select webhook_id, id, state, created_at,
                            row_number() over (partition by webhook_id, state = 'waiting' order by id desc) as place
                     from webhook_deliveries
                 ) placed
                 where created_at < now() - make_interval(days => $1) or (state <> 'waiting' and place > $2)
                    or not exists (select from webhooks w where w.id = placed.webhook_id)
                 limit $3
             ) old
             where d.webhook_id = old.webhook_id and d.id = old.id",
            DELIVERY_DAYS,
            DELIVERIES_KEPT,
            BATCH,
        )
        .execute(pool)
        .await?;
        deleted += batch.rows_affected();
        if batch.rows_affected() < BATCH.unsigned_abs() {
            return Ok(deleted);
        }
    }
}
