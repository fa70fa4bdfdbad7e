//! Removing jobs: those of a deleted account, and old ones.

use sqlx::{PgConnection, PgPool};

use crate::UserId;

/// Replaces the prompts of a deleted account.
const DELETED_PROMPT: &str = "(deleted)";

/// Deletes the jobs of `owner`, who is deleting their account. The caller has ended them all and deleted their
/// results. Paid jobs stay, without prompt, mask and idempotency key, because the ledger refers to them.
pub(crate) async fn erase_jobs_of(conn: &mut PgConnection, owner: UserId) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from jobs where owner_id = $1 and not exists (select from ledger l where l.job_id = jobs.id)",
        owner.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        r"update jobs set prompt = case when prompt is not null then $2 end,
                          mask_sha256 = case when mask_sha256 is not null then '\x'::bytea end,
                          idempotency_key = null
          where owner_id = $1",
        owner.uuid(),
        DELETED_PROMPT,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Deletes jobs that ended more than `days` ago and left nothing behind: no result, no ledger entry, and no
/// used-up free run. Returns their number.
pub async fn delete_old(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let mut deleted = 0;
    // In batches of 1,000, to hold no lock for long.
    loop {
        let batch = sqlx::query!(
            "delete from jobs where id in (
                 select j.id from jobs j
                 where (j.state in ('failed', 'cancelled') or (j.state = 'done' and j.cost = 0))
                   and j.finished_at < now() - make_interval(days => $1)
                   and not exists (select from results r where r.job_id = j.id)
                   and not exists (select from ledger l where l.job_id = j.id)
                   and not exists (select from free_runs f where f.job_id = j.id)
                 limit 1000 for update of j skip locked
             )",
            days,
        )
        .execute(pool)
        .await?;
        match batch.rows_affected() {
            0 => return Ok(deleted),
            some => deleted += some,
        }
    }
}

/// Clears the idempotency keys of jobs that have ended and were submitted more than `days` ago, so that the
/// index that finds repeats stays small. Returns their number.
pub async fn clear_old_keys(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let mut cleared = 0;
    loop {
        let batch = sqlx::query!(
            "update jobs set idempotency_key = null where id in (
                 select id from jobs
                 where idempotency_key is not null and state in ('done', 'failed', 'cancelled')
                   and created_at < now() - make_interval(days => $1)
                 limit 1000 for update skip locked
             )",
            days,
        )
        .execute(pool)
        .await?;
        match batch.rows_affected() {
            0 => return Ok(cleared),
            some => cleared += some,
        }
    }
}
