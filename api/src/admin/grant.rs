//! `admin grant`: adds or removes credits.

use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use retouch_core::accounts;
use retouch_core::credits::{self, AdjustError, Adjusted, Adjustment};
use retouch_core::db::PgPool;
use serde_json::json;
use uuid::Uuid;

use super::answer::Answer;
use super::find::account;

#[derive(Debug, Args)]
pub struct Grant {
    /// Email address, user id, or subject at the identity provider.
    name: String,
    /// Number of credits; negative to take some away. Held credits cannot be taken.
    #[arg(allow_negative_numbers = true)]
    amount: i32,
    /// Reason. It stays in the ledger even after the account is deleted, so do not name people.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    note: String,
    /// Unique reference for the change, e.g. a ticket number. Repeating the command with it changes
    /// nothing.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    reference: Option<String>,
}

impl Grant {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let user = account(pool, &self.name).await?.id;
        let reference = self.reference.clone().unwrap_or_else(|| Uuid::now_v7().to_string());
        let change =
            Adjustment { user, amount: self.amount, reference: &reference, note: Some(&self.note) };
        let unknown = || {
            format!("the balance may have changed; repeat the command with --reference {reference}")
        };
        let adjusted = match credits::adjust(pool, &change).await {
            Err(error @ AdjustError::Database(_)) => return Err(error).with_context(unknown),
            answered => answered.context("changing the balance")?,
        };
        let is_new = adjusted == Adjusted::Applied;
        if is_new {
            tracing::info!(user.id = %user, amount = self.amount, reference, "Changed the balance of user {user} by {:+} credits", self.amount);
        }
        let account = accounts::get(pool, user).await.with_context(unknown)?;
        let account = account.context("reading the balance")?;
        let text = format!(
            "{} {:+} credits for user {user}, {} at {} (reference {reference}). Balance: {} credits, {} held.",
            if is_new { "Recorded" } else { "Already recorded:" },
            self.amount,
            account.subject,
            account.issuer,
            account.credits,
            account.reserved,
        );
        let json = json!({
            "user": user, "issuer": account.issuer, "subject": account.subject,
            "amount": self.amount, "reference": reference, "isNew": is_new,
            "credits": account.credits, "reserved": account.reserved,
        });
        Ok(Answer::good(text, json))
    }
}
