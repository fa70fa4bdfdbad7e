//! `admin issuer`: keeps the accounts when the URL of the identity provider changes.

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use retouch_core::accounts::{self, Account, IssuerChange};
use retouch_core::db::PgPool;
use serde_json::json;

use super::answer::Answer;

/// The issuer of deleted accounts.
const DELETED: &str = "deleted";

#[derive(Debug, Args)]
pub struct Issuer {
    /// The current issuer of the accounts; `admin user` shows it.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    old: String,
    /// The new issuer, exactly as in the provider's `issuer`.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    new: String,
    /// If a person has accounts at both issuers, disable the one at the new issuer; nobody can sign in to it afterward.
    #[arg(long)]
    set_aside: bool,
}

impl Issuer {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let Self { old, new, set_aside } = self;
        ensure!(old != DELETED && new != DELETED, "`{DELETED}` stands for deleted accounts");
        ensure!(old != new, "both issuers are the same");
        let change = accounts::change_issuer(pool, old, new, *set_aside);
        Ok(match change.await.context("changing the issuer")? {
            IssuerChange::Changed { accounts: 0, .. } => Answer {
                text: format!("No account has the issuer {old}. Nothing was changed."),
                json: json!({ "changed": 0, "setAside": [], "taken": [] }),
                is_good: false,
            },
            IssuerChange::Changed { accounts, set_aside } => {
                tracing::info!(
                    accounts,
                    set_aside = set_aside.len(),
                    old,
                    new,
                    "Gave {accounts} accounts of {old} the issuer {new}"
                );
                let mut text = format!("Accounts that now have the issuer {new}: {accounts}.");
                if !set_aside.is_empty() {
                    text = format!("{text}\nSet aside:\n{}", list(&set_aside));
                }
                let json = json!({ "changed": accounts, "setAside": set_aside, "taken": [] });
                Answer::good(text, json)
            }
            IssuerChange::Taken(taken) => {
                let text = format!(
                    "Nothing was changed. These people have signed in at {new} already, and have a second account there:\n{}\n\
                     Repeat the command with --set-aside to keep only their accounts of {old}. What they bought with the second \
                     accounts, you can grant again.",
                    list(&taken),
                );
                let json = json!({ "changed": 0, "setAside": [], "taken": taken });
                Answer { text, json, is_good: false }
            }
        })
    }
}

fn list(accounts: &[Account]) -> String {
    let lines = accounts.iter().map(|account| {
        let email = account.email.as_deref().unwrap_or("no email address");
        format!("  {} {email}, {} credits", account.id, account.credits)
    });
    lines.collect::<Vec<_>>().join("\n")
}
