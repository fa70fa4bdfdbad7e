//! Making a key for a program: it is shown once, and kept nowhere.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use retouch_core::UserId;
use retouch_core::api_keys::{self, ApiKey, CreateError, NewApiKey, PREFIX, SHOWN_LENGTH};
use sha2::{Digest, Sha256};

use crate::error::{ACCOUNT_DELETED, ApiError};
use crate::state::App;

/// Makes a key called `name` for `owner`; returns what is kept of it, and the key itself.
pub async fn create_key(
    app: &App,
    owner: UserId,
    name: &str,
) -> Result<(ApiKey, String), ApiError> {
    let key = random_key()?;
    let new = NewApiKey { name, shown: &key[..SHOWN_LENGTH], sha256: &Sha256::digest(&key) };
    let kept = api_keys::create(&app.pool, owner, &new).await.map_err(|error| match error {
        CreateError::Name => ApiError::BadRequest(error.to_string()),
        CreateError::TooMany => ApiError::AgainstTheRules(error.to_string()),
        CreateError::OwnerGone => ApiError::Unauthorized(ACCOUNT_DELETED),
        CreateError::Database(error) => error.into(),
    })?;
    tracing::info!(user.id = %owner, key.id = %kept.id, "Made API key {}", kept.id);
    Ok((kept, key))
}

fn random_key() -> anyhow::Result<String> {
    let mut random = [0; 32];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut random).ok().context("the system gives no random numbers")?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_it_is_and_is_never_made_twice() {
        let (one, other) = (random_key().expect("a key"), random_key().expect("a key"));
        assert!(one.starts_with("rt_") && one.len() == 3 + 43, "{one}");
        assert_ne!(one[3..20], other[3..20]);
    }
}
