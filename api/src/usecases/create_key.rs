//! Creates API keys. The database stores only the hash of a key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use retouch_core::UserId;
use retouch_core::api_keys::{self, ApiKey, CreateError, NewApiKey, PREFIX, SHOWN_LENGTH};
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::random_secret::random_secret;
use crate::state::App;

/// Creates a key for `owner`; returns its record and the key itself.
pub async fn create_key(
    app: &App,
    owner: UserId,
    name: String,
) -> Result<(ApiKey, String), ApiError> {
    let key = random_key()?;
    let (pool, shown) = (app.pool.clone(), key[..SHOWN_LENGTH].to_owned());
    let sha256 = Sha256::digest(&key);
    let creation = async move {
        let new = NewApiKey { name: &name, shown: &shown, sha256: &sha256 };
        api_keys::create(&pool, owner, &new).await
    };
    let stored = app.in_turn_of(owner, creation).await?.map_err(|error| match error {
        CreateError::Name => ApiError::BadRequest(error.to_string()),
        CreateError::TooMany => ApiError::Unprocessable(error.to_string()),
        CreateError::OwnerGone => ApiError::AccountDeleted,
        CreateError::Database(error) => error.into(),
        CreateError::OutcomeUnknown(error) => {
            tracing::error!(%error, "The answer to the creation of an API key was lost");
            let detail = "We don't know whether this key was created. If it is in your list, revoke it, because nobody has it.";
            ApiError::OutcomeUnknown { detail, error }
        }
    })?;
    tracing::info!(user.id = %owner, key.id = %stored.id, "Created API key {}", stored.id);
    Ok((stored, key))
}

fn random_key() -> anyhow::Result<String> {
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random_secret()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_prefix_and_are_unique() {
        let (one, other) = (random_key().expect("a key"), random_key().expect("a key"));
        assert!(one.starts_with("rt_") && one.len() == 3 + 43, "{one}");
        assert_ne!(one[3..20], other[3..20]);
    }
}
