//! API keys: a program that sends one acts for the key's owner and spends the owner's credits.
//!
//! The database stores only the SHA-256 of a key. A key has 256 random bits and cannot be guessed, so a plain hash
//! is enough, and finding a key is one index lookup.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use crate::users::{self, User};
use crate::{ApiKeyId, UserId, db};

pub const PREFIX: &str = "rt_";
pub const MAX_KEYS: i64 = 20;
/// In characters.
pub const MAX_NAME_LENGTH: usize = 60;
/// The number of leading characters that the owner still sees later, to tell keys apart.
pub const SHOWN_LENGTH: usize = 9;

/// A key, as its owner sees it after creation.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub id: ApiKeyId,
    /// Chosen by the owner.
    pub name: String,
    /// Its first [`SHOWN_LENGTH`] characters.
    pub shown: String,
    pub created_at: DateTime<Utc>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name is empty, too long, or contains control characters.
    #[error("The name must have 1 to 60 characters.")]
    Name,
    #[error("You already have 20 keys. Revoke one first.")]
    TooMany,
    /// The account was deleted in the meantime.
    #[error("This account was deleted")]
    OwnerGone,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The answer to the commit was lost: the key may exist, or not.
    #[error("it is unknown whether the key was created: {0}")]
    OutcomeUnknown(#[source] sqlx::Error),
}

/// The stored part of a new key, which consists of [`PREFIX`] and 32 random bytes.
#[derive(Clone, Debug)]
pub struct NewApiKey<'a> {
    pub name: &'a str,
    /// Its first [`SHOWN_LENGTH`] characters.
    pub shown: &'a str,
    /// The SHA-256 of the whole key.
    pub sha256: &'a [u8],
}

pub async fn create(
    pool: &PgPool,
    owner: UserId,
    new: &NewApiKey<'_>,
) -> Result<ApiKey, CreateError> {
    let name = new.name.trim();
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME_LENGTH || name.chars().any(char::is_control) {
        return Err(CreateError::Name);
    }
    let mut tx = db::begin(pool).await?;
    // Without the lock, two concurrent creations would both count 19 keys.
    if !users::lock(&mut tx, owner).await? {
        return Err(CreateError::OwnerGone);
    }
    let number = sqlx::query_scalar!(
        r#"select count(*) as "count!" from api_keys where owner_id = $1"#,
        owner.uuid(),
    )
    .fetch_one(&mut *tx)
    .await?;
    if number >= MAX_KEYS {
        return Err(CreateError::TooMany);
    }
    let made = sqlx::query_as!(
        ApiKey,
        r#"insert into api_keys (id, owner_id, name, shown, key_sha256) values ($1, $2, $3, $4, $5)
           returning id as "id: ApiKeyId", name, shown, created_at, last_used_at"#,
        ApiKeyId::new().uuid(),
        owner.uuid(),
        name,
        new.shown,
        new.sha256,
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await.map_err(CreateError::OutcomeUnknown)?;
    Ok(made)
}

/// Returns the keys of `owner`, the oldest first.
pub async fn list(pool: &PgPool, owner: UserId) -> sqlx::Result<Vec<ApiKey>> {
    sqlx::query_as!(
        ApiKey,
        r#"select id as "id: ApiKeyId", name, shown, created_at, last_used_at from api_keys
           where owner_id = $1 order by created_at, id"#,
        owner.uuid(),
    )
    .fetch_all(pool)
    .await
}

/// Revokes a key of `owner`, effective at once. Returns false if `owner` has no such key.
pub async fn revoke(pool: &PgPool, owner: UserId, id: ApiKeyId) -> sqlx::Result<bool> {
    let revoked = sqlx::query!(
        "delete from api_keys where id = $1 and owner_id = $2",
        id.uuid(),
        owner.uuid(),
    )
    .execute(pool)
    .await?;
    Ok(revoked.rows_affected() == 1)
}

/// Revokes all keys of `owner`, when deleting the account.
pub(crate) async fn revoke_all(conn: &mut PgConnection, owner: UserId) -> sqlx::Result<()> {
    sqlx::query!("delete from api_keys where owner_id = $1", owner.uuid())
        .execute(conn)
        .await
        .map(drop)
}

/// Returns the owner of the key with this SHA-256; `None` if there is no such key or it was revoked.
pub async fn find_user(pool: &PgPool, sha256: &[u8]) -> sqlx::Result<Option<User>> {
    let found = sqlx::query!(
        r#"select k.id, u.id as "user: UserId", u.email, u.credits, u.reserved,
                  coalesce(k.last_used_at < now() - interval '1 minute', true) as "unnoted!"
           from api_keys k join users u on u.id = k.owner_id
           where k.key_sha256 = $1 and u.deleted_at is null"#,
        sha256,
    )
    .fetch_optional(pool)
    .await?;
    let Some(found) = found else { return Ok(None) };
    if found.unnoted {
        // At most once a minute, so that the requests of a busy program do not contend for this row.
        let noted =
            sqlx::query!("update api_keys set last_used_at = now() where id = $1", found.id)
                .execute(pool)
                .await;
        // A database that accepts no writes can still be read.
        if let Err(error) = noted
            && !db::is_unavailable(&error)
        {
            return Err(error);
        }
    }
    Ok(Some(User {
        id: found.user,
        email: found.email,
        credits: found.credits,
        reserved: found.reserved,
        // Only a user's token can confirm the email address, so it is never stale here.
        email_is_stale: false,
    }))
}
