//! Keeping the accounts when the identity provider gets another URL.

use sqlx::PgPool;

use super::lookup::Account;
use crate::{UserId, db};

/// The outcome of [`change_issuer`].
#[derive(Debug)]
pub enum IssuerChange {
    /// The number of accounts that now have the new issuer.
    Changed(u64),
    /// Accounts of people who already have another one at the new issuer. Nothing was changed.
    Taken(Vec<Account>),
}

/// Gives all accounts of the issuer `old` the issuer `new`, at which the same people have the same subjects. People who deleted
/// their account are no longer recognized by [`crate::users::find_or_create`]: only hashes of their identities are stored.
pub async fn change_issuer(pool: &PgPool, old: &str, new: &str) -> sqlx::Result<IssuerChange> {
    let mut tx = db::begin(pool).await?;
    // Otherwise a sign-in between the check and the update would make it fail.
    sqlx::query!("lock table users in share row exclusive mode").execute(&mut *tx).await?;
    let taken = sqlx::query_as!(
        Account,
        r#"select id as "id: UserId", issuer, subject, email, credits, reserved, created_at, deleted_at
           from users account where issuer = $1 and exists (
               select from users other where other.issuer = $2 and other.subject = account.subject)
           order by created_at, id"#,
        old,
        new,
    )
    .fetch_all(&mut *tx)
    .await?;
    if !taken.is_empty() {
        return Ok(IssuerChange::Taken(taken));
    }
    let changed = sqlx::query!("update users set issuer = $2 where issuer = $1", old, new)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(IssuerChange::Changed(changed.rows_affected()))
}
