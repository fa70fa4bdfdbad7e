//! Finding somebody's account, as an operator does.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::UserId;

/// An account as an operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// Its id.
    pub id: UserId,
    /// The identity provider; `deleted` for an account that was deleted.
    pub issuer: String,
    /// What the provider calls the person.
    pub subject: String,
    /// Their address, where the provider said it.
    pub email: Option<String>,
    /// What they own, in credits, holds included.
    pub credits: i32,
    /// What of it is held for jobs that have not ended.
    pub reserved: i32,
    /// When they came.
    pub created_at: DateTime<Utc>,
    /// When they deleted it.
    pub deleted_at: Option<DateTime<Utc>>,
}

/// The accounts that `name` may mean: an id, an email address in any case, or a subject. An address is no
/// identity, so that there may be several.
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

/// The account called `id`.
pub async fn get(pool: &PgPool, id: UserId) -> sqlx::Result<Option<Account>> {
    let found = find(pool, &id.to_string()).await?;
    // An id can also be somebody's subject, and is the subject of an account that was deleted.
    Ok(found.into_iter().find(|account| account.id == id))
}
