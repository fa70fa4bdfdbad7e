//! Hanging runs, lost devices and batches, simulated on a CPU; and the doctor.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ndarray::Array4;
use retouch_core::jobs::JobState;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Manifest;
use retouch_inference::registry::load_model;
use retouch_inference::session::{Batching, Runtime};
use retouch_standins::testing::eventually;
use retouch_worker::watchdog::{self, EXIT_HUNG};
use sqlx::PgPool;

use crate::process::Services;
use crate::{repository, settings};

const TIMEOUT: Duration = Duration::from_mins(1);

async fn attempts(pool: &PgPool) -> Vec<i32> {
    sqlx::query_scalar("select attempt from jobs order by created_at")
        .fetch_all(pool)
        .await
        .unwrap()
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

#[tokio::test]
async fn waiting_inputs_run_as_a_batch_and_each_gets_its_own_output() {
    let batching = Batching { max_inputs: Some(4), wait: Duration::from_millis(50) };
    let batched = Runtime::start(settings(batching, RunFaults::default())).unwrap();
    let folder = repository().join("models/tiny/upscale");
    let alone =
        load_model(Manifest::read(&folder).unwrap(), crate::runtime(), |_| {}).await.unwrap();
    let manifest = Manifest::read(&folder).unwrap();
    let together = Arc::new(load_model(manifest, batched.clone(), |_| {}).await.unwrap());
    let input = |seed: usize, side: usize| {
        Array4::from_shape_fn((1, 3, side, side), |(_, c, y, x)| {
            ((seed * 7 + c * 5 + y * 3 + x) % 11) as f32 / 11.0
        })
    };
    // Mixes two shapes, which cannot share a batch.
    let sides = [16, 16, 24, 16, 24, 16, 16, 16];
    let runs = sides.iter().enumerate().map(|(seed, side)| {
        let (model, input) = (Arc::clone(&together), input(seed, *side));
        tokio::spawn(async move { model.infer(input).await.unwrap().output })
    });
    let runs: Vec<_> = runs.collect();
    for ((seed, side), run) in sides.iter().enumerate().zip(runs) {
        let own = alone.infer(input(seed, *side)).await.unwrap().output;
        assert_eq!(run.await.unwrap(), own, "input {seed} of {side}");
    }
    let started = batched.runs().start("the next").number() - 1;
    assert!(started < sides.len() as u64, "{started} runs for {} inputs", sides.len());
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
