//! What an operator does to a balance, and what a deleted account leaves of it.

use sqlx::{PgConnection, PgPool};

use crate::UserId;
use crate::db;

/// A change of a balance by an operator's hand.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment<'a> {
    /// Whose balance.
    pub user: UserId,
    /// What to add; negative to take away. Not zero.
    pub amount: i32,
    /// The same change is made once, however often it is asked for.
    pub reference: &'a str,
    /// Why, for whoever reads the books. It stays for ever: no names.
    pub note: Option<&'a str>,
}

/// What became of an adjustment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjusted {
    /// The balance changed.
    Now,
    /// The same had been done before.
    Before,
}

/// Why a balance was not adjusted.
#[derive(Debug, thiserror::Error)]
pub enum AdjustError {
    /// There is nothing to change.
    #[error("the amount is 0")]
    Nothing,
    /// There is no such account (any more).
    #[error("there is no such account, or it was deleted")]
    NoSuchUser,
    /// What is held for jobs cannot be taken away.
    #[error(
        "only {available} credits can be taken away: the rest is held for jobs or was never there"
    )]
    Held {
        /// What could be taken.
        available: i32,
    },
    /// The reference stands for something else.
    #[error("this reference was used for another user or another amount")]
    ReferenceReused,
    /// The database did not answer or refused.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Changes a balance by an operator's hand, once for each reference; never below what is held.
pub async fn adjust(pool: &PgPool, change: &Adjustment<'_>) -> Result<Adjusted, AdjustError> {
    if change.amount == 0 {
        return Err(AdjustError::Nothing);
    }
    let mut tx = db::begin(pool).await?;
    let user = sqlx::query!(
        r#"select credits - reserved as "available!" from users
           where id = $1 and deleted_at is null for update"#,
        change.user.uuid(),
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or(AdjustError::NoSuchUser)?;
    let added = sqlx::query!(
        "insert into ledger (user_id, kind, amount, reference, note)
         select $1, 'admin', $2, $3, $4 where $5::int + $2 >= 0
         on conflict on constraint ledger_reference_once do nothing",
        change.user.uuid(),
        change.amount,
        change.reference,
        change.note,
        user.available,
    )
    .execute(&mut *tx)
    .await?;
    if added.rows_affected() == 1 {
        tx.commit().await?;
        return Ok(Adjusted::Now);
    }
    let earlier = sqlx::query!(
        r#"select user_id as "user: UserId", amount from ledger where kind = 'admin' and reference = $1"#,
        change.reference,
    )
    .fetch_optional(&mut *tx)
    .await?;
    match earlier {
        Some(same) if same.user == change.user && same.amount == change.amount => {
            Ok(Adjusted::Before)
        }
        Some(_) => Err(AdjustError::ReferenceReused),
        None => Err(AdjustError::Held { available: user.available }),
    }
}

/// Takes all that is left from an account that is being deleted. The caller has locked its row and ended
/// its jobs.
pub(crate) async fn forfeit(conn: &mut PgConnection, user: UserId) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ledger (user_id, kind, amount)
         select id, 'forfeit', -credits from users where id = $1 and credits > 0",
        user.uuid(),
    )
    .execute(conn)
    .await
    .map(drop)
}
