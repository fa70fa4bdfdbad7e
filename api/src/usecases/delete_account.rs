//! Deleting one's account, with everything but the books.

use retouch_core::{JobId, UserId, accounts};

use crate::error::ApiError;
use crate::state::App;

/// Deletes the account of `user`; returns the runs that were called off. Done before, it does nothing.
pub async fn delete_account(app: &App, user: UserId) -> Result<Vec<JobId>, ApiError> {
    let Some(profile) = accounts::profile(&app.pool, user).await? else { return Ok(Vec::new()) };
    let identity_hash = app.former.hash(&profile.issuer, &profile.subject);
    let deleted = accounts::delete(&app.pool, user, &identity_hash).await?.unwrap_or_default();
    if let Some(payments) = &app.payments {
        // Should one be paid all the same, an audit names the order: nobody is left to give the credits to.
        for session in &deleted.open_sessions {
            if let Err(error) = payments.close(session).await {
                tracing::warn!(user.id = %user, "Could not close a page to pay on: {error}");
            }
        }
    }
    Ok(deleted.cancelled)
}
