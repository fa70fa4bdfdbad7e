//! Removes old jobs and the jobs of deleted accounts.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::operator::RETRY_KEY;
use crate::chores::KEYS;
use crate::{JobId, UserId};

/// Maximum number of jobs per statement.
const PAGE: i64 = 1000;
/// Replaces prompts that are deleted before their jobs.
const DELETED_PROMPT: &str = "(deleted)";

/// Deletes the next `limit` jobs after `after` of `owner`, whose account and results were deleted. Paid jobs stay,
/// without prompt, mask and idempotency key, because the ledger refers to them. Returns the last job; `None` if there
/// was none.
pub(crate) async fn erase_some(
    conn: &mut PgConnection,
    owner: UserId,
    after: Option<JobId>,
    limit: i64,
) -> sqlx::Result<Option<JobId>> {
    let some = sqlx::query_scalar!(
        "select id from jobs where owner_id = $1 and id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
         order by id limit $3",
        owner.uuid(),
        after.map(JobId::uuid),
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query!("delete from masks where job_id = any($1)", &some).execute(&mut *conn).await?;
    sqlx::query!(
        "delete from jobs where id = any($1) and not exists (select from ledger l where l.job_id = jobs.id)",
        &some,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        r"update jobs set prompt = case when prompt is not null then $2 end,
                          mask_sha256 = case when mask_sha256 is not null then '\x'::bytea end,
                          idempotency_key = null
          where id = any($1) and (prompt is not null or idempotency_key is not null)",
        &some,
        DELETED_PROMPT,
    )
    .execute(conn)
    .await?;
    Ok(some.last().copied().map(JobId::from))
}

/// Deletes the prompts of up to [`PAGE`] jobs whose image or result was deleted, and the checksums of their masks. The
/// idempotency keys stay: a repeat must not be charged again.
pub async fn delete_prompts(pool: &PgPool) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        // Literals, because these are the conditions of an index, which has few rows.
        r"update jobs set prompt = '(deleted)', mask_sha256 = '\x'::bytea
          where id in (
              select id from jobs
              where prompt is not null and prompt <> '(deleted)' and (image_id is null or result_deleted_at is not null)
                and state in ('done', 'failed', 'cancelled')
              limit $1 for update skip locked
          )",
        PAGE,
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}

/// Deletes jobs that ended more than `days` ago and left nothing behind: no result, no ledger entry, and no
/// used-up free run. Returns their number.
pub async fn delete_old(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let mut deleted = 0;
    // In pages, to hold no lock for long.
    loop {
        let page = sqlx::query!(
            // The first condition must match the index `jobs_to_delete`.
            "delete from jobs where id in (
                 select id from jobs j
                 where (state in ('failed', 'cancelled') or (state = 'done' and cost = 0 and image_id is null))
                   and finished_at < now() - make_interval(days => $1)
                   and not exists (select from results r where r.job_id = j.id)
                   and not exists (select from ledger l where l.job_id = j.id)
                   and not exists (select from free_runs f where f.job_id = j.id)
                 limit $2
             )",
            days,
            PAGE,
        )
        .execute(pool)
        .await?;
        deleted += page.rows_affected();
        if page.rows_affected() < PAGE.unsigned_abs() {
            return Ok(deleted);
        }
    }
}

/// Clears the idempotency keys of jobs that have ended and were submitted more than `days` ago, so that the
/// index that finds repeats stays small. Returns their number.
///
/// Operators' retries keep their keys: the failed jobs stay for longer, and a repeated command must not run them again.
///
/// Continues where the last round stopped, so that no round reads all jobs. One process at a time calls this.
pub async fn clear_old_keys(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let mut cleared = 0;
    let mut after = KEYS.last(pool).await?.map_or(Uuid::nil(), |(_, after)| after);
    loop {
        let page = sqlx::query!(
            r#"select id, created_at < now() - make_interval(days => $2) and state in ('done', 'failed', 'cancelled')
                   as "is_settled!"
               from jobs where id > $1 order by id limit $3"#,
            after,
            days,
            PAGE,
        )
        .fetch_all(pool)
        .await?;
        let settled: Vec<_> =
            page.iter().take_while(|job| job.is_settled).map(|job| job.id).collect();
        let Some(last) = settled.last() else { return Ok(cleared) };
        let batch = sqlx::query!(
            "update jobs set idempotency_key = null
             where id = any($1) and idempotency_key is not null and idempotency_key not like $2",
            &settled,
            format!("{RETRY_KEY}%"),
        )
        .execute(pool)
        .await?;
        cleared += batch.rows_affected();
        after = *last;
        KEYS.finish(pool, after).await?;
    }
}

/// Deletes the masks of jobs that failed more than `days` ago. Until then an operator can retry those jobs. Returns
/// their number.
pub async fn delete_old_masks(pool: &PgPool, days: i32) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from masks using jobs
         where jobs.id = masks.job_id and jobs.state = 'failed' and jobs.finished_at < now() - make_interval(days => $1)",
        days,
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}
