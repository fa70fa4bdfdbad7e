//! All that is kept of a person, a page at a time: an account of any size is handed out in little memory.
//!
//! Each page begins after the last id of the one before. Ids are made in the order of time, so that what is
//! added meanwhile comes at the end and nothing comes twice.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

use crate::images::Image;
use crate::jobs::{self, Job};
use crate::results::ResultImage;
use crate::{ImageId, JobId, OrderId, ResultId, UserId};
use retouch_catalog::{FixMode, Tier, ToolName};

/// The person.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Their id with us.
    pub id: UserId,
    /// Who signs them in.
    pub issuer: String,
    /// What that provider calls them.
    pub subject: String,
    /// Their address.
    pub email: Option<String>,
    /// What they own, in credits.
    pub credits: i32,
    /// What of it is held.
    pub reserved: i32,
    /// When they came.
    pub created_at: DateTime<Utc>,
}

/// The person called `user`.
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

/// The next pictures of `user`, the oldest first.
pub async fn images_after(
    pool: &PgPool,
    user: UserId,
    after: Option<ImageId>,
    most: i64,
) -> sqlx::Result<Vec<Image>> {
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.object_key, i.thumbnail_key,
                  i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $4)
                      as "free_remove_background_used!",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $5)
                      as "free_upscale_used!"
           from images i
           where i.owner_id = $1 and ($2::uuid is null or i.id > $2) and coalesce(i.expires_at > now(), true)
           order by i.id limit $3"#,
        user.uuid(),
        after.map(ImageId::uuid),
        most,
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
    )
    .fetch_all(pool)
    .await
}

/// The next results of `user`, the oldest first.
pub async fn results_after(
    pool: &PgPool,
    user: UserId,
    after: Option<ResultId>,
    most: i64,
) -> sqlx::Result<Vec<ResultImage>> {
    sqlx::query_as!(
        ResultImage,
        r#"select r.id as "id: ResultId", r.job_id as "job: JobId", r.image_id as "image: ImageId",
                  r.owner_id as "owner: UserId", r.tool as "tool: ToolName", r.factor,
                  r.mode as "mode: FixMode", r.prompt, r.is_demo, r.object_key, r.thumbnail_key, r.size_bytes,
                  r.width, r.height, r.model, r.model_sha256, r.device, r.duration_ms, r.created_at,
                  j.tier as "tier: Tier", j.cost as credits
           from results r join jobs j on j.id = r.job_id
           where r.owner_id = $1 and ($2::uuid is null or r.id > $2)
           order by r.id limit $3"#,
        user.uuid(),
        after.map(ResultId::uuid),
        most,
    )
    .fetch_all(pool)
    .await
}

/// The next jobs of `user`, the oldest first.
pub async fn jobs_after(
    pool: &PgPool,
    user: UserId,
    after: Option<JobId>,
    most: i64,
) -> sqlx::Result<Vec<Job>> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id: JobId" from jobs
           where owner_id = $1 and ($2::uuid is null or id > $2) order by id limit $3"#,
        user.uuid(),
        after.map(JobId::uuid),
        most,
    )
    .fetch_all(pool)
    .await?;
    let mut found = jobs::load(pool, &ids).await?;
    found.sort_by_key(|job| job.id.uuid());
    Ok(found)
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
    /// A job is done.
    Job,
    /// Money of an order was given back.
    Refund,
    /// The payer's bank took the money of an order back, or returned it.
    Dispute,
    /// An operator's hand.
    Admin,
    /// What was left when the account was deleted.
    Forfeit,
}

impl LedgerKind {
    /// Its name in the database and in JSON.
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
    /// Its number; later ones are higher.
    pub id: i64,
    /// Why.
    pub kind: LedgerKind,
    /// By how much.
    pub amount: i32,
    /// The job that was paid for.
    pub job: Option<JobId>,
    /// The order it belongs to.
    pub order: Option<OrderId>,
    /// What an operator's change is known by.
    pub reference: Option<String>,
    /// What an operator wrote beside it.
    pub note: Option<String>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// The next changes of the balance of `user`, the oldest first.
pub async fn ledger_after(
    pool: &PgPool,
    user: UserId,
    after: i64,
    most: i64,
) -> sqlx::Result<Vec<LedgerEntry>> {
    sqlx::query_as!(
        LedgerEntry,
        r#"select id, kind as "kind: LedgerKind", amount, job_id as "job: JobId",
                  order_id as "order: OrderId", reference, note, created_at
           from ledger where user_id = $1 and id > $2 order by id limit $3"#,
        user.uuid(),
        after,
        most,
    )
    .fetch_all(pool)
    .await
}

/// The last changes of the balance of `user`, the newest first.
pub async fn last_changes(
    pool: &PgPool,
    user: UserId,
    most: i64,
) -> sqlx::Result<Vec<LedgerEntry>> {
    sqlx::query_as!(
        LedgerEntry,
        r#"select id, kind as "kind: LedgerKind", amount, job_id as "job: JobId",
                  order_id as "order: OrderId", reference, note, created_at
           from ledger where user_id = $1 order by id desc limit $2"#,
        user.uuid(),
        most,
    )
    .fetch_all(pool)
    .await
}
