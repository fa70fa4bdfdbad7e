//! Statements read few rows, whatever the planner expects: the statistics are old, or a plan is made for all owners at once.

use std::time::Duration;

use retouch_catalog::{FixMode, JobClass, Tier, ToolName};
use retouch_core::WorkerId;
use retouch_core::jobs::{self, Isolation};
use retouch_standins::testing::{image, user};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

/// Opens a pool of one connection, so that its plans are reused and its reads are counted.
async fn one_connection(options: PgPoolOptions, database: PgConnectOptions) -> PgPool {
    options.max_connections(1).connect_with(database).await.unwrap()
}

/// Returns how many rows of `table` have been read so far.
async fn rows_read(pool: &PgPool, table: &str) -> i64 {
    sqlx::query("select pg_stat_force_next_flush()").execute(pool).await.unwrap();
    sqlx::query_scalar(
        "select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = $1",
    )
    .bind(table)
    .fetch_one(pool)
    .await
    .unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_claim_reads_few_jobs_of_a_queue_that_was_empty_when_it_was_analyzed(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let pool = one_connection(options, database).await;
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    sqlx::raw_sql("alter table jobs set (autovacuum_enabled = off)").execute(&pool).await.unwrap();
    let done = "insert into jobs (id, owner_id, image_id, tool, tier, cost, state, started_at, finished_at)
                select gen_random_uuid(), $1, $2, 'remove-background', case n % 2 when 0 then 'paid' else 'free' end,
                       case n % 2 when 0 then 5 else 0 end, 'done', now(), now()
                from generate_series(1, 3000) n";
    // The jobs of the class that comes first in the index of the queue are not those that are claimed.
    let queued = "insert into jobs (id, owner_id, image_id, tool, tier, cost, turn)
                  select gen_random_uuid(), $1, $2, 'remove-background', case when n > 900 then 'paid' else 'free' end,
                         case when n > 900 then 5 else 0 end, n
                  from generate_series(1, 1000) n";
    sqlx::query(done).bind(ada.uuid()).bind(picture.uuid()).execute(&pool).await.unwrap();
    sqlx::raw_sql("analyze jobs").execute(&pool).await.unwrap();
    sqlx::query(queued).bind(ada.uuid()).bind(picture.uuid()).execute(&pool).await.unwrap();

    let before = rows_read(&pool, "jobs").await;
    let class = [JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground }];
    let lease = Duration::from_mins(1);
    for _ in 0..8 {
        let isolation = Isolation::Shared;
        let claimed =
            jobs::claim(&pool, WorkerId::new(), &class, &FixMode::ALL, isolation, lease).await;
        assert!(claimed.unwrap().is_some());
    }
    let read = rows_read(&pool, "jobs").await - before;
    assert!(read < 8 * 100, "8 claims read {read} rows");
}
