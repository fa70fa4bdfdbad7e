//! `admin user`: shows an account.

use std::fmt::Write;

use anyhow::Context;
use clap::Args;
use retouch_core::accounts::Account;
use retouch_core::credits::{self, LedgerEntry};
use retouch_core::db::PgPool;
use retouch_core::jobs;
use serde_json::json;

use super::answer::Answer;
use super::find::account;
use super::table::table;

/// The number of recent jobs and ledger entries to show.
const RECENT: i64 = 10;

#[derive(Debug, Args)]
pub struct Show {
    /// Email address, user id, or subject at the identity provider.
    name: String,
}

impl Show {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let account = account(pool, &self.name).await?;
        let jobs = jobs::recent(pool, account.id, RECENT).await.context("reading the jobs")?;
        let ledger =
            credits::recent_ledger(pool, account.id, RECENT).await.context("reading the ledger")?;
        let text = format!(
            "{}\nRecent jobs\n{}\nRecent ledger entries\n{}",
            facts(&account),
            super::jobs::as_table(&jobs),
            changes(&ledger),
        );
        let jobs: Vec<_> = jobs.iter().map(super::jobs::as_json).collect();
        Ok(Answer::good(text, json!({ "account": account, "jobs": jobs, "ledger": ledger })))
    }
}

fn facts(account: &Account) -> String {
    let mut text = format!(
        "user      {}\nemail     {}\nsubject   {} at {}\ncredits   {} ({} held)\nsince     {}\n",
        account.id,
        account.email.as_deref().unwrap_or("unknown"),
        account.subject,
        account.issuer,
        account.credits,
        account.reserved,
        account.created_at.format("%F %T UTC"),
    );
    if let Some(deleted_at) = account.deleted_at {
        let _ = writeln!(text, "deleted   {}", deleted_at.format("%F %T UTC"));
    }
    text
}

fn changes(ledger: &[LedgerEntry]) -> String {
    let rows: Vec<Vec<String>> = ledger
        .iter()
        .map(|entry| {
            let source = entry.job.map(|job| format!("job {job}"));
            let source = source.or_else(|| entry.order.map(|order| format!("order {order}")));
            vec![
                entry.created_at.format("%F %T").to_string(),
                entry.kind.as_str().into(),
                format!("{:+}", entry.amount),
                source.or_else(|| entry.reference.clone()).unwrap_or_default(),
                entry.note.clone().unwrap_or_default(),
            ]
        })
        .collect();
    table(&["when (UTC)", "kind", "credits", "for", "note"], &rows)
}
