//! `admin grant`: credits by an operator's hand.

use anyhow::Context;
use clap::Args;
use retouch_core::accounts;
use retouch_core::credits::{self, Adjusted, Adjustment};
use retouch_core::db::PgPool;
use serde_json::json;
use uuid::Uuid;

use super::{Answer, account};

#[derive(Debug, Args)]
pub struct Grant {
    /// An email address, an id, or what the identity provider calls the person.
    name: String,
    /// How many; negative to take away. What is held for jobs cannot be taken.
    #[arg(allow_negative_numbers = true)]
    amount: i32,
    /// Why. It stays in the books for ever, even when the account is deleted: name nobody.
    #[arg(long)]
    note: String,
    /// What the change is known by, e.g. a ticket: given twice, the credits still move once.
    #[arg(long)]
    reference: Option<String>,
}

impl Grant {
    pub async fn perform(&self, pool: &PgPool) -> anyhow::Result<Answer> {
        let user = account(pool, &self.name).await?.id;
        let reference = self.reference.clone().unwrap_or_else(|| Uuid::now_v7().to_string());
        let change =
            Adjustment { user, amount: self.amount, reference: &reference, note: Some(&self.note) };
        let adjusted = credits::adjust(pool, &change).await.context("changing the balance")?;
        let is_new = adjusted == Adjusted::Now;
        if is_new {
            tracing::info!(user.id = %user, amount = self.amount, reference, "Moved {} credits of user {user}", self.amount);
        }
        let account = accounts::get(pool, user).await?.context("reading the balance")?;
        let text = format!(
            "{} {:+} credits for user {user} (reference {reference}). They own {}, of which {} are held.",
            if is_new { "Recorded" } else { "Had recorded before:" },
            self.amount,
            account.credits,
            account.reserved,
        );
        let json = json!({
            "user": user, "amount": self.amount, "reference": reference, "isNew": is_new,
            "credits": account.credits, "reserved": account.reserved,
        });
        Ok(Answer::good(text, json))
    }
}
