//! The last deliveries of a webhook, as its owner sees them, and sending one again.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use super::{DeliveryProblem, DeliveryState, EventType};
use crate::{EventId, JobId, UserId, WebhookId, db};

#[derive(Clone, Debug)]
pub struct PastDelivery {
    pub id: EventId,
    pub event: EventType,
    /// The job that the event is about.
    pub job: Option<JobId>,
    pub state: DeliveryState,
    pub attempts: i16,
    /// When the last attempt began.
    pub attempted_at: Option<DateTime<Utc>>,
    /// The status of the last response.
    pub status: Option<i16>,
    pub problem: Option<DeliveryProblem>,
    /// How long the last attempt took, in milliseconds.
    pub duration_ms: Option<i32>,
    /// When the next attempt starts; `None` unless the delivery is waiting.
    pub next_at: Option<DateTime<Utc>>,
    /// When it happened.
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("Webhook not found")]
    NoSuchWebhook,
    /// The webhook has no such delivery, or it is no longer kept.
    #[error("Delivery not found")]
    NoSuchDelivery,
    #[error("This webhook is off. Turn it on first.")]
    Off,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Returns up to `limit` deliveries of `webhook` that happened before `before`, the newest first. The caller has checked
/// the owner.
pub async fn deliveries(
    pool: &PgPool,
    webhook: WebhookId,
    before: Option<EventId>,
    limit: i64,
) -> sqlx::Result<Vec<PastDelivery>> {
    sqlx::query_as!(
        PastDelivery,
        r#"select id as "id: EventId", event as "event: EventType", job_id as "job: JobId",
                  state as "state: DeliveryState", attempts, attempted_at, status,
                  problem as "problem: DeliveryProblem", duration_ms,
                  case when state = 'waiting' then due_at end as next_at, created_at
           from webhook_deliveries
           where webhook_id = $1 and id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
           order by id desc limit $3"#,
        webhook.uuid(),
        before.map(EventId::uuid),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Sends a delivery again, with the same id and as many attempts as a new one. Does nothing if it is being sent.
pub async fn send_again(
    pool: &PgPool,
    owner: UserId,
    webhook: WebhookId,
    id: EventId,
) -> Result<(), SendError> {
    let mut tx = db::begin(pool).await?;
    let is_enabled = lock(&mut tx, owner, webhook).await?;
    let found = sqlx::query!(
        "select id from webhook_deliveries where webhook_id = $1 and id = $2 for update",
        webhook.uuid(),
        id.uuid(),
    );
    if found.fetch_optional(&mut *tx).await?.is_none() {
        return Err(SendError::NoSuchDelivery);
    }
    if !is_enabled {
        return Err(SendError::Off);
    }
    sqlx::query!(
        "update webhook_deliveries
         set state = 'waiting', attempts = 0, waiting_since = now(), due_at = now(), lease_until = null
         where webhook_id = $1 and id = $2 and coalesce(lease_until < now(), true)",
        webhook.uuid(),
        id.uuid(),
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

/// Sends a test event and returns its id.
pub async fn send_test(
    pool: &PgPool,
    owner: UserId,
    webhook: WebhookId,
) -> Result<EventId, SendError> {
    let mut tx = db::begin(pool).await?;
    if !lock(&mut tx, owner, webhook).await? {
        return Err(SendError::Off);
    }
    let id = EventId::new();
    sqlx::query!(
        "insert into webhook_deliveries (webhook_id, id, event, balance)
         select $1, $2, 'webhook.test', credits from users where id = $3",
        webhook.uuid(),
        id.uuid(),
        owner.uuid(),
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(id)
}

/// Locks the row of a webhook, and returns whether it is on.
async fn lock(
    conn: &mut PgConnection,
    owner: UserId,
    webhook: WebhookId,
) -> Result<bool, SendError> {
    let is_enabled = sqlx::query_scalar!(
        "select is_enabled from webhooks where id = $1 and owner_id = $2 for update",
        webhook.uuid(),
        owner.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    is_enabled.ok_or(SendError::NoSuchWebhook)
}
