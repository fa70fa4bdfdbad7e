//! Remove Background: prices, free runs and repeated requests.

use std::sync::Arc;

use axum::http::StatusCode;
use retouch_core::jobs::Failure;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{TestApp, png};

fn paid(image: &str) -> String {
    format!("/api/rmbg-images/remove-bg-ai?imageId={image}")
}

fn free(image: &str) -> String {
    format!("/api/rmbg-images/remove-bg-free?imageId={image}")
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_paid_run_waits_for_its_result_and_costs_five_credits(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    for (method, credits) in [("GET", 15), ("POST", 10)] {
        let worker = app.work_once();
        let answer = app.request(method.parse().unwrap(), &paid(&image)).by(&ada).send().await;
        worker.await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.header("cache-control"), "no-store");
        let results = answer.json();
        assert_eq!(results.as_array().unwrap().len(), 1);
        assert_eq!((&results[0]["credits"], &results[0]["model"]), (&json!(5), &json!("tiny")));
        assert_eq!(app.balance("ada").await, (credits, 0));
    }
    let list = app.get(&format!("/api/rmbg-images/{image}")).by(&ada).send().await.json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    let first = list[0]["imageId"].as_str().unwrap();
    assert_eq!(app.get(list[0]["url"].as_str().unwrap()).send().await.body, png(64, 48));
    let deleted = app.delete(&format!("/api/rmbg-images/{first}")).by(&ada).send().await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    app.delete(&format!("/api/rmbg-images/{first}"))
        .by(&ada)
        .send()
        .await
        .is_problem(404, "Result not found");
    app.get(list[0]["url"].as_str().unwrap()).send().await.is_problem(404, "File not found");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn head_requests_run_nothing(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let document = app.get("/api/openapi.json").send().await.json();
    let has_both = |path: &Value| ["get", "post"].iter().all(|method| path.get(method).is_some());
    let paths = document["paths"].as_object().unwrap().iter().filter(|(_, path)| has_both(path));
    // The GET of these lists what their POST creates.
    let acting = paths.filter(|(path, _)| !["/api/keys", "/api/webhooks"].contains(&path.as_str()));
    let acting: Vec<_> = acting.map(|(path, _)| format!("{path}?imageId={image}")).collect();
    assert_eq!(acting.len(), 8, "{acting:?}");
    for path in acting {
        let head = app.request(axum::http::Method::HEAD, &path).by(&ada).asynchronously();
        assert_eq!(head.send().await.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
    let head = app.request(axum::http::Method::HEAD, "/api/images").by(&ada).send().await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(app.balance("ada").await, (20, 0));
    assert!(app.claim().await.is_none());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_missing_image_id_has_its_own_error(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    for path in ["/api/rmbg-images/remove-bg-ai", "/api/rmbg-images/remove-bg-free?imageId="] {
        app.post(path).by(&ada).send().await.is_problem(400, "Image ID is missing.");
    }
    assert_eq!(app.balance("ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn each_image_has_one_free_run(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let worker = app.work_once();
    let results = app.get(&free(&image)).by(&ada).send().await.json();
    worker.await.unwrap();
    assert_eq!((&results[0]["tier"], &results[0]["credits"]), (&json!("free"), &json!(0)));
    let result = results[0]["imageId"].as_str().unwrap();
    app.delete(&format!("/api/rmbg-images/{result}")).by(&ada).send().await;
    app.get(&free(&image)).by(&ada).send().await.is_problem(409, "Free Exists");
    assert_eq!(app.balance("ada").await, (20, 0));
    let shown = app.get(&format!("/api/images/{image}")).by(&ada).send().await.json();
    assert_eq!(shown["freeRuns"], json!({"removeBackground": true, "upscale": false}));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn concurrent_runs_cannot_exceed_the_balance(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let mut images = Vec::new();
    for _ in 0..50 {
        images.push(app.upload("ada").await);
    }
    let requests =
        images.iter().map(|image| app.post(&paid(image)).by(&ada).asynchronously().send());
    let answers = futures::future::join_all(requests).await;
    let accepted = answers.iter().filter(|answer| answer.status == StatusCode::ACCEPTED).count();
    assert_eq!(accepted, 4);
    for refused in answers.iter().filter(|answer| answer.status != StatusCode::ACCEPTED) {
        refused.is_problem(402, "Not enough credits");
    }
    assert_eq!(app.balance("ada").await, (20, 20));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn fifty_concurrent_repeats_share_one_job(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let path = paid(&image);
    let requests = (0..50).map(|_| app.post(&path).by(&ada).asynchronously().send());
    let answers = futures::future::join_all(requests).await;
    let mut ids: Vec<String> =
        answers.iter().map(|answer| answer.json()["id"].to_string()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(answers[0].header("location"), format!("/api/jobs/{}", ids[0].trim_matches('"')));
    assert_eq!(app.balance("ada").await, (20, 5));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_idempotency_key_returns_the_first_response(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let worker = app.work_once();
    let first = app.post(&paid(&image)).by(&ada).header("idempotency-key", "click-1").send().await;
    worker.await.unwrap();
    let again = app.post(&paid(&image)).by(&ada).header("idempotency-key", "click-1").send().await;
    assert_eq!((first.status, again.json()), (StatusCode::OK, first.json()));
    let other = app.post(&free(&image)).by(&ada).header("idempotency-key", "click-1").send().await;
    other.is_problem(422, "This Idempotency-Key was already used for a different request.");
    let long = "k".repeat(256);
    let refused = app.post(&paid(&image)).by(&ada).header("idempotency-key", &long).send().await;
    refused.is_problem(400, "The Idempotency-Key must have 1 to 255 ASCII characters.");
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failed_run_reports_its_reason_and_costs_nothing(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    for (code, status) in [("image_unreadable", 422), ("model_failed", 500)] {
        let path = paid(&image);
        let request = app.post(&path).by(&ada).send();
        let worker = async {
            let claimed = retouch_standins::testing::eventually(
                std::time::Duration::from_secs(10),
                "a job",
                || app.claim(),
            );
            let failure = Failure { code: code.into(), detail: "It did not work.".into() };
            app.fail(claimed.await.id, &failure).await;
        };
        let (answer, ()) = tokio::join!(request, worker);
        answer.is_problem(status, "It did not work.");
        assert_eq!(answer.json()["code"], code);
        assert_eq!(app.balance("ada").await, (20, 0));
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_longer_than_the_wait_returns_the_job(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--wait-secs=1"]).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let answer = app.post(&paid(&image)).by(&ada).send().await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let job = answer.json();
    assert_eq!(
        (&job["state"], &job["position"], &job["cost"]),
        (&json!("queued"), &json!(0), &json!(5))
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_waiting_request_gets_its_result_while_redis_hangs(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let freezing = app.clone();
    let freeze = tokio::task::spawn_blocking(move || {
        freezing.redis().freeze_for(std::time::Duration::from_secs(4));
    });
    let worker = {
        let app = app.clone();
        tokio::spawn(async move {
            let claimed = retouch_standins::testing::eventually(
                std::time::Duration::from_secs(10),
                "a job",
                || app.claim(),
            );
            let job = claimed.await.id;
            app.finish_silently(job).await;
        })
    };
    let answer = app.post(&paid(&image)).by(&ada).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    worker.await.unwrap();
    freeze.await.unwrap();
}
