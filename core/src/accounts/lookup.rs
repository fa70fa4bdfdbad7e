//! Finds accounts.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::UserId;

/// A user's row.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    pub id: UserId,
    /// The identity provider; `deleted` for a deleted account.
    pub issuer: String,
    /// The provider's id of the person.
    pub subject: String,
    /// The email address, if the provider reported one.
    pub email: Option<String>,
    /// The balance in credits, including holds.
    pub credits: i32,
    /// The credits held for active jobs.
    pub reserved: i32,
    /// The time of the first sign-in.
    pub created_at: DateTime<Utc>,
    pub deleted_at: Option<DateTime<Utc>>,
}

/// Finds accounts by id, by email address (ignoring case), or by subject. Several accounts can share an email
/// address, because it is not an identity. Returns at most 20.
pub async fn find(pool: &PgPool, name: &str) -> sqlx::Result<Vec<Account>> {
    sqlx::query_as!(
        Account,
        r#"select id as "id: UserId", issuer, subject, email, credits, reserved, created_at, deleted_at
           from users where id = $1 or lower(email) = lower($2) or subject = $2
           order by created_at, id limit 20"#,
        name.parse::<Uuid>().ok(),
        name,
    )
    .fetch_all(pool)
    .await
}

pub async fn get(pool: &PgPool, id: UserId) -> sqlx::Result<Option<Account>> {
    sqlx::query_as!(
        Account,
        r#"select id as "id: UserId", issuer, subject, email, credits, reserved, created_at, deleted_at
           from users where id = $1"#,
        id.uuid(),
    )
    .fetch_optional(pool)
    .await
}

/// Returns the account with this id, unless it was deleted.
pub async fn get_active(pool: &PgPool, id: UserId) -> sqlx::Result<Option<Account>> {
    Ok(get(pool, id).await?.filter(|account| account.deleted_at.is_none()))
}
