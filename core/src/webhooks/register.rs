//! Manages webhooks for their owners: create, list, change, rotate the secret, delete.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor, PgPool};

use super::{DeliveryProblem, EventType};
use crate::{UserId, WebhookId, db, users};

pub const MAX_WEBHOOKS: i64 = 5;
/// How long the previous secret still signs after a rotation.
pub const OLD_SECRET_HOURS: i32 = 24;

/// Why we turned a webhook off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum DisabledReason {
    /// The receiver answered 410: it refuses further deliveries.
    Gone,
    /// Every attempt has failed for days.
    Failing,
}

/// A webhook, as its owner sees it after creation.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: WebhookId,
    pub url: String,
    /// A note by its owner.
    pub description: String,
    pub events: Vec<EventType>,
    /// `credits.low` is sent when a balance falls below this.
    pub credits_below: i32,
    pub is_enabled: bool,
    /// Why we turned the webhook off; `None` if it is on, or if its owner turned it off.
    pub disabled_reason: Option<DisabledReason>,
    /// The first failure since the last success.
    pub failing_since: Option<DateTime<Utc>>,
    /// When the previous secret stops signing deliveries.
    pub old_secret_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// A webhook to be created. The caller has checked the address.
#[derive(Clone, Debug)]
pub struct NewWebhook<'a> {
    pub url: &'a str,
    /// A note by its owner, of at most 200 characters.
    pub description: &'a str,
    /// The events it receives: at least one, without duplicates.
    pub events: &'a [EventType],
    /// The threshold of `credits.low`, from 1 to 1,000,000.
    pub credits_below: i32,
    /// 24 to 64 random bytes.
    pub secret: &'a [u8],
}

/// Changes to a webhook, with the constraints of [`NewWebhook`]; `None` keeps the present value.
#[derive(Clone, Debug, Default)]
pub struct Change<'a> {
    pub url: Option<&'a str>,
    pub description: Option<&'a str>,
    pub events: Option<&'a [EventType]>,
    pub credits_below: Option<i32>,
    /// Turning it on when it is off forgives its failures; turning it off ends its waiting deliveries.
    pub is_enabled: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("You already have 5 webhooks. Delete one first.")]
    TooMany,
    /// The account was deleted in the meantime.
    #[error("This account was deleted")]
    OwnerGone,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The answer to the commit was lost: the webhook may exist, or not.
    #[error("it is unknown whether the webhook was created: {0}")]
    OutcomeUnknown(#[source] sqlx::Error),
}

struct Row {
    id: WebhookId,
    url: String,
    description: String,
    events: Vec<String>,
    credits_below: i32,
    is_enabled: bool,
    disabled_reason: Option<DisabledReason>,
    failing_since: Option<DateTime<Utc>>,
    old_secret_until: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl From<Row> for Webhook {
    fn from(row: Row) -> Self {
        let known = EventType::SUBSCRIBABLE.into_iter();
        Self {
            id: row.id,
            url: row.url,
            description: row.description,
            events: known
                .filter(|event| row.events.iter().any(|name| name == event.as_str()))
                .collect(),
            credits_below: row.credits_below,
            is_enabled: row.is_enabled,
            disabled_reason: row.disabled_reason,
            failing_since: row.failing_since,
            old_secret_until: row.old_secret_until,
            created_at: row.created_at,
        }
    }
}

fn names(events: &[EventType]) -> Vec<String> {
    events.iter().map(|event| event.as_str().to_owned()).collect()
}

pub async fn create(
    pool: &PgPool,
    owner: UserId,
    new: &NewWebhook<'_>,
) -> Result<Webhook, CreateError> {
    let mut tx = db::begin(pool).await?;
    // Without the lock, two concurrent creations would both count four webhooks.
    if !users::lock(&mut tx, owner).await? {
        return Err(CreateError::OwnerGone);
    }
    let number = sqlx::query_scalar!(
        r#"select count(*) as "count!" from webhooks where owner_id = $1"#,
        owner.uuid(),
    )
    .fetch_one(&mut *tx)
    .await?;
    if number >= MAX_WEBHOOKS {
        return Err(CreateError::TooMany);
    }
    let id = WebhookId::new();
    sqlx::query!(
        "insert into webhooks (id, owner_id, url, description, events, credits_below, secret)
         values ($1, $2, $3, $4, $5, $6, $7)",
        id.uuid(),
        owner.uuid(),
        new.url,
        new.description,
        &names(new.events),
        new.credits_below,
        new.secret,
    )
    .execute(&mut *tx)
    .await?;
    // Read before the commit: a failure afterwards would leave a webhook whose secret nobody has.
    let made = select(&mut *tx, owner, Some(id)).await?.pop().ok_or(sqlx::Error::RowNotFound)?;
    tx.commit().await.map_err(CreateError::OutcomeUnknown)?;
    Ok(made)
}

/// Returns the webhooks of `owner`, the oldest first.
pub async fn list(pool: &PgPool, owner: UserId) -> sqlx::Result<Vec<Webhook>> {
    select(pool, owner, None).await
}

/// Returns a webhook if `owner` owns it.
pub async fn get(pool: &PgPool, owner: UserId, id: WebhookId) -> sqlx::Result<Option<Webhook>> {
    Ok(select(pool, owner, Some(id)).await?.pop())
}

async fn select(
    executor: impl PgExecutor<'_>,
    owner: UserId,
    id: Option<WebhookId>,
) -> sqlx::Result<Vec<Webhook>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id as "id: WebhookId", url, description, events, credits_below, is_enabled,
                  disabled_reason as "disabled_reason: DisabledReason", failing_since,
                  case when old_secret_until > now() then old_secret_until end as old_secret_until, created_at
           from webhooks where owner_id = $1 and ($2::uuid is null or id = $2) order by created_at, id"#,
        owner.uuid(),
        id.map(WebhookId::uuid),
    )
    .fetch_all(executor)
    .await?;
    Ok(rows.into_iter().map(Webhook::from).collect())
}

/// Changes a webhook of `owner`. Returns false if `owner` has no such webhook.
pub async fn change(
    pool: &PgPool,
    owner: UserId,
    id: WebhookId,
    change: &Change<'_>,
) -> sqlx::Result<bool> {
    let events = change.events.map(names);
    let mut tx = db::begin(pool).await?;
    let was_enabled = sqlx::query_scalar!(
        "select is_enabled from webhooks where id = $1 and owner_id = $2 for update",
        id.uuid(),
        owner.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(was_enabled) = was_enabled else { return Ok(false) };
    sqlx::query!(
        "update webhooks
         set url = coalesce($2, url), description = coalesce($3, description), events = coalesce($4, events),
             credits_below = coalesce($5, credits_below), is_enabled = coalesce($6, is_enabled),
             disabled_reason = case when $6::boolean is null then disabled_reason end,
             -- Only a fast success takes a webhook out of the slow lane, also after a change of its address: turning it on
             -- again and again, or changing it, must not.
             failing_since = case when coalesce($6 <= is_enabled, true) and coalesce($2, url) = url then failing_since end,
             is_slow = is_slow or coalesce($2, url) <> url
         where id = $1",
        id.uuid(),
        change.url,
        change.description,
        events.as_deref(),
        change.credits_below,
        change.is_enabled,
    )
    .execute(&mut *tx)
    .await?;
    // An event that was recorded while the webhook was being turned off must not be sent once it is on again.
    if change.is_enabled.is_some_and(|is_enabled| !(is_enabled && was_enabled)) {
        end_waiting(&mut tx, id).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Turns a webhook off because of its receiver. The caller has locked its row.
pub(super) async fn disable(
    conn: &mut PgConnection,
    id: WebhookId,
    reason: DisabledReason,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhooks set is_enabled = false, disabled_reason = $2 where id = $1",
        id.uuid(),
        reason as DisabledReason,
    )
    .execute(&mut *conn)
    .await?;
    end_waiting(conn, id).await
}

/// Ends the waiting deliveries of a webhook that is off. The caller has locked its row: code that locks several rows of
/// these tables locks the webhook first.
pub(super) async fn end_waiting(conn: &mut PgConnection, id: WebhookId) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_deliveries set state = 'failed', lease_until = null, problem = coalesce(problem, $2)
         where webhook_id = $1 and state = 'waiting'",
        id.uuid(),
        DeliveryProblem::Off.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Replaces the secret of a webhook of `owner`. The old one signs as well for [`OLD_SECRET_HOURS`]. Another call within
/// the first hour counts as a repeat: nobody may have received the secret in between, so the old one keeps its time.
/// Returns false if `owner` has no such webhook.
pub async fn rotate(
    pool: &PgPool,
    owner: UserId,
    id: WebhookId,
    secret: &[u8],
) -> sqlx::Result<bool> {
    let rotated = sqlx::query!(
        "update webhooks
         set secret = $3,
             old_secret = case when old_secret_until > now() + make_interval(hours => $4 - 1) then old_secret
                               else secret end,
             old_secret_until = case when old_secret_until > now() + make_interval(hours => $4 - 1) then old_secret_until
                                     else now() + make_interval(hours => $4) end
         where id = $1 and owner_id = $2",
        id.uuid(),
        owner.uuid(),
        secret,
        OLD_SECRET_HOURS,
    )
    .execute(pool)
    .await?;
    Ok(rotated.rows_affected() == 1)
}

/// Deletes a webhook of `owner` and its deliveries. Returns false if `owner` has no such webhook.
pub async fn delete(pool: &PgPool, owner: UserId, id: WebhookId) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    let deleted = sqlx::query!(
        "delete from webhooks where id = $1 and owner_id = $2",
        id.uuid(),
        owner.uuid(),
    )
    .execute(&mut *tx)
    .await?;
    if deleted.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query!("delete from webhook_deliveries where webhook_id = $1", id.uuid())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(true)
}

/// Deletes all webhooks of `owner` and their deliveries, when deleting the account.
pub(crate) async fn delete_all(conn: &mut PgConnection, owner: UserId) -> sqlx::Result<()> {
    let deleted =
        sqlx::query_scalar!("delete from webhooks where owner_id = $1 returning id", owner.uuid(),)
            .fetch_all(&mut *conn)
            .await?;
    sqlx::query!("delete from webhook_deliveries where webhook_id = any($1)", &deleted)
        .execute(conn)
        .await
        .map(drop)
}
