//! Finds the account that an operator names.

use anyhow::Context;
use retouch_core::accounts::{self, Account};
use retouch_core::db::PgPool;

/// Returns the account with this email address, id or subject; an error if there is none or more than one.
pub async fn account(pool: &PgPool, name: &str) -> anyhow::Result<Account> {
    let mut found = accounts::find(pool, name).await.context("searching for the account")?;
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|account| account.id.to_string()).collect();
        anyhow::bail!("several accounts match; choose one by its id: {}", ids.join(", "));
    }
    found.pop().context("no account matches")
}
