//! `admin deletions`: after a restore, repeats people's deletions and changes of webhooks since the backup.

use anyhow::{Context, ensure};
use clap::Args;
use retouch_core::config::{DatabaseConfig, Secret};
use retouch_core::db::{self, PgPool};
use retouch_core::restored::{BroughtBack, brought_back};
use retouch_core::{accounts, api_keys, images, results, webhooks};
use serde_json::json;

use super::answer::Answer;
use crate::auth::deleted_users::DeletedUsers;
use crate::config::check_secret;

/// Maximum number of connections to the lost database.
const CONNECTIONS: u32 = 1;

#[derive(Debug, Args)]
pub struct Deletions {
    /// The Postgres database from before the restore.
    #[arg(long, env = "RETOUCH_LOST_DATABASE_URL", hide_env_values = true)]
    lost_database_url: Secret,
    /// The secret of the API, which recognizes people who deleted their account.
    #[arg(long, env = "RETOUCH_URL_SECRET", hide_env_values = true)]
    url_secret: Secret,
    /// Only count what would be deleted.
    #[arg(long)]
    dry_run: bool,
}

impl Deletions {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let database_url = self.lost_database_url.clone();
        let lost = DatabaseConfig { database_url, database_connections: CONNECTIONS };
        let deleted_users = DeletedUsers::new(check_secret(&self.url_secret)?);
        let lost =
            db::connected_pool(&lost).await.context("connecting to RETOUCH_LOST_DATABASE_URL")?;
        ensure!(
            db::identity(pool).await? != db::identity(&lost).await?,
            "RETOUCH_LOST_DATABASE_URL names the restored database; it must name the one from before"
        );
        let found = brought_back(pool, &lost).await.context("comparing the databases")?;
        if !self.dry_run {
            repeat(pool, &found, &deleted_users).await?;
        }
        let (accounts, images, results) =
            (found.accounts.len(), found.images.len(), found.results.len());
        let (api_keys, webhooks, changed_webhooks) =
            (found.api_keys.len(), found.webhooks.len(), found.changed_webhooks.len());
        let (deleted, changed) =
            if self.dry_run { ("Would delete", "would change") } else { ("Deleted", "changed") };
        Ok(Answer::good(
            format!(
                "{deleted} again: {accounts} accounts, {images} images, {results} results, {api_keys} API keys, \
                 {webhooks} webhooks; {changed} again: {changed_webhooks} webhooks."
            ),
            json!({
                "accounts": accounts, "images": images, "results": results, "apiKeys": api_keys,
                "webhooks": webhooks, "changedWebhooks": changed_webhooks,
            }),
        ))
    }
}

async fn repeat(
    pool: &PgPool,
    found: &BroughtBack,
    deleted_users: &DeletedUsers,
) -> anyhow::Result<()> {
    for id in &found.accounts {
        let account = accounts::get_active(pool, *id).await?.context("the account is gone")?;
        let hash = deleted_users.hash(&account.issuer, &account.subject);
        accounts::delete(pool, *id, &hash).await.context("deleting an account")?;
    }
    for (owner, image) in &found.images {
        images::delete(pool, *owner, *image).await.context("deleting an image")?;
    }
    for (owner, tool, result) in &found.results {
        results::delete(pool, *owner, *tool, *result).await.context("deleting a result")?;
    }
    for (owner, key) in &found.api_keys {
        api_keys::revoke(pool, *owner, *key).await.context("revoking an API key")?;
    }
    for (owner, webhook) in &found.webhooks {
        webhooks::delete(pool, *owner, *webhook).await.context("deleting a webhook")?;
    }
    for settings in &found.changed_webhooks {
        webhooks::copy(pool, settings).await.context("changing a webhook")?;
    }
    Ok(())
}
