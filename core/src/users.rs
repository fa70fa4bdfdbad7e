//! Users, identified by issuer and subject, never by email address.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use crate::{UserId, credits, db};

#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    /// The email address that the identity provider reports.
    pub email: Option<String>,
    /// The balance in credits, including holds.
    pub credits: i32,
    /// The credits held for active jobs.
    pub reserved: i32,
    /// True if the email address is unknown or was confirmed more than a day ago.
    pub email_is_stale: bool,
}

/// A person whose token has been verified.
#[derive(Clone, Copy, Debug)]
pub struct SignIn<'a> {
    pub issuer: &'a str,
    /// The provider's id of the person.
    pub subject: &'a str,
    /// The keyed hash of issuer and subject that [`crate::accounts::delete`] stores.
    pub identity_hash: &'a [u8],
    pub token_issued_at: Option<DateTime<Utc>>,
    /// Whether the person asks to start again after they deleted their account.
    pub starts_again: bool,
}

/// Finds the user, or creates them with their free credits.
///
/// A person who deleted an account within the last twelve months starts without credits; otherwise, deleting and
/// signing up again would yield unlimited free credits. Returns `None` for such a person unless they ask to start again,
/// and their token was not issued before the deletion: a page on another device renews its token when it wakes, and
/// must not recreate the account by requesting the balance.
pub async fn find_or_create(pool: &PgPool, sign_in: &SignIn<'_>) -> sqlx::Result<Option<User>> {
    if let Some(user) = find(pool, sign_in).await? {
        return Ok(Some(user));
    }
    // Devices that ask again and again must not write each time.
    if !sign_in.starts_again
        && last_deletion(&mut *pool.acquire().await?, sign_in.identity_hash).await?.is_some()
    {
        return Ok(None);
    }
    let mut tx = db::begin(pool).await?;
    // Of two concurrent first requests, one inserts; the other waits for it here and inserts nothing. A request
    // during a deletion of the account also waits here.
    let created = sqlx::query_scalar!(
        r#"insert into users (id, issuer, subject) values ($1, $2, $3)
           on conflict on constraint users_identity do nothing
           returning id as "id: UserId""#,
        UserId::new().uuid(),
        sign_in.issuer,
        sign_in.subject,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(id) = created else {
        tx.commit().await?;
        // Created by another request just now; or the token is too old for the account.
        return find(pool, sign_in).await;
    };
    match last_deletion(&mut tx, sign_in.identity_hash).await? {
        Some(deleted_at)
            if !sign_in.starts_again
                || sign_in.token_issued_at.is_some_and(|issued| issued <= deleted_at) =>
        {
            return Ok(None);
        }
        Some(_) => {
            tracing::info!(user.id = %id, "Created user {id}, who had deleted an account before");
        }
        None => {
            credits::grant_signup(&mut tx, id).await?;
            tracing::info!(user.id = %id, "Created user {id}");
        }
    }
    tx.commit().await?;
    find(pool, sign_in).await
}

async fn find(pool: &PgPool, sign_in: &SignIn<'_>) -> sqlx::Result<Option<User>> {
    sqlx::query_as!(
        User,
        r#"select id as "id: UserId", email, credits, reserved,
                  coalesce(email_checked_at < now() - interval '1 day', true) as "email_is_stale!"
           from users where issuer = $1 and subject = $2
             -- Otherwise a token from before a deletion would reach the account of a later sign-in.
             and not exists (select from former_users where identity_hash = $3 and deleted_at >= $4)"#,
        sign_in.issuer,
        sign_in.subject,
        sign_in.identity_hash,
        sign_in.token_issued_at,
    )
    .fetch_optional(pool)
    .await
}

/// Locks the row of a user until the transaction ends, so that only one transaction at a time counts the user's rows
/// and adds one. Code that also locks images, jobs or orders must lock the user first; one lock order prevents
/// deadlocks. Returns false if the account does not exist or was deleted.
pub(crate) async fn lock(conn: &mut PgConnection, user: UserId) -> sqlx::Result<bool> {
    let is_active = sqlx::query_scalar!(
        r#"select deleted_at is null as "is_active!" from users where id = $1 for update"#,
        user.uuid(),
    );
    Ok(is_active.fetch_optional(conn).await?.unwrap_or(false))
}

/// Returns the user with this id, unless they deleted their account.
pub async fn get(pool: &PgPool, id: UserId) -> sqlx::Result<Option<User>> {
    sqlx::query_as!(
        User,
        r#"select id as "id: UserId", email, credits, reserved,
                  coalesce(email_checked_at < now() - interval '1 day', true) as "email_is_stale!"
           from users where id = $1 and deleted_at is null"#,
        id.uuid(),
    )
    .fetch_optional(pool)
    .await
}

/// Returns the time at which the person with this hash last deleted an account.
async fn last_deletion(
    conn: &mut PgConnection,
    identity_hash: &[u8],
) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query_scalar!(
        "select deleted_at from former_users
         where identity_hash = $1 and deleted_at > now() - interval '12 months'",
        identity_hash,
    )
    .fetch_optional(conn)
    .await
}

/// Stores the email address that the identity provider reports; `None` keeps the earlier one. Does nothing if the
/// account was deleted in the meantime.
pub async fn confirm_email(pool: &PgPool, user: UserId, email: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!(
        "update users set email = coalesce($2, email), email_checked_at = now()
         where id = $1 and deleted_at is null",
        user.uuid(),
        email,
    )
    .execute(pool)
    .await
    .map(drop)
}
