//! Statements read few rows, whatever the planner expects: its statistics are old, or its plan is the same for small
//! and large accounts.

use std::time::Duration;

use retouch_catalog::{FixMode, JobClass, Tier, ToolName};
use retouch_core::images::Image;
use retouch_core::jobs::{self, Isolation};
use retouch_core::webhooks::{self, Lane, Room};
use retouch_core::{UserId, WorkerId, accounts, images};
use retouch_standins::testing::{image, user};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

/// Opens a pool of one connection, so that its plans are reused and its reads are counted.
async fn one_connection(options: PgPoolOptions, database: PgConnectOptions) -> PgPool {
    let pool = options.max_connections(1).connect_with(database).await.unwrap();
    // As with large tables: the small ones of a test are sometimes cheaper to read from end to end.
    sqlx::raw_sql("set enable_seqscan = off").execute(&pool).await.unwrap();
    pool
}

/// Returns how many rows of `table` and entries of its indexes have been read so far.
async fn entries_read(pool: &PgPool, table: &str) -> i64 {
    sqlx::query("select pg_stat_force_next_flush()").execute(pool).await.unwrap();
    sqlx::query_scalar(
        "select ((select seq_tup_read from pg_stat_user_tables where relname = $1)
                 + (select sum(idx_tup_read) from pg_stat_user_indexes where relname = $1))::bigint",
    )
    .bind(table)
    .fetch_one(pool)
    .await
    .unwrap()
}

/// Stores 500 accounts with an image and eight failed runs, and one with 1,000 images and a failed run of each, which
/// it returns. So Postgres expects few images and jobs of an owner.
async fn large_account(pool: &PgPool) -> UserId {
    let ada = user(pool, "ada", 0).await;
    let others = "insert into users (id, issuer, subject)
                  select gen_random_uuid(), 'elsewhere', n::text from generate_series(1, 500) n";
    let images = "insert into images (id, owner_id, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height)
                  select gen_random_uuid(), users.id, users.id || ' ' || n, '', 'image/png', '', 1, 1, 1
                  from users, generate_series(1, case when users.id = $1 then 1000 else 1 end) n";
    let jobs = "insert into jobs (id, owner_id, image_id, tool, tier, cost, state, failure_code, failure_detail, finished_at)
                select gen_random_uuid(), owner_id, images.id, 'remove-background', 'paid', 5, 'failed', 'lost', 'Lost', now()
                from images, generate_series(1, case when owner_id = $1 then 1 else 8 end) order by random()";
    sqlx::raw_sql(others).execute(pool).await.unwrap();
    sqlx::query(images).bind(ada.uuid()).execute(pool).await.unwrap();
    sqlx::query(jobs).bind(ada.uuid()).execute(pool).await.unwrap();
    sqlx::raw_sql("analyze images, jobs").execute(pool).await.unwrap();
    ada
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

    let before = entries_read(&pool, "jobs").await;
    let class = [JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground }];
    let lease = Duration::from_mins(1);
    for _ in 0..8 {
        let isolation = Isolation::Shared;
        let claimed =
            jobs::claim(&pool, WorkerId::new(), &class, &FixMode::ALL, isolation, lease).await;
        assert!(claimed.unwrap().is_some());
    }
    let read = entries_read(&pool, "jobs").await - before;
    assert!(read < 8 * 100, "8 claims read {read} rows and entries");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn looking_for_repeats_reads_few_jobs_of_a_large_account(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let pool = one_connection(options, database).await;
    let ada = large_account(&pool).await;
    let recent = jobs::recent(&pool, ada, 20).await.unwrap();
    let failed: Vec<_> = recent.iter().map(|job| job.id).collect();

    let before = entries_read(&pool, "jobs").await;
    for _ in 0..8 {
        assert!(jobs::no_longer_needed(&pool, &failed).await.unwrap().is_empty());
    }
    let read = entries_read(&pool, "jobs").await - before;
    assert!(read < 8 * 100, "{read} rows and entries for 8 times 20 jobs");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn some_images_of_a_large_account_are_read_and_deleted_by_their_ids(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let pool = one_connection(options, database).await;
    let ada = large_account(&pool).await;
    let some = images::list(&pool, ada, None, 160).await.unwrap();
    let ids: Vec<_> = some.iter().map(|image| image.id).collect();

    let before = entries_read(&pool, "images").await;
    for twenty in ids.chunks(20) {
        assert_eq!(images::owned_many(&pool, ada, twenty).await.unwrap().len(), 20);
    }
    let read = entries_read(&pool, "images").await - before;
    assert!(read < 8 * 100, "{read} rows and entries for 8 times 20 images");

    let before = entries_read(&pool, "images").await;
    for twenty in ids.chunks(20) {
        assert_eq!(images::delete_many(&pool, ada, twenty).await.unwrap().images.len(), 20);
    }
    let read = entries_read(&pool, "images").await - before;
    assert!(read < 8 * 200, "{read} rows and entries to delete 8 times 20 images");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_page_of_an_export_reads_no_image_of_another_page(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let pool = one_connection(options, database).await;
    let ada = large_account(&pool).await;

    let before = entries_read(&pool, "images").await;
    let mut last = None;
    for _ in 0..8 {
        let page = accounts::images_after(&pool, ada, last, 20).await.unwrap();
        assert_eq!(page.len(), 20);
        last = page.last().map(Image::cursor);
    }
    let read = entries_read(&pool, "images").await - before;
    assert!(read < 8 * 100, "{read} rows and entries for 8 pages of 20 images");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_expired_images_reads_only_their_jobs(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let pool = one_connection(options, database).await;
    // When they were analyzed, all images were due; now three are.
    sqlx::raw_sql(
        "alter table images set (autovacuum_enabled = off);
         insert into images (id, visitor, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height,
                             expires_at)
         select gen_random_uuid(), 'someone', n || '/original', n || '/thumbnail', 'image/png', '', 1, 1, 1, now()
         from generate_series(1, 1000) n;
         insert into jobs (id, image_id, tool, tier, cost, state, started_at, finished_at)
         select gen_random_uuid(), id, 'remove-background', 'visitor', 0, 'done', now(), now() from images;
         analyze images, jobs, results;
         update images set expires_at = now() + interval '1 hour' where object_key not in ('1/original', '2/original', '3/original')",
    )
    .execute(&pool)
    .await
    .unwrap();

    let before = entries_read(&pool, "jobs").await;
    assert_eq!(images::delete_expired(&pool).await.unwrap(), 3);
    let read = entries_read(&pool, "jobs").await - before;
    assert!(read < 100, "{read} rows and entries for 3 images");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_claim_reads_no_deliveries_that_wait_for_their_next_attempt(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let pool = one_connection(options, database).await;
    let ada = user(&pool, "ada", 0).await;
    let hooks = "insert into webhooks (id, owner_id, url, description, events, credits_below, secret, is_slow)
                 select gen_random_uuid(), $1, 'https://example.com', '', '{job.done}', 1, decode(repeat('07', 32), 'hex'), true
                 from generate_series(1, 300)";
    let waiting = "insert into webhook_deliveries (webhook_id, id, event, balance, due_at)
                   select id, gen_random_uuid(), 'webhook.test', 0, now() + interval '1 hour'
                   from webhooks, generate_series(1, 10)";
    let due = "insert into webhook_deliveries (webhook_id, id, event, balance)
               (select id, gen_random_uuid(), 'webhook.test', 0 from webhooks limit 8)";
    sqlx::query(hooks).bind(ada.uuid()).execute(&pool).await.unwrap();
    sqlx::raw_sql(waiting).execute(&pool).await.unwrap();
    sqlx::raw_sql("analyze webhooks, webhook_deliveries").execute(&pool).await.unwrap();
    sqlx::raw_sql(due).execute(&pool).await.unwrap();

    let before = entries_read(&pool, "webhook_deliveries").await;
    let room = Room { free: 1, per_webhook: 2, per_owner: 4, of_webhooks: &[], of_owners: &[] };
    for _ in 0..8 {
        let lease = Duration::from_mins(1);
        assert_eq!(webhooks::claim(&pool, Lane::Fast, room, lease).await.unwrap().len(), 0);
        assert_eq!(webhooks::claim(&pool, Lane::Slow, room, lease).await.unwrap().len(), 1);
    }
    let read = entries_read(&pool, "webhook_deliveries").await - before;
    assert!(read < 16 * 50, "16 claims read {read} rows and entries");
}
