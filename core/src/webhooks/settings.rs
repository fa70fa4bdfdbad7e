//! Copies the settings of webhooks from the database that a restore replaced.

use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgPool;

use super::register::end_waiting;
use crate::{UserId, WebhookId, db};

/// A webhook as its owner left it. `Debug` hides the secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    pub id: WebhookId,
    pub(crate) owner: UserId,
    pub(crate) created_at: DateTime<Utc>,
    is_enabled: bool,
    row: Value,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("id", &self.id).finish_non_exhaustive()
    }
}

pub(crate) async fn all(pool: &PgPool) -> sqlx::Result<Vec<Settings>> {
    sqlx::query_as!(
        Settings,
        // The outcomes of deliveries set these two columns, so they are not settings.
        r#"select id as "id: WebhookId", owner_id as "owner: UserId", created_at, is_enabled,
                  to_jsonb(w) - array['failing_since', 'is_slow'] as "row!"
           from webhooks w order by id"#,
    )
    .fetch_all(pool)
    .await
}

/// Gives a webhook the settings it had in the other database. Ends its waiting deliveries if it is off.
pub async fn copy(pool: &PgPool, settings: &Settings) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    sqlx::query!(
        "update webhooks w
         set url = c.url, description = c.description, events = c.events, credits_below = c.credits_below,
             secret = c.secret, old_secret = c.old_secret, old_secret_until = c.old_secret_until,
             is_enabled = c.is_enabled, disabled_reason = c.disabled_reason,
             -- As when its owner changes it.
             failing_since = case when w.url = c.url and c.is_enabled <= w.is_enabled then w.failing_since end,
             is_slow = w.is_slow and w.url = c.url
         from jsonb_populate_record(null::webhooks, $1) c where w.id = c.id",
        settings.row,
    )
    .execute(&mut *tx)
    .await?;
    if !settings.is_enabled {
        end_waiting(&mut tx, settings.id).await?;
    }
    tx.commit().await
}
