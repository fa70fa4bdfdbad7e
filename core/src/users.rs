//! People, known by issuer and subject; never by their email address.

use sqlx::PgPool;

use crate::{UserId, credits};

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

/// Finds the user that the identity provider calls `subject`, or creates them with their free credits.
pub async fn sign_in(pool: &PgPool, issuer: &str, subject: &str) -> sqlx::Result<User> {
    if let Some(user) = find(pool, issuer, subject).await? {
        return Ok(user);
    }
    let mut tx = pool.begin().await?;
    // Two first calls at once: one inserts, the other waits for it here and inserts nothing.
    let created = sqlx::query_scalar!(
        r#"insert into users (id, issuer, subject) values ($1, $2, $3)
           on conflict on constraint users_identity do nothing
           returning id as "id: UserId""#,
        UserId::new().uuid(),
        issuer,
        subject,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(id) = created {
        credits::grant_signup(&mut tx, id).await?;
        tracing::info!(user.id = %id, "Created user {id}");
    }
    tx.commit().await?;
    find(pool, issuer, subject).await?.ok_or(sqlx::Error::RowNotFound)
}

async fn find(pool: &PgPool, issuer: &str, subject: &str) -> sqlx::Result<Option<User>> {
    sqlx::query_as!(
        User,
        r#"select id as "id: UserId", email, credits, reserved,
                  coalesce(email_checked_at < now() - interval '1 day', true) as "email_is_stale!"
           from users where issuer = $1 and subject = $2"#,
        issuer,
        subject,
    )
    .fetch_optional(pool)
    .await
}

/// Records what the identity provider says about the address; `None` leaves an earlier answer.
pub async fn confirm_email(pool: &PgPool, user: UserId, email: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!(
        "update users set email = coalesce($2, email), email_checked_at = now() where id = $1",
        user.uuid(),
        email,
    )
    .execute(pool)
    .await
    .map(drop)
}
