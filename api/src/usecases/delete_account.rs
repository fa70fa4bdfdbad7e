//! Deletes accounts.

use anyhow::Context;
use retouch_core::{UserId, accounts};

use super::run_tool::announce_canceled;
use crate::error::ApiError;
use crate::state::App;

/// Deletes the account of `user`, except for accounting records. Idempotent. Once begun, it finishes even if the client
/// hangs up: a repeat would not find the payment pages that are still open.
pub async fn delete_account(app: &App, user: UserId) -> Result<(), ApiError> {
    app.tasks.spawn(delete(app.clone(), user)).await.context("deleting an account")?
}

async fn delete(app: App, user: UserId) -> Result<(), ApiError> {
    let Some(account) = accounts::get_active(&app.pool, user).await? else { return Ok(()) };
    let identity_hash = app.deleted_users.hash(&account.issuer, &account.subject);
    let turn = app.transactions.next(user).await?;
    let deleted = accounts::delete(&app.pool, user, &identity_hash).await?.unwrap_or_default();
    drop(turn);
    // Don't wait for the payment provider, which may take long to answer.
    let closing = app.clone();
    app.tasks.spawn(async move { close_pages(&closing, user, &deleted.open_sessions).await });
    announce_canceled(&app, &deleted.canceled).await;
    Ok(())
}

/// Closes the payment pages of a deleted account.
pub(super) async fn close_pages(app: &App, user: UserId, sessions: &[String]) {
    let Some(payments) = &app.payments else { return };
    // A page that stays open is closed by the next check of its payment. If the buyer pays before that, the audit reports the
    // order, because nobody can get its credits.
    for session in sessions {
        if let Err(error) = payments.close(session).await {
            tracing::warn!(user.id = %user, "Could not close a payment page: {error}");
        }
    }
}
