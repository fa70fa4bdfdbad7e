//! Deletes accounts.

use retouch_core::{JobId, UserId, accounts};

use crate::error::ApiError;
use crate::state::App;

/// Deletes the account of `user`, except for accounting records, and returns the canceled jobs. Idempotent. The open payment
/// pages are closed afterwards, because the provider may take long to answer.
pub async fn delete_account(app: &App, user: UserId) -> Result<Vec<JobId>, ApiError> {
    let Some(profile) = accounts::profile(&app.pool, user).await? else { return Ok(Vec::new()) };
    let identity_hash = app.deleted_users.hash(&profile.issuer, &profile.subject);
    let deleted = accounts::delete(&app.pool, user, &identity_hash).await?.unwrap_or_default();
    app.tasks.spawn(close_pages(app.clone(), user, deleted.open_sessions));
    Ok(deleted.canceled)
}

async fn close_pages(app: App, user: UserId, sessions: Vec<String>) {
    let Some(payments) = &app.payments else { return };
    // If a page stays open and the buyer pays, the audit reports the order, because nobody can get its credits.
    for session in &sessions {
        if let Err(error) = payments.close(session).await {
            tracing::warn!(user.id = %user, "Could not close a payment page: {error}");
        }
    }
}
