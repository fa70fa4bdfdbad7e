//! Jobs through real worker processes: success, failure, crashes, outages, cancellation and fairness.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use retouch_catalog::{JobClass, Tier, ToolName};
use retouch_core::jobs::{self, JobState};
use retouch_core::results;
use retouch_core::workers;
use retouch_standins::testing::{ISSUER, eventually, image, sign_in};
use sqlx::PgPool;
use tokio::sync::broadcast;

use crate::process::{Services, picture};
use crate::{photo, repository};

const TIMEOUT: Duration = Duration::from_mins(1);

/// Creates a models folder that binds `model` for every tier.
pub fn only(model: &str) -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    std::os::unix::fs::symlink(repository().join("models").join(model), folder.path().join(model))
        .unwrap();
    let bind = |tier| {
        format!(
            "[[bind]]\ntool = \"remove-background\"\ntier = \"{tier}\"\ndevice = \"any\"\nmodel = \"{model}\"\n"
        )
    };
    let tools: String = ["paid", "free", "visitor"].into_iter().map(bind).collect();
    std::fs::write(folder.path().join("tools.toml"), tools).unwrap();
    folder
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_photo_is_cut_out_and_paid_for(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let models = only("u2netp");
    let _worker = services.worker().set("RETOUCH_MODELS_DIR", models.path()).start();
    let photo = photo("astronaut.jpg");
    let photo = image(&services.pool, Some(&services.bucket.storage), services.ada, &photo).await;
    let job = services.submit_on(photo).await;
    services.until(JobState::Done, 1, TIMEOUT).await;
    let made = results::for_job(&services.pool, job).await.unwrap();
    let manifest = std::fs::read_to_string(repository().join("models/u2netp/model.toml")).unwrap();
    assert_eq!((made[0].model.as_str(), made[0].device.as_str()), ("u2netp", "cpu"));
    assert!(manifest.contains(&made[0].model_sha256), "the checksum of the model that ran");
    let png = services.bucket.storage.get(&made[0].object_key).await.unwrap();
    let cut_out = image::load_from_memory(&png).unwrap().to_rgba8();
    assert_eq!((cut_out.width(), cut_out.height()), (512, 512));
    let opaque: f64 = cut_out.pixels().map(|pixel| f64::from(pixel[3]) / 255.0).sum::<f64>()
        / f64::from(512 * 512);
    assert!((opaque - 0.551).abs() < 0.01, "coverage {opaque}");
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (15, 0));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unreadable_image_fails_with_a_reason_and_costs_nothing(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let mut worker = services.worker().start();
    let broken =
        image(&services.pool, Some(&services.bucket.storage), services.ada, b"no picture at all")
            .await;
    let missing = image(&services.pool, None, services.ada, b"x").await;
    let jobs = [
        services.submit_on(broken).await,
        services.submit_on(missing).await,
        services.submit().await,
    ];
    services.until(JobState::Failed, 2, TIMEOUT).await;
    services.until(JobState::Done, 1, TIMEOUT).await;
    for (job, code) in [(jobs[0], "image_unreadable"), (jobs[1], "image_missing")] {
        let failure = jobs::get(&services.pool, job).await.unwrap().unwrap().failure.unwrap();
        assert_eq!(failure.code, code);
        assert!(failure.detail.len() > 30, "{}", failure.detail);
    }
    assert!(worker.is_alive());
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (15, 0));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn killed_workers_lose_no_job_of_a_hundred_and_debit_none_twice(pool: PgPool) {
    let services = Services::start(pool, 100).await;
    for _ in 0..100 {
        services.submit().await;
    }
    let mut workers: Vec<_> =
        (0..2).map(|_| services.worker().set("RETOUCH_FAULT_DELAY_MS", "60").start()).collect();
    for (round, done) in [5, 20, 35, 50, 65, 80].into_iter().enumerate() {
        services.until(JobState::Done, done, TIMEOUT).await;
        workers[round % 2].restart();
    }
    services.until(JobState::Done, 100, Duration::from_mins(2)).await;
    let lost: i64 = sqlx::query_scalar("select count(*) from jobs where losses > 0")
        .fetch_one(&services.pool)
        .await
        .unwrap();
    assert!(lost > 0, "no kill hit a running job: the test proves nothing");
    services.assert_consistent().await;
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (0, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_flushed_redis_delays_a_hundred_queued_jobs_and_loses_none(pool: PgPool) {
    let services = Services::start(pool, 100).await;
    for _ in 0..100 {
        services.submit().await;
    }
    services.redis.flush_all();
    let mut worker = services.worker().set("RETOUCH_FAULT_DELAY_MS", "10").start();
    services.until(JobState::Done, 30, TIMEOUT).await;
    services.redis.flush_all();
    services.until(JobState::Done, 100, TIMEOUT).await;
    assert!(worker.is_alive());
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_survives_a_redis_outage_of_two_seconds(pool: PgPool) {
    let services = Services::start(pool, 40).await;
    let mut worker = services.worker().start();
    services.submit().await;
    services.until(JobState::Done, 1, TIMEOUT).await;
    for _ in 0..20 {
        services.submit().await;
    }
    services.redis.freeze_for(Duration::from_secs(2));
    services.submit().await;
    services.until(JobState::Done, 22, TIMEOUT).await;
    assert!(worker.is_alive());
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn jobs_run_without_redis(pool: PgPool) {
    let services = Services::start(pool, 40).await;
    // Nothing listens on port 1.
    let _worker = services.worker().set("REDIS_URL", "redis://127.0.0.1:1").start();
    for _ in 0..9 {
        services.submit().await;
    }
    services.until(JobState::Done, 9, Duration::from_secs(20)).await;
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn jobs_outlast_an_object_store_that_is_away(pool: PgPool) {
    let services = Services::start(pool, 40).await;
    let worker = services.worker().set("S3_ENDPOINT", "http://127.0.0.1:1").start();
    for _ in 0..6 {
        services.submit().await;
    }
    // One round of attempts ends at the store; then the worker claims nothing, and retries nothing.
    eventually(TIMEOUT, "the worker reports the store", || async {
        let workers = workers::live(&services.pool).await.unwrap();
        workers.first()?.problems.iter().any(|problem| problem.step == "storage").then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let attempts: i64 = sqlx::query_scalar("select sum(attempt) from jobs")
        .fetch_one(&services.pool)
        .await
        .unwrap();
    assert!(attempts <= 6, "{attempts} attempts without a store");
    assert_eq!(services.count(JobState::Queued).await, 6);
    drop(worker);
    let _worker = services.worker().start();
    services.until(JobState::Done, 6, TIMEOUT).await;
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn three_thousand_jobs_queued_without_a_worker_are_all_done_later(pool: PgPool) {
    let services = Services::start(pool, 3_000).await;
    let image = services.image().await;
    // Does what `submit` does: inserts the row, holds the price, rings the doorbell.
    sqlx::query(
        "insert into jobs (id, owner_id, image_id, tool, tier, cost)
         select gen_random_uuid(), $1, $2, 'remove-background', 'paid', 5 from generate_series(1, 3000)",
    )
    .bind(services.ada)
    .bind(image)
    .execute(&services.pool)
    .await
    .unwrap();
    sqlx::query("update users set reserved = 15000").execute(&services.pool).await.unwrap();
    let class = JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground };
    services.queue.ring_for_any(class, 3_000).await.unwrap();
    let started = std::time::Instant::now();
    let mut workers: Vec<_> = (0..2).map(|_| services.worker().start()).collect();
    services.until(JobState::Done, 3_000, Duration::from_mins(10)).await;
    eprintln!("3,000 jobs in {:?}", started.elapsed());
    assert!(workers.iter_mut().all(crate::process::WorkerProcess::is_alive));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_crashes_its_worker_fails_after_three_attempts_and_others_are_done(
    pool: PgPool,
) {
    let services = Services::start(pool, 20).await;
    let poison =
        image(&services.pool, Some(&services.bucket.storage), services.ada, &picture(77, 48)).await;
    sqlx::query("update images set width = 77 where id = $1")
        .bind(poison)
        .execute(&services.pool)
        .await
        .unwrap();
    let mut others = vec![services.submit().await];
    let poison = services.submit_on(poison).await;
    for _ in 0..8 {
        others.push(services.submit().await);
    }
    let mut worker = services
        .worker()
        .set("RETOUCH_FAULT_ABORT_AT_WIDTH", "77")
        .set("RETOUCH_FAULT_DELAY_MS", "50")
        .set("RETOUCH_LEASE_SECS", "1")
        .start();
    let mut crashes = 0;
    let deadline = std::time::Instant::now() + Duration::from_secs(90);
    while services.count(JobState::Failed).await + services.count(JobState::Done).await < 10 {
        crashes += i32::from(worker.restart_if_dead());
        assert!(std::time::Instant::now() < deadline, "not done; see {}", worker.log.display());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(crashes, 3);
    let failed = jobs::get(&services.pool, poison).await.unwrap().unwrap();
    assert_eq!(
        (failed.state, failed.attempt, failed.failure.unwrap().code.as_str()),
        (JobState::Failed, 3, "worker_crashed")
    );
    for job in others {
        assert_eq!(jobs::get(&services.pool, job).await.unwrap().unwrap().state, JobState::Done);
    }
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (100 - 9 * 5, 0));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_panics_fails_at_once_and_the_worker_lives(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let job = services.submit().await;
    let width = sqlx::query_scalar::<_, i32>("select width from images")
        .fetch_one(&services.pool)
        .await
        .unwrap();
    let mut worker =
        services.worker().set("RETOUCH_FAULT_PANIC_AT_WIDTH", width.to_string()).start();
    services.until(JobState::Failed, 1, TIMEOUT).await;
    let failed = jobs::get(&services.pool, job).await.unwrap().unwrap();
    assert_eq!((failed.attempt, failed.failure.unwrap().code.as_str()), (1, "internal_error"));
    assert!(!worker.restart_if_dead());
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (20, 0));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_whose_result_the_database_refuses_fails_after_three_attempts(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    sqlx::query("alter table results add constraint refuses_all check (false)")
        .execute(&services.pool)
        .await
        .unwrap();
    let job = services.submit().await;
    let _worker = services.worker().start();
    services.until(JobState::Failed, 1, TIMEOUT).await;
    let failed = jobs::get(&services.pool, job).await.unwrap().unwrap();
    assert_eq!((failed.attempt, failed.failure.unwrap().code.as_str()), (3, "internal_error"));
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (20, 0));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_stopping_worker_finishes_or_hands_back_its_jobs_without_counting_an_attempt(
    pool: PgPool,
) {
    let services = Services::start(pool, 20).await;
    for _ in 0..6 {
        services.submit().await;
    }
    // Running jobs have enough time to finish.
    let mut worker = services.worker().set("RETOUCH_FAULT_DELAY_MS", "500").start();
    services.until(JobState::Running, 3, TIMEOUT).await;
    worker.terminate();
    assert!(worker.wait(Duration::from_secs(10)).success(), "see {}", worker.log.display());
    assert_eq!(
        (services.count(JobState::Done).await, services.count(JobState::Queued).await),
        (3, 3)
    );
    // Running jobs do not have enough time, so they are handed back.
    let mut worker = services
        .worker()
        .set("RETOUCH_FAULT_DELAY_MS", "20000")
        .set("RETOUCH_DRAIN_SECS", "1")
        .start();
    services.until(JobState::Running, 3, TIMEOUT).await;
    worker.terminate();
    assert!(worker.wait(Duration::from_secs(10)).success(), "see {}", worker.log.display());
    let counted = "select attempt - interruptions from jobs where state = 'queued'";
    let counted: Vec<i32> = sqlx::query_scalar(counted).fetch_all(&services.pool).await.unwrap();
    assert_eq!(counted, [0, 0, 0]);
    let _worker = services.worker().start();
    services.until(JobState::Done, 6, TIMEOUT).await;
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_canceled_job_stops_and_leaves_nothing(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let mut worker = services.worker().set("RETOUCH_FAULT_DELAY_MS", "30000").start();
    let job = services.submit().await;
    services.until(JobState::Running, 1, TIMEOUT).await;
    assert!(jobs::cancel(&services.pool, job).await.unwrap());
    // No event is published, so the next lease renewal notices.
    eventually(Duration::from_secs(5), "the worker stopped the job", || async {
        std::fs::read_to_string(&worker.log).unwrap().contains("Lost the lease").then_some(())
    })
    .await;
    assert!(worker.is_alive());
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (20, 0));
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_is_canceled_while_it_waits_for_memory_never_starts(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    services.submit().await;
    // It takes all memory.
    sqlx::query("update images set width = 6000, height = 6000")
        .execute(&services.pool)
        .await
        .unwrap();
    let mut worker = services
        .worker()
        .set("RETOUCH_PICTURE_MEMORY_MIB", "64")
        .set("RETOUCH_FAULT_DELAY_MS", "15000")
        .start();
    services.until(JobState::Running, 1, TIMEOUT).await;
    let second = services.submit().await;
    services.until(JobState::Running, 2, TIMEOUT).await;
    assert!(jobs::cancel(&services.pool, second).await.unwrap());
    eventually(Duration::from_secs(8), "the worker gave it up", || async {
        std::fs::read_to_string(&worker.log).unwrap().contains("Lost the lease").then_some(())
    })
    .await;
    assert_eq!(services.count(JobState::Running).await, 1, "the first still runs");
    services.until(JobState::Done, 1, TIMEOUT).await;
    assert!(worker.is_alive());
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_long_job_keeps_its_lease_and_runs_once(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let _workers: Vec<_> = (0..2)
        .map(|_| {
            services
                .worker()
                .set("RETOUCH_FAULT_DELAY_MS", "5000")
                .set("RETOUCH_LEASE_SECS", "1")
                .start()
        })
        .collect();
    let job = services.submit().await;
    services.until(JobState::Done, 1, TIMEOUT).await;
    assert_eq!(jobs::get(&services.pool, job).await.unwrap().unwrap().attempt, 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn running_jobs_never_exceed_the_picture_memory(pool: PgPool) {
    let services = Services::start(pool, 8).await;
    for _ in 0..8 {
        services.submit().await;
    }
    // At 24 bytes per pixel each job takes 824 MiB, so 1,700 MiB allow two at once in spite of four slots.
    sqlx::query("update images set width = 6000, height = 6000")
        .execute(&services.pool)
        .await
        .unwrap();
    let (sender, mut events) = broadcast::channel(4096);
    let queue = services.queue.clone();
    tokio::spawn(async move { queue.forward_events(sender).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _worker = services
        .worker()
        .set("RETOUCH_JOBS_IN_FLIGHT", "4")
        .set("RETOUCH_PICTURE_MEMORY_MIB", "1700")
        .set("RETOUCH_FAULT_DELAY_MS", "150")
        .start();
    services.until(JobState::Done, 8, TIMEOUT).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (mut running, mut peak) = (std::collections::HashSet::new(), 0);
    while let Ok(event) = events.try_recv() {
        match (event.state, event.progress) {
            (Some(JobState::Running), _) => drop(running.insert(event.job)),
            // The job has ended; its memory is released after this event.
            (_, None) => drop(running.remove(&event.job)),
            _ => {}
        }
        peak = peak.max(running.len());
    }
    assert_eq!(peak, 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_starts_within_milliseconds_on_an_idle_worker(pool: PgPool) {
    let services = Services::start(pool, 200).await;
    let _worker = services.worker().start();
    let mut images = Vec::new();
    for _ in 0..150 {
        images.push(services.image().await);
    }
    services.submit().await;
    services.until(JobState::Done, 1, TIMEOUT).await;
    for image in images {
        services.submit_on(image).await;
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    services.until(JobState::Done, 151, TIMEOUT).await;
    let waits: Vec<f64> = sqlx::query_scalar(
        "select extract(epoch from started_at - created_at)::float8 * 1000 from jobs order by 1",
    )
    .fetch_all(&services.pool)
    .await
    .unwrap();
    let (median, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    eprintln!("submit to start: p50 {median:.2} ms, p99 {p99:.2} ms");
    // The target is p99 < 10 ms on an idle machine. This machine runs other tests, so only the median is checked.
    assert!(median < 10.0, "median {median} ms");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_flood_of_free_jobs_leaves_a_slot_for_paid_ones(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let _worker = services
        .worker()
        .set("RETOUCH_JOBS_IN_FLIGHT", "3")
        .set("RETOUCH_FAULT_DELAY_MS", "1500")
        .start();
    for _ in 0..6 {
        let image = services.image().await;
        services.submit_as(image, Tier::Free).await;
    }
    services.until(JobState::Running, 2, TIMEOUT).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(services.count(JobState::Running).await, 2, "one slot is left");
    let paid = services.submit().await;
    let started = || async {
        let job = jobs::get(&services.pool, paid).await.unwrap().unwrap();
        job.started_at.map(|at| at - job.created_at)
    };
    let waited = eventually(TIMEOUT, "the paid run started", started).await;
    assert!(waited.num_milliseconds() < 700, "it waited {waited}");
    // The free jobs run in three rounds of two; each round starts as soon as a slot is free.
    services.until(JobState::Done, 7, TIMEOUT).await;
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_paid_suspect_runs_in_the_end_however_much_paid_work_waits(pool: PgPool) {
    let services = Services::start(pool, 400).await;
    let suspect = services.submit().await;
    // It has waited for longer than its patience.
    sqlx::query("update jobs set losses = 1, run_after = now() - interval '31 seconds'")
        .execute(&services.pool)
        .await
        .unwrap();
    for _ in 0..60 {
        services.submit().await;
    }
    let _worker = services.worker().set("RETOUCH_FAULT_DELAY_MS", "400").start();
    eventually(TIMEOUT, "the suspect is done", || async {
        let job = jobs::get(&services.pool, suspect).await.unwrap().unwrap();
        (job.state == JobState::Done).then_some(())
    })
    .await;
    let others = services.count(JobState::Done).await - 1;
    assert!(others < 40, "{others} of 60 other jobs were done before it");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_flood_of_free_jobs_does_not_delay_a_suspect(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let alone = services.submit().await;
    // The suspect lost a worker before and becomes due after the flood has started.
    let due = |when: &'static str| {
        sqlx::query("update jobs set losses = 1, run_after = now() + $2::interval where id = $1")
            .bind(alone.uuid())
            .bind(when)
            .execute(&services.pool)
    };
    due("1 hour").await.unwrap();
    for _ in 0..30 {
        let image = services.image().await;
        services.submit_as(image, Tier::Free).await;
    }
    let _worker = services.worker().set("RETOUCH_FAULT_DELAY_MS", "400").start();
    services.until(JobState::Done, 1, TIMEOUT).await;
    due("0 seconds").await.unwrap();
    let done = || async {
        let job = jobs::get(&services.pool, alone).await.unwrap().unwrap();
        (job.state == JobState::Done).then_some(())
    };
    eventually(TIMEOUT, "the job that runs alone was done", done).await;
    let free = services.count(JobState::Done).await - 1;
    assert!((1..25).contains(&free), "{free} of 30 free runs were done before it");
    services.until(JobState::Done, 31, TIMEOUT).await;
    services.assert_consistent().await;
}
