//! Everything stored about a person, in pages, so that exporting an account of any size needs little memory.
//!
//! Each page starts after the last row of the page before, found in an index. Ids and times ascend, so rows added
//! meanwhile appear at the end, and no row appears twice.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use crate::images::{Cursor, Image};
use crate::results::ResultImage;
use crate::{ImageId, JobId, OrderId, ResultId, UserId};
use retouch_catalog::{FixMode, Tier, ToolName};

/// Returns the next `limit` images of `user`, the oldest first.
pub async fn images_after(
    pool: &PgPool,
    user: UserId,
    after: Option<Cursor>,
    limit: i64,
) -> sqlx::Result<Vec<Image>> {
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.name, i.object_key, i.thumbnail_key,
                  i.preview_key, i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  i.made_from_tool as "made_from_tool: ToolName", i.made_from_result as "made_from_result: ResultId",
                  i.made_from_image as "made_from_image: ImageId",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $4)
                      as "free_remove_background_used!",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $5)
                      as "free_upscale_used!"
           from images i
           where i.owner_id = $1 and (i.created_at, i.id) > (coalesce($2, '-infinity'::timestamptz), $3)
             and coalesce(i.expires_at > now(), true)
           order by i.created_at, i.id limit $6"#,
        user.uuid(),
        after.map(|after| after.created_at),
        after.map(|after| after.id.uuid()),
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Returns the next `limit` results of `user`, the oldest first.
pub async fn results_after(
    pool: &PgPool,
    user: UserId,
    after: Option<ResultId>,
    limit: i64,
) -> sqlx::Result<Vec<ResultImage>> {
    sqlx::query_as!(
        ResultImage,
        r#"select r.id as "id: ResultId", r.job_id as "job: JobId", r.image_id as "image: ImageId",
                  r.owner_id as "owner: UserId", r.tool as "tool: ToolName", r.factor,
                  r.mode as "mode: FixMode", r.prompt, r.is_demo, r.source, r.object_key, r.thumbnail_key, r.preview_key, r.size_bytes,
                  r.width, r.height, r.model, r.model_sha256, r.device, r.duration_ms, r.created_at,
                  j.tier as "tier: Tier", j.cost as credits
           from results r join jobs j on j.id = r.job_id
           where r.owner_id = $1 and r.id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
           order by r.id limit $3"#,
        user.uuid(),
        after.map(ResultId::uuid),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Returns the ids of the next `limit` jobs of `user`, the oldest first.
pub async fn jobs_after(
    pool: &PgPool,
    user: UserId,
    after: Option<JobId>,
    limit: i64,
) -> sqlx::Result<Vec<JobId>> {
    sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where owner_id = $1 and id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
           order by id limit $3"#,
        user.uuid(),
        after.map(JobId::uuid),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// A message of the payment provider about an order, as it is stored.
#[derive(Clone, Debug)]
pub struct PaymentMessage {
    /// The provider's id.
    pub id: String,
    /// The provider's event type.
    pub kind: String,
    pub order: OrderId,
    /// The body as received; empty if there was none.
    pub payload: String,
    pub received_at: DateTime<Utc>,
}

/// Returns the next `limit` messages about orders of `user`, the oldest first. `after` is the time and the id of the last.
pub async fn payment_messages_after(
    pool: &PgPool,
    user: UserId,
    after: Option<(DateTime<Utc>, String)>,
    limit: i64,
) -> sqlx::Result<Vec<PaymentMessage>> {
    let (received_at, id) = after.unzip();
    sqlx::query_as!(
        PaymentMessage,
        r#"select p.id, p.kind, p.order_id as "order!: OrderId", p.payload, p.received_at
           from payment_events p join orders o on o.id = p.order_id
           where o.user_id = $1 and (p.received_at, p.id) > (coalesce($2, '-infinity'::timestamptz), coalesce($3, ''))
           order by p.received_at, p.id limit $4"#,
        user.uuid(),
        received_at,
        id,
        limit,
    )
    .fetch_all(pool)
    .await
}
