//! The free tools for visitors: one run per image, some per hour, deleted after an hour.

use std::sync::Arc;

use axum::http::StatusCode;
use sqlx::PgPool;

use crate::app::{TestApp, png};

const RUN: &str = "/api/free/remove-bg-fr";

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitor_gets_the_result_once_per_image(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let worker = app.work_once();
    let answer = app.post(RUN).file(&png(100, 80)).send().await;
    worker.await.unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "image/png"));
    assert_eq!(answer.body, png(64, 48));
    app.post(RUN).file(&png(100, 80)).send().await.is_problem(409, "Free Exists");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitors_job_can_be_read_without_a_token(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let accepted = app.post(RUN).file(&png(100, 80)).asynchronously().send().await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    let job = accepted.json()["id"].as_str().unwrap().to_owned();
    app.work_once().await.unwrap();
    let done = app.get(&format!("/api/jobs/{job}")).send().await.json();
    assert_eq!(done["state"], "done");
    let picture = app.get(done["results"][0]["url"].as_str().unwrap()).send().await;
    assert_eq!(picture.body, png(64, 48));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_address_gets_ten_runs_an_hour(pool: PgPool) {
    let app = TestApp::start(pool).await;
    for n in 0..11 {
        let answer = app.post(RUN).file(&png(50 + n, 40)).asynchronously().send().await;
        if n < 10 {
            assert_eq!(answer.status, StatusCode::ACCEPTED, "run {n}: {}", answer.text());
        } else {
            assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
            let wait: u64 = answer.header("retry-after").parse().unwrap();
            assert!((1..=360).contains(&wait), "{wait}");
        }
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_visitors_queue_is_limited(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--visitor-queue=2"]).await;
    for n in 0..3 {
        let answer = app.post(RUN).file(&png(50 + n, 40)).asynchronously().send().await;
        if n < 2 {
            assert_eq!(answer.status, StatusCode::ACCEPTED);
        } else {
            answer.is_problem(503, "Too many free runs are waiting. Try again in a minute.");
            assert_eq!(answer.header("retry-after"), "60");
        }
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitors_image_is_deleted_after_an_hour(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let worker = app.work_once();
    app.post(RUN).file(&png(100, 80)).send().await;
    worker.await.unwrap();
    retouch_core::janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    assert_eq!(app.bucket.storage.keys().await.unwrap().len(), 4);
    sqlx::query("update images set expires_at = now() - interval '1 second'")
        .execute(&app.pool)
        .await
        .unwrap();
    retouch_core::janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    assert_eq!(app.bucket.storage.keys().await.unwrap(), Vec::<String>::new());
}
