//! Signing in: the first call with a valid token creates the user and grants their free credits.

use retouch_core::users::{self, User};

use crate::error::ApiError;
use crate::state::App;

/// Finds or creates the user that `authorization` (the header's value) speaks for.
pub async fn sign_in(app: &App, authorization: Option<&str>) -> Result<User, ApiError> {
    let identity = app.authenticator.check(authorization).await?;
    let mut user = users::sign_in(&app.pool, &identity.issuer, &identity.subject).await?;
    let said = identity.email.clone();
    if user.email_is_stale || said.as_ref().is_some_and(|email| user.email.as_ref() != Some(email))
    {
        let email = match (said, authorization) {
            (Some(email), _) => Some(email),
            (None, Some(authorization)) => app.authenticator.email(authorization, &identity).await,
            (None, None) => None,
        };
        users::confirm_email(&app.pool, user.id, email.as_deref()).await?;
        user.email = email.or(user.email);
    }
    Ok(user)
}
