//! Signs users in, by token or by API key.

use retouch_core::api_keys;
use retouch_core::db;
use retouch_core::users::{self, SignIn, User};
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::state::App;

/// Returns the user whom the `Authorization` header identifies. The first valid token of a person creates the user
/// and grants the free credits.
pub async fn sign_in(app: &App, authorization: Option<&str>) -> Result<User, ApiError> {
    find(app, authorization, false).await
}

/// Does the same as [`sign_in`], but also starts a new account for a person who deleted theirs.
pub async fn start_again(app: &App, authorization: Option<&str>) -> Result<User, ApiError> {
    find(app, authorization, true).await
}

async fn find(
    app: &App,
    authorization: Option<&str>,
    starts_again: bool,
) -> Result<User, ApiError> {
    let identity = app.authenticator.check(authorization).await?;
    let sign_in = SignIn {
        issuer: &identity.issuer,
        subject: &identity.subject,
        identity_hash: &app.deleted_users.hash(&identity.issuer, &identity.subject),
        token_issued_at: identity.token_issued_at,
        starts_again,
    };
    let user = db::within(users::find_or_create(&app.pool, &sign_in)).await?;
    let mut user = user.ok_or(ApiError::AccountDeleted)?;
    let in_token = identity.email.clone();
    if user.email_is_stale
        || in_token.as_ref().is_some_and(|email| user.email.as_ref() != Some(email))
    {
        let email = match (in_token, authorization) {
            (Some(email), _) => Some(email),
            (None, Some(authorization)) => app.authenticator.email(authorization, &identity).await,
            (None, None) => None,
        };
        db::within(users::confirm_email(&app.pool, user.id, email.as_deref())).await?;
        user.email = email.or(user.email);
    }
    Ok(user)
}

/// Returns the owner of an API key.
pub async fn sign_in_by_key(app: &App, key: &str) -> Result<User, ApiError> {
    let user = db::within(api_keys::find_user(&app.pool, &Sha256::digest(key))).await?;
    user.ok_or(ApiError::Unauthorized("This API key is invalid or was revoked."))
}
