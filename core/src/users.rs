//! People, known by issuer and subject; never by their email address.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use crate::{UserId, credits, db};

/// A person and their balance.
#[derive(Clone, Debug)]
pub struct User {
    /// Their id with us.
    pub id: UserId,
    /// What the identity provider says their address is.
    pub email: Option<String>,
    /// What they own, in credits, holds included.
    pub credits: i32,
    /// What of it is held for jobs that have not ended.
    pub reserved: i32,
    /// Whether the email address is unknown or was last confirmed more than a day ago.
    pub email_is_stale: bool,
}

/// Somebody whose token was found to be good.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The identity provider.
    pub issuer: &'a str,
    /// What it calls them.
    pub subject: &'a str,
    /// The keyed hash of both that [`crate::accounts::delete`] remembers a deleted account by.
    pub identity_hash: &'a [u8],
    /// When their token was made, as far as it says.
    pub token_made_at: Option<DateTime<Utc>>,
}

/// Finds the user who arrives, or creates them with their free credits.
///
/// Whoever deleted an account in the last twelve months begins with nothing: else deleting and signing up
/// again would yield free credits without end. `None` when the token was made before that deletion: a page
/// that is still open somewhere must not bring the account back by asking for the balance. To come back, a
/// person signs in once more.
pub async fn arrive(pool: &PgPool, arrival: &Arrival<'_>) -> sqlx::Result<Option<User>> {
    if let Some(user) = find(pool, arrival).await? {
        return Ok(Some(user));
    }
    let mut tx = db::begin(pool).await?;
    // Two first calls at once: one inserts, the other waits for it here and inserts nothing. So does one
    // that comes while the account is being deleted, and it inserts afterwards.
    let created = sqlx::query_scalar!(
        r#"insert into users (id, issuer, subject) values ($1, $2, $3)
           on conflict on constraint users_identity do nothing
           returning id as "id: UserId""#,
        UserId::new().uuid(),
        arrival.issuer,
        arrival.subject,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(id) = created {
        match last_deletion(&mut tx, arrival.identity_hash).await? {
            Some(deleted_at) if arrival.token_made_at.is_some_and(|made| made <= deleted_at) => {
                return Ok(None);
            }
            Some(_) => tracing::info!(user.id = %id, "Created user {id}, who was here before"),
            None => {
                credits::grant_signup(&mut tx, id).await?;
                tracing::info!(user.id = %id, "Created user {id}");
            }
        }
    }
    tx.commit().await?;
    find(pool, arrival).await
}

/// Finds the user that the identity provider calls `subject`, or creates them with their free credits, for
/// callers that remember nobody.
pub async fn sign_in(pool: &PgPool, issuer: &str, subject: &str) -> sqlx::Result<User> {
    let arrival = Arrival { issuer, subject, identity_hash: &[], token_made_at: None };
    arrive(pool, &arrival).await?.ok_or(sqlx::Error::RowNotFound)
}

async fn find(pool: &PgPool, arrival: &Arrival<'_>) -> sqlx::Result<Option<User>> {
    sqlx::query_as!(
        User,
        r#"select id as "id: UserId", email, credits, reserved,
                  coalesce(email_checked_at < now() - interval '1 day', true) as "email_is_stale!"
           from users where issuer = $1 and subject = $2"#,
        arrival.issuer,
        arrival.subject,
    )
    .fetch_optional(pool)
    .await
}

/// When the account was deleted that is remembered by this hash.
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

/// Records what the identity provider says about the address; `None` leaves an earlier answer. An account
/// that was deleted meanwhile stays nameless.
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
