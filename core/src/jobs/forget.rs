//! Jobs whose time is over: of a person who leaves, or of long ago.

use sqlx::{PgConnection, PgPool};

use crate::UserId;

/// What stands in place of the words of somebody who left.
const NO_WORDS: &str = "(deleted)";

/// Forgets the jobs of `owner`, all of which have ended and lost their results; part of deleting the
/// account. Those that were paid for stay, because the ledger names them, without words and mask.
pub(crate) async fn forget_all_of(conn: &mut PgConnection, owner: UserId) -> sqlx::Result<()> {
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
        NO_WORDS,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets jobs that ended more than `days` ago and left nothing: no result, no entry in the ledger, and no
/// free run that is used up. Returns how many.
pub async fn forget_old(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let mut forgotten = 0;
    // A thousand at a time: no lock is held for long.
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
            0 => return Ok(forgotten),
            some => forgotten += some,
        }
    }
}

/// Forgets the idempotency keys of jobs that ended and were submitted more than `days` ago: nobody repeats
/// a request after so long, and the index that finds repeats stays small. Returns how many.
pub async fn forget_keys(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let mut forgotten = 0;
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
            0 => return Ok(forgotten),
            some => forgotten += some,
        }
    }
}
