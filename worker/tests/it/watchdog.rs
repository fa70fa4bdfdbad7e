//! Hanging runs and lost devices, simulated on a CPU; and the doctor.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use retouch_core::jobs::JobState;
use retouch_standins::testing::eventually;
use retouch_worker::watchdog::{self, EXIT_HUNG};
use sqlx::PgPool;

use crate::process::Services;
use crate::repository;

const TIMEOUT: Duration = Duration::from_mins(1);

async fn attempts(pool: &PgPool) -> Vec<i32> {
    sqlx::query_scalar("select attempt from jobs order by created_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

async fn suspects(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from jobs where losses > 0").fetch_one(pool).await.unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_hanging_run_ends_its_process_and_the_next_one_repeats_the_job(pool: PgPool) {
    let services = Services::start(pool, 2).await;
    let worker =
        services.worker().set("RETOUCH_FAULT_HANG_AT_RUN", "1").set("RETOUCH_STALL_SECS", "2");
    let mut hanging = worker.start();
    let started = Instant::now();
    services.submit().await;
    let ended = tokio::task::spawn_blocking(move || hanging.wait(TIMEOUT)).await.unwrap();
    assert_eq!(ended.code(), Some(EXIT_HUNG));
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    let _next = services.worker().start();
    services.until(JobState::Done, 1, TIMEOUT).await;
    assert_eq!(attempts(&services.pool).await, [2]);
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_lost_device_ends_its_process_and_costs_only_its_job_an_attempt(pool: PgPool) {
    let services = Services::start(pool, 8).await;
    for _ in 0..6 {
        services.submit().await;
    }
    let worker = services.worker().set("RETOUCH_FAULT_LOSE_DEVICE_AT_RUN", "3");
    let mut losing = worker.start();
    let ended = tokio::task::spawn_blocking(move || losing.wait(TIMEOUT)).await.unwrap();
    assert_eq!(ended.code(), Some(EXIT_HUNG));
    let _next = services.worker().start();
    services.until(JobState::Done, 6, TIMEOUT).await;
    // The job that lost the device counts the attempt; the others were handed back.
    let mut attempts = attempts(&services.pool).await;
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 1, 1, 1, 1, 2]);
    assert_eq!(suspects(&services.pool).await, 1, "its picture may be why");
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_panicking_model_ends_its_process_and_fails_no_job(pool: PgPool) {
    let services = Services::start(pool, 2).await;
    for _ in 0..3 {
        services.submit().await;
    }
    let mut panicking = services.worker().set("RETOUCH_FAULT_PANIC_AT_RUN", "3").start();
    let ended = tokio::task::spawn_blocking(move || panicking.wait(TIMEOUT)).await.unwrap();
    assert_eq!(ended.code(), Some(EXIT_HUNG));
    let _next = services.worker().start();
    services.until(JobState::Done, 3, TIMEOUT).await;
    assert_eq!(suspects(&services.pool).await, 1);
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_health_file_is_fresh_while_the_worker_is_alive(pool: PgPool) {
    let services = Services::start(pool, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("health");
    let mut worker = services.worker().set("RETOUCH_HEALTH_FILE", &file).start();
    eventually(TIMEOUT, "a health file", || async { file.exists().then_some(()) }).await;
    let check = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
        .arg("healthcheck")
        .env("RETOUCH_HEALTH_FILE", &file)
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    worker.terminate();
    tokio::task::spawn_blocking(move || worker.wait(TIMEOUT)).await.unwrap();
    assert!(watchdog::check(&file, SystemTime::now() + Duration::from_mins(1)).is_err());
}

#[test]
fn the_doctor_reports_problems_with_advice() {
    let doctor = |models: &str, device: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
            .arg("doctor")
            .env("RETOUCH_MODELS_DIR", repository().join(models))
            .env("RETOUCH_DEVICE", device)
            .env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing")
            .env_remove("REDIS_URL")
            .current_dir(repository())
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (is_well, report) = doctor("models/tiny", "cpu");
    assert!(!is_well, "{report}");
    assert!(report.contains("ok    models run on cpu"), "{report}");
    assert!(report.contains("ok    segment"), "{report}");
    assert!(report.contains("WRONG Postgres"), "{report}");
    assert!(report.contains("→ check DATABASE_URL"), "{report}");
    assert!(report.contains("note  Redis was not checked"), "{report}");
    let (_, report) = doctor("models/nowhere", "cuda");
    assert!(report.contains("WRONG CUDA was requested but does not work"), "{report}");
    assert!(report.contains("because ONNX Runtime does not start"), "{report}");
}
