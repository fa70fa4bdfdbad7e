//! Keys for programs: they act for their owner and spend the owner's credits.
//!
//! Only the SHA-256 of a key is kept, and only that comes here. A key has 256 random bits, so that a plain
//! hash is enough: there is nothing to guess, and finding it is one look into an index whatever was sent.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use crate::users::User;
use crate::{ApiKeyId, UserId, db};

/// What every key begins with.
pub const PREFIX: &str = "rt_";
/// How many keys a user may have.
pub const MOST_KEYS: i64 = 20;
/// The longest name of a key, in characters.
pub const MAX_NAME_LENGTH: usize = 60;
/// How much of a key its owner sees again, to tell it from the others.
pub const SHOWN_LENGTH: usize = 9;

/// A key as its owner sees it later.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// What its owner calls it.
    pub name: String,
    /// How it begins.
    pub shown: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last used, give or take a minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// Why there is no new key.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name is empty, too long or no plain text.
    #[error("A key needs a name of 1 to 60 characters")]
    Name,
    /// The user has as many as they may have.
    #[error("You have 20 keys already; revoke one first")]
    TooMany,
    /// The user deleted their account meanwhile.
    #[error("This account was deleted")]
    OwnerGone,
    /// The database did not answer or refused.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// What is kept of a new key, which is [`PREFIX`] and 32 random bytes.
#[derive(Clone, Debug)]
pub struct NewApiKey<'a> {
    /// What its owner calls it.
    pub name: &'a str,
    /// Its first [`SHOWN_LENGTH`] characters.
    pub shown: &'a str,
    /// The SHA-256 of all of it.
    pub sha256: &'a [u8],
}

/// Records a key of `owner`.
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
    // One after the other: two at once would both count 19.
    let locked = sqlx::query!(
        "select id from users where id = $1 and deleted_at is null for update",
        owner.uuid(),
    );
    if locked.fetch_optional(&mut *tx).await?.is_none() {
        return Err(CreateError::OwnerGone);
    }
    let number = sqlx::query_scalar!(
        r#"select count(*) as "count!" from api_keys where owner_id = $1"#,
        owner.uuid(),
    )
    .fetch_one(&mut *tx)
    .await?;
    if number >= MOST_KEYS {
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
    tx.commit().await?;
    Ok(made)
}

/// The keys of `owner`, the oldest first.
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

/// Ends a key of `owner`, from this moment on. False when they have no such key.
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

/// Ends all keys of `owner`; part of deleting their account.
pub async fn revoke_all_of(conn: &mut PgConnection, owner: UserId) -> sqlx::Result<()> {
    sqlx::query!("delete from api_keys where owner_id = $1", owner.uuid())
        .execute(conn)
        .await
        .map(drop)
}

/// Whose key has this SHA-256; `None` for one that never was or is no more.
pub async fn user_of(pool: &PgPool, sha256: &[u8]) -> sqlx::Result<Option<User>> {
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
        // Once a minute is enough, and a busy program's calls do not queue up for this row.
        sqlx::query!("update api_keys set last_used_at = now() where id = $1", found.id)
            .execute(pool)
            .await?;
    }
    Ok(Some(User {
        id: found.user,
        email: found.email,
        credits: found.credits,
        reserved: found.reserved,
        // What the provider says of the address needs a token of theirs.
        email_is_stale: false,
    }))
}
