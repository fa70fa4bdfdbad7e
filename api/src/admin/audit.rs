//! `admin audit` and `admin books`: does everything add up?

use std::fmt::Write;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use retouch_core::audit::{self, Finding};
use retouch_core::config::StorageConfig;
use retouch_core::db::PgPool;
use retouch_core::storage::Storage;
use serde_json::json;

use super::Answer;

#[derive(Debug, Args)]
pub struct Audit {
    /// How old an object that no row names must be before it counts, in hours: younger ones may be on
    /// their way.
    #[arg(long, default_value_t = 24)]
    orphan_hours: u64,
    #[command(flatten)]
    storage: StorageConfig,
}

impl Audit {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let mut findings = audit::books(pool).await.context("checking the books")?;
        let age = Duration::from_secs(self.orphan_hours * 3600);
        let compared = audit::objects(pool, &Storage::new(&self.storage), age).await;
        let compared = compared.context("comparing the bucket with the database")?;
        findings.extend(compared.findings);
        Ok(answer(&findings, Some(compared.objects)))
    }
}

/// The same without the bucket.
pub async fn books(pool: &PgPool) -> anyhow::Result<Answer> {
    Ok(answer(&audit::books(pool).await.context("checking the books")?, None))
}

fn answer(findings: &[Finding], objects: Option<usize>) -> Answer {
    let mut text = String::new();
    for finding in findings {
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
    let json = json!({ "objects": objects, "findings": findings });
    Answer { text, json, is_good: findings.is_empty() }
}
