//! Everything stored about a person, in pages, so that exporting an account of any size needs little memory.
//!
//! Each page starts after the last row of the page before, found in an index. Ids and times ascend, so rows added
//! meanwhile come at the end and no row comes twice.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

use crate::images::{Cursor, Image};
use crate::results::ResultImage;
use crate::{ImageId, JobId, OrderId, ResultId, UserId};
use retouch_catalog::{FixMode, Tier, ToolName};

/// A user's own row.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Their id.
    pub id: UserId,
    /// The identity provider.
    pub issuer: String,
    /// The provider's id of the person.
    pub subject: String,
    /// Their email address.
    pub email: Option<String>,
    /// The balance in credits, including holds.
    pub credits: i32,
    /// The credits held for active jobs.
    pub reserved: i32,
    /// The time of the first sign-in.
    pub created_at: DateTime<Utc>,
}

/// Returns the profile of `user`; `None` if the account does not exist or was deleted.
pub async fn profile(pool: &PgPool, user: UserId) -> sqlx::Result<Option<Profile>> {
    sqlx::query_as!(
        Profile,
        r#"select id as "id: UserId", issuer, subject, email, credits, reserved, created_at
           from users where id = $1 and deleted_at is null"#,
        user.uuid(),
    )
    .fetch_optional(pool)
    .await
}

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

/// Why a balance changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum LedgerKind {
    /// The free credits of a new user.
    SignupGrant,
    /// A pack was paid for.
    Purchase,
    /// The debit of a finished job.
    Job,
    /// Money of an order was refunded.
    Refund,
    /// The payer's bank withdrew the money of an order, or returned it.
    Dispute,
    /// An operator's adjustment.
    Admin,
    /// The credits that remained when the account was deleted.
    Forfeit,
}

impl LedgerKind {
    /// Returns its name in the database and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SignupGrant => "signup_grant",
            Self::Purchase => "purchase",
            Self::Job => "job",
            Self::Refund => "refund",
            Self::Dispute => "dispute",
            Self::Admin => "admin",
            Self::Forfeit => "forfeit",
        }
    }
}

/// One change of a balance.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerEntry {
    /// Its number, ascending over time.
    pub id: i64,
    /// The reason.
    pub kind: LedgerKind,
    /// The change in credits.
    pub amount: i32,
    /// The job it pays for.
    pub job: Option<JobId>,
    /// The order it belongs to.
    pub order: Option<OrderId>,
    /// The reference of an operator's adjustment.
    pub reference: Option<String>,
    /// The operator's note.
    pub note: Option<String>,
    /// The time of the change.
    pub created_at: DateTime<Utc>,
}

/// Returns the next `limit` ledger entries of `user`, the oldest first.
pub async fn ledger_after(
    pool: &PgPool,
    user: UserId,
    after: i64,
    limit: i64,
) -> sqlx::Result<Vec<LedgerEntry>> {
    sqlx::query_as!(
        LedgerEntry,
        r#"select id, kind as "kind: LedgerKind", amount, job_id as "job: JobId",
                  order_id as "order: OrderId", reference, note, created_at
           from ledger where user_id = $1 and id > $2 order by id limit $3"#,
        user.uuid(),
        after,
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Returns the last `limit` ledger entries of `user`, the newest first.
pub async fn recent_ledger(
    pool: &PgPool,
    user: UserId,
    limit: i64,
) -> sqlx::Result<Vec<LedgerEntry>> {
    sqlx::query_as!(
        LedgerEntry,
        r#"select id, kind as "kind: LedgerKind", amount, job_id as "job: JobId",
                  order_id as "order: OrderId", reference, note, created_at
           from ledger where user_id = $1 order by id desc limit $2"#,
        user.uuid(),
        limit,
    )
    .fetch_all(pool)
    .await
}
