//! A worker uses only the bucket of its database.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use retouch_catalog::{JobClass, Tier, ToolName};
use retouch_core::jobs::{self, JobState};
use retouch_core::storage::image_key;
use retouch_core::{JobId, workers};
use retouch_standins::testing::{eventually, image};
use sqlx::PgPool;

use crate::process::{Services, picture};

const TIMEOUT: Duration = Duration::from_secs(30);

async fn set_id(pool: &PgPool, id: &str) -> String {
    let old = sqlx::query_scalar("select id::text from installation").fetch_one(pool).await;
    sqlx::query("update installation set id = $1::uuid").bind(id).execute(pool).await.unwrap();
    old.unwrap()
}

async fn until_the_bucket_is_refused(pool: &PgPool) {
    eventually(TIMEOUT, "the worker reports the bucket", || async {
        let live = workers::live(pool).await.unwrap();
        let is_refused = |worker: &workers::Worker| {
            worker.problems.iter().any(|problem| problem.reason.contains("does not belong"))
        };
        live.iter().any(is_refused).then_some(())
    })
    .await;
}

async fn state(pool: &PgPool, job: JobId) -> JobState {
    jobs::get(pool, job).await.unwrap().unwrap().state
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_that_starts_with_another_bucket_touches_no_job(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let missing = image(&services.pool, None, services.ada, b"elsewhere").await;
    let job = services.submit_on(missing).await;
    set_id(&services.pool, "00000000-0000-0000-0000-000000000001").await;
    let _worker = services.worker().start();
    until_the_bucket_is_refused(&services.pool).await;
    // The doorbell is for other workers, however often it rings.
    for _ in 0..20 {
        let class = JobClass { tool: ToolName::RemoveBackground, tier: Tier::Paid };
        assert!(services.queue.unread(class).await.unwrap() > 0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let job = jobs::get(&services.pool, job).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempt), (JobState::Queued, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_stops_when_its_database_gets_another_bucket(pool: PgPool) {
    let services = Services::start(pool, 8).await;
    let _worker = services.worker().start();
    services.submit().await;
    services.until(JobState::Done, 1, TIMEOUT).await;

    let id = set_id(&services.pool, "00000000-0000-0000-0000-000000000001").await;
    // Before the next probe. The picture is in the new bucket.
    let elsewhere = image(&services.pool, None, services.ada, b"elsewhere").await;
    let job = services.submit_on(elsewhere).await;
    until_the_bucket_is_refused(&services.pool).await;
    assert_eq!(state(&services.pool, job).await, JobState::Queued);

    let bytes = picture(64, 48).into();
    services.bucket.storage.put(&image_key(elsewhere), "image/png", bytes).await.unwrap();
    set_id(&services.pool, &id).await;
    services.until(JobState::Done, 2, TIMEOUT).await;
    services.assert_consistent().await;
}
