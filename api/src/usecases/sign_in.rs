//! Signing in: the first call with a valid token creates the user and grants their free credits; a program
//! comes in their name with a key.

use retouch_core::api_keys;
use retouch_core::users::{self, Arrival, User};
use sha2::{Digest, Sha256};

use crate::error::{ACCOUNT_DELETED, ApiError};
use crate::state::App;

/// Finds or creates the user that `authorization` (the header's value) speaks for.
pub async fn sign_in(app: &App, authorization: Option<&str>) -> Result<User, ApiError> {
    let identity = app.authenticator.check(authorization).await?;
    let arrival = Arrival {
        issuer: &identity.issuer,
        subject: &identity.subject,
        identity_hash: &app.former.hash(&identity.issuer, &identity.subject),
        token_made_at: identity.token_made_at,
    };
    let user = users::arrive(&app.pool, &arrival).await?;
    let mut user = user.ok_or(ApiError::Unauthorized(ACCOUNT_DELETED))?;
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

/// Finds the user whose program shows `key`.
pub async fn sign_in_by_key(app: &App, key: &str) -> Result<User, ApiError> {
    let user = api_keys::user_of(&app.pool, &Sha256::digest(key)).await?;
    user.ok_or(ApiError::Unauthorized("This API key is not valid, or was revoked"))
}
