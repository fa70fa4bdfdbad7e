//! Moves the accounts to another issuer, when the URL of the identity provider changes.

use sqlx::PgPool;

use super::lookup::Account;
use crate::{UserId, db};

#[derive(Debug)]
pub enum IssuerChange {
    Changed {
        /// The number of accounts that got the new issuer.
        accounts: u64,
        /// The accounts at the new issuer that were disabled.
        set_aside: Vec<Account>,
    },
    /// The accounts at the new issuer of people who also have an account at the old issuer. Nothing was changed.
    Taken(Vec<Account>),
}

/// Moves all accounts from the issuer `old` to the issuer `new`, where the same people must have the same subjects. If
/// a person has accounts at both, nothing changes, unless `sets_aside`: then the account at `new` is disabled by an
/// issuer of its own, where nobody can sign in. People who deleted their account are no longer recognized by
/// [`crate::users::find_or_create`]: only hashes of their identities are stored.
pub async fn change_issuer(
    pool: &PgPool,
    old: &str,
    new: &str,
    sets_aside: bool,
) -> sqlx::Result<IssuerChange> {
    let mut tx = db::begin(pool).await?;
    // A million accounts take about as long as a statement may take otherwise.
    sqlx::query!("set local statement_timeout = 0").execute(&mut *tx).await?;
    // Otherwise a sign-in between the check and the update would make it fail.
    sqlx::query!("lock table users in share row exclusive mode").execute(&mut *tx).await?;
    let taken = sqlx::query_as!(
        Account,
        r#"select id as "id: UserId", issuer, subject, email, credits, reserved, created_at, deleted_at
           from users account where issuer = $2 and exists (
               select from users other where other.issuer = $1 and other.subject = account.subject)
           order by created_at, id"#,
        old,
        new,
    )
    .fetch_all(&mut *tx)
    .await?;
    if !taken.is_empty() && !sets_aside {
        return Ok(IssuerChange::Taken(taken));
    }
    let ids: Vec<_> = taken.iter().map(|account| account.id.uuid()).collect();
    sqlx::query!("update users set issuer = 'set-aside:' || id where id = any($1)", &ids)
        .execute(&mut *tx)
        .await?;
    let changed = sqlx::query!("update users set issuer = $2 where issuer = $1", old, new)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(IssuerChange::Changed { accounts: changed.rows_affected(), set_aside: taken })
}
