//! `admin issuer`: keeps the accounts when the identity provider gets another URL.

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use retouch_core::accounts::{self, IssuerChange};
use retouch_core::db::PgPool;
use serde_json::json;

use super::answer::Answer;

/// The issuer of deleted accounts.
const DELETED: &str = "deleted";

#[derive(Debug, Args)]
pub struct Issuer {
    /// The issuer that the accounts have; `admin user` shows it.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    old: String,
    /// The issuer that they get: the provider's `issuer`, letter for letter.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    new: String,
}

impl Issuer {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let Self { old, new } = self;
        ensure!(old != DELETED && new != DELETED, "`{DELETED}` stands for deleted accounts");
        ensure!(old != new, "both issuers are the same");
        let change =
            accounts::change_issuer(pool, old, new).await.context("changing the issuer")?;
        Ok(match change {
            IssuerChange::Changed(0) => Answer {
                text: format!("No account has the issuer {old}. Nothing was changed."),
                json: json!({ "changed": 0, "taken": [] }),
                is_good: false,
            },
            IssuerChange::Changed(changed) => {
                tracing::info!(
                    changed,
                    old,
                    new,
                    "Gave {changed} accounts of {old} the issuer {new}"
                );
                let text = format!("Accounts that now have the issuer {new}: {changed}.");
                Answer::good(text, json!({ "changed": changed, "taken": [] }))
            }
            IssuerChange::Taken(taken) => {
                let people: Vec<_> = taken
                    .iter()
                    .map(|account| {
                        let email = account.email.as_deref().unwrap_or("no email address");
                        format!("  {} {email}, {} credits", account.id, account.credits)
                    })
                    .collect();
                let text = format!(
                    "Nothing was changed. These people have signed in at {new} already, and have a second account there:\n{}\n\
                     To set the second accounts of everybody aside, run `retouch-api admin issuer {new} aside`, then this command again.",
                    people.join("\n"),
                );
                Answer { text, json: json!({ "changed": 0, "taken": taken }), is_good: false }
            }
        })
    }
}
