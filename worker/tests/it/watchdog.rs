//! Runs that hang, devices that are lost, inputs that run together: what a GPU does to a process, on a processor.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

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
use retouch_worker::watchdog::{self, CANNOT_GO_ON};
use sqlx::PgPool;

use crate::process::Line;
use crate::{repository, settings};

const PATIENCE: Duration = Duration::from_mins(1);

async fn attempts(pool: &PgPool) -> Vec<i32> {
    sqlx::query_scalar("select attempt from jobs order by created_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_that_hangs_ends_its_process_and_the_next_one_does_the_job(pool: PgPool) {
    let line = Line::start(pool, 2).await;
    let worker = line.worker().set("RETOUCH_FAULT_HANG_AT_RUN", "1").set("RETOUCH_STALL_SECS", "2");
    let mut hanging = worker.start();
    let started = Instant::now();
    line.submit().await;
    let ended = tokio::task::spawn_blocking(move || hanging.wait(PATIENCE)).await.unwrap();
    assert_eq!(ended.code(), Some(CANNOT_GO_ON));
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    let _next = line.worker().start();
    line.until(JobState::Done, 1, PATIENCE).await;
    assert_eq!(attempts(&line.pool).await, [2]);
    line.assert_nothing_lost_nothing_twice().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_lost_device_ends_its_process_and_no_other_job_pays_for_it(pool: PgPool) {
    let line = Line::start(pool, 8).await;
    for _ in 0..6 {
        line.submit().await;
    }
    let worker = line.worker().set("RETOUCH_FAULT_LOSE_DEVICE_AT_RUN", "3");
    let mut losing = worker.start();
    let ended = tokio::task::spawn_blocking(move || losing.wait(PATIENCE)).await.unwrap();
    assert_eq!(ended.code(), Some(CANNOT_GO_ON));
    let _next = line.worker().start();
    line.until(JobState::Done, 6, PATIENCE).await;
    // The job that lost it counts the attempt; those beside it were handed back.
    let mut attempts = attempts(&line.pool).await;
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 1, 1, 1, 1, 2]);
    line.assert_nothing_lost_nothing_twice().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_health_file_is_fresh_while_the_worker_lives(pool: PgPool) {
    let line = Line::start(pool, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("health");
    let mut worker = line.worker().set("RETOUCH_HEALTH_FILE", &file).start();
    eventually(PATIENCE, "a health file", || async { file.exists().then_some(()) }).await;
    let asked = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
        .arg("healthcheck")
        .env("RETOUCH_HEALTH_FILE", &file)
        .output()
        .unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    worker.terminate();
    tokio::task::spawn_blocking(move || worker.wait(PATIENCE)).await.unwrap();
    assert!(watchdog::check(&file, SystemTime::now() + Duration::from_mins(1)).is_err());
}

#[tokio::test]
async fn inputs_that_wait_run_together_and_each_gets_its_own_output() {
    let batching = Batching { most: Some(4), wait: Duration::from_millis(50) };
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
    // Two shapes mixed: what does not fit a batch is not lost.
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
    let begun = batched.runs().begin("the next").number() - 1;
    assert!(begun < sides.len() as u64, "{begun} runs for {} inputs", sides.len());
}

#[test]
fn the_doctor_names_what_is_wrong_and_what_to_do() {
    let doctor = |models: &str, device: &str| {
        let asked = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
            .arg("doctor")
            .env("RETOUCH_MODELS_DIR", repository().join(models))
            .env("RETOUCH_DEVICE", device)
            .env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing")
            .env_remove("REDIS_URL")
            .current_dir(repository())
            .output()
            .unwrap();
        (asked.status.success(), String::from_utf8_lossy(&asked.stdout).into_owned())
    };
    let (is_well, told) = doctor("models/tiny", "cpu");
    assert!(!is_well, "{told}");
    assert!(told.contains("ok    models run on cpu"), "{told}");
    assert!(told.contains("ok    segment"), "{told}");
    assert!(told.contains("WRONG Postgres"), "{told}");
    assert!(told.contains("→ check DATABASE_URL"), "{told}");
    assert!(told.contains("note  Redis was not asked"), "{told}");
    let (_, told) = doctor("models/nowhere", "cuda");
    assert!(told.contains("WRONG CUDA was asked for and cannot be used"), "{told}");
    assert!(told.contains("they need ONNX Runtime"), "{told}");
}
