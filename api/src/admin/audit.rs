//! `admin audit` and `admin books`: consistency checks.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use retouch_core::audit::{self, Finding};
use retouch_core::config::StorageConfig;
use retouch_core::db::PgPool;
use retouch_core::storage::Storage;
use serde_json::json;

use super::answer::Answer;

#[derive(Debug, Args)]
pub struct Audit {
    /// Minimum age of unreferenced objects to report, in hours. Younger ones may belong to uploads in
    /// progress.
    #[arg(long, default_value_t = 24)]
    orphan_hours: u64,
    #[command(flatten)]
    storage: StorageConfig,
}

impl Audit {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let mut findings = checked_books(pool).await?;
        let age = Duration::from_secs(self.orphan_hours * 3600);
        let compared = audit::objects(pool, &Storage::new(&self.storage), age).await;
        let compared = compared.context("comparing the bucket with the database")?;
        findings.extend(compared.findings);
        Ok(answer(&findings, Some(compared.objects)))
    }
}

/// Audits only the books.
pub async fn books(pool: &PgPool) -> anyhow::Result<Answer> {
    Ok(answer(&checked_books(pool).await?, None))
}

/// Records the findings too, so that an alert clears once its cause is fixed.
async fn checked_books(pool: &PgPool) -> anyhow::Result<Vec<Finding>> {
    let findings = audit::books(pool).await.context("checking the books")?;
    audit::record(pool, &findings).await.context("recording the findings")?;
    Ok(findings)
}

fn answer(findings: &[Finding], objects: Option<usize>) -> Answer {
    let mut text = String::new();
    for finding in findings {
        let _ = writeln!(text, "{finding}");
    }
    let scope = match objects {
        Some(objects) => format!("the books and {objects} objects"),
        None => "the books".into(),
    };
    let summary = match findings.len() {
        0 => format!("No problems found in {scope}."),
        1 => format!("Found 1 problem in {scope}."),
        count => format!("Found {count} problems in {scope}."),
    };
    text += &summary;
    tracing::info!(findings = findings.len(), "Audited {scope}");
    let json = json!({ "objects": objects, "findings": findings });
    Answer { text, json, is_good: findings.is_empty() }
}
