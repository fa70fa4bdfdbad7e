//! `admin audit`: does everything add up?

use std::fmt::Write;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use retouch_core::audit::{self, Compared};
use retouch_core::config::StorageConfig;
use retouch_core::db::PgPool;
use retouch_core::storage::Storage;
use serde_json::json;

use super::Answer;

#[derive(Debug, Args)]
pub struct Audit {
    /// Check the books alone, not the bucket.
    #[arg(long)]
    books_only: bool,
    /// How old an object that no row names must be before it counts, in hours: younger ones may be on
    /// their way.
    #[arg(long, default_value_t = 24)]
    orphan_hours: u64,
    #[command(flatten)]
    storage: Option<StorageConfig>,
}

impl Audit {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let mut findings = audit::books(pool).await.context("checking the books")?;
        let compared = self.compare(pool).await?;
        let objects = compared.as_ref().map(|compared| compared.objects);
        findings.extend(compared.unwrap_or_default().findings);
        let mut text = String::new();
        for finding in &findings {
            let _ = writeln!(text, "{finding}");
        }
        let looked_at = match objects {
            Some(objects) => format!("the books and {objects} objects"),
            None => "the books".into(),
        };
        let verdict = match findings.len() {
            0 => format!("Everything balances: {looked_at}."),
            1 => format!("1 thing does not add up in {looked_at}."),
            count => format!("{count} things do not add up in {looked_at}."),
        };
        text += &verdict;
        tracing::info!(findings = findings.len(), "Audited {looked_at}");
        let is_good = findings.is_empty();
        Ok(Answer { text, json: json!({ "objects": objects, "findings": findings }), is_good })
    }

    async fn compare(&self, pool: &PgPool) -> anyhow::Result<Option<Compared>> {
        if self.books_only {
            return Ok(None);
        }
        let storage = self.storage.as_ref();
        let storage = storage.context("no bucket is configured: set S3_*, or add --books-only")?;
        let age = Duration::from_secs(self.orphan_hours * 3600);
        let compared = audit::objects(pool, &Storage::new(storage), age).await;
        compared.context("comparing the bucket with the database").map(Some)
    }
}
