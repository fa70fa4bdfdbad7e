//! Erases what a deleted account leaves behind, in batches: pictures, results, jobs and prompts.
//!
//! The deletion itself puts the account on a list. Erasing a batch locks the account's entry there, so batches of one
//! account never run at the same time; the last batch removes the entry. If the process dies, the entry stays, and the
//! janitor of any worker continues.

use sqlx::PgPool;

use crate::{JobId, UserId, db, images, jobs, users};

/// Images, and then jobs, per transaction.
const BATCH: i64 = 50;

/// Erases one batch of `user`, or of the account that has waited longest. Returns false if nothing is left to do, or
/// another process is doing it.
pub(super) async fn erase_batch(pool: &PgPool, user: Option<UserId>) -> sqlx::Result<bool> {
    let mut tx = db::begin(pool).await?;
    let unfinished = sqlx::query!(
        r#"select user_id as "user: UserId", after_job as "after_job: JobId" from unfinished_deletions
           where $1::uuid is null or user_id = $1
           order by since limit 1 for update skip locked"#,
        user.map(UserId::uuid),
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(unfinished) = unfinished else { return Ok(false) };
    let user = unfinished.user;
    users::lock(&mut tx, user).await?;
    if images::delete_some(&mut tx, user, BATCH).await? < BATCH {
        match jobs::erase_some(&mut tx, user, unfinished.after_job, BATCH).await? {
            Some(last) => sqlx::query!(
                "update unfinished_deletions set after_job = $2 where user_id = $1",
                user.uuid(),
                last.uuid(),
            ),
            None => {
                sqlx::query!("delete from unfinished_deletions where user_id = $1", user.uuid())
            }
        }
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Erases everything that deleted accounts have left, unless other processes are doing it.
pub async fn erase_deleted(pool: &PgPool) -> sqlx::Result<()> {
    while erase_batch(pool, None).await? {}
    Ok(())
}
