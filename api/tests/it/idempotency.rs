//! Idempotency keys: repeats of a request, concurrent or later, share one job, one debit and one response. A key cannot
//! be reused for a different request. Keys of different users are independent.

use std::sync::Arc;

use axum::http::StatusCode;
use futures::future::join_all;
use retouch_catalog::FixMode;
use serde_json::json;
use sqlx::PgPool;

use crate::app::{Answer, TestApp, png};
use crate::magic_images::{install, mask};

const REUSED: &str = "This Idempotency-Key was already used for a different request.";

async fn jobs(app: &TestApp) -> i64 {
    sqlx::query_scalar("select count(*) from jobs").fetch_one(&app.pool).await.unwrap()
}

async fn debits(app: &TestApp) -> Vec<i32> {
    let amounts = sqlx::query_scalar("select amount from ledger where kind = 'job' order by id");
    amounts.fetch_all(&app.pool).await.unwrap()
}

fn assert_all_alike(answers: &[Answer], status: StatusCode) {
    for answer in answers {
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.json(), answers[0].json());
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn fifty_concurrent_repeats_share_one_job_one_debit_and_one_response(pool: PgPool) {
    let app = Arc::new(TestApp::start_with(pool, &["--user-runs-per-minute=100000"]).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    for (key, tool, price) in
        [("one", "rmbg-images/remove-bg-ai", 5), ("two", "upscale/upscale-ai-2", 3)]
    {
        let path = format!("/api/{tool}?imageId={image}");
        let (before, left) = (jobs(&app).await, app.balance("ada").await.0);
        let worker = app.work_once();
        // All of them, GET and POST, wait for the result.
        let answers = join_all((0..50).map(|n| {
            let method = if n % 2 == 0 { "POST" } else { "GET" };
            let request = app.request(method.parse().unwrap(), &path).by(&ada);
            request.header("idempotency-key", key).send()
        }))
        .await;
        worker.await.unwrap();
        assert_all_alike(&answers, StatusCode::OK);
        assert_eq!(answers[0].json().as_array().unwrap().len(), 1);
        assert_eq!(jobs(&app).await - before, 1);
        assert_eq!(app.balance("ada").await, (left - price, 0));
    }
    assert_eq!(debits(&app).await, [-5, -3]);
    // Also after the job has ended.
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let later =
        join_all((0..50).map(|_| app.post(&path).by(&ada).header("idempotency-key", "one").send()));
    assert_all_alike(&later.await, StatusCode::OK);
    assert_eq!((jobs(&app).await, debits(&app).await.len()), (2, 2));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_different_image_tool_tier_or_factor_is_a_different_request(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-runs-per-minute=100000"]).await;
    let (ada, image, other) = (app.token("ada"), app.upload("ada").await, app.upload("ada").await);
    let run = async |tool: &str, image: &str| {
        let path = format!("/api/{tool}?imageId={image}");
        app.post(&path).by(&ada).header("idempotency-key", "click").asynchronously().send().await
    };
    let first = run("upscale/upscale-ai-2", &image).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    for (tool, image) in [
        ("upscale/upscale-ai-2", &other),
        ("upscale/upscale-ai-4", &image),
        ("upscale/upscale-free", &image),
        ("rmbg-images/remove-bg-ai", &image),
        ("rmbg-images/remove-bg-free", &image),
    ] {
        let refused = join_all((0..10).map(|_| run(tool, image))).await;
        for answer in refused {
            answer.is_problem(422, REUSED);
        }
    }
    let again = run("upscale/upscale-ai-2", &image).await;
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(again.json()["idempotencyKey"], "click");
    assert_eq!((jobs(&app).await, app.balance("ada").await), (1, (20, 3)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn of_two_concurrent_requests_with_one_key_one_is_accepted(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let answers = join_all((0..50).map(|n| {
        let factor = if n % 2 == 0 { 2 } else { 4 };
        let path = format!("/api/upscale/upscale-ai-{factor}?imageId={image}");
        let request = app.post(&path).by(&ada).header("idempotency-key", "click");
        async move { request.asynchronously().send().await }
    }))
    .await;
    let (accepted, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == StatusCode::ACCEPTED);
    assert_eq!((accepted.len(), refused.len()), (25, 25));
    for answer in refused {
        answer.is_problem(422, REUSED);
    }
    assert!(accepted.iter().all(|answer| answer.json()["id"] == accepted[0].json()["id"]));
    let held = accepted[0].json()["cost"].as_i64().unwrap();
    assert_eq!((jobs(&app).await, app.balance("ada").await), (1, (20, held)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_of_different_users_are_independent(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let users = ["ada", "bob"];
    let images = [app.upload("ada").await, app.upload("bob").await];
    let answers = join_all((0..50).map(|n| {
        let path = format!("/api/rmbg-images/remove-bg-ai?imageId={}", images[n % 2]);
        let (app, token) = (&app, app.token(users[n % 2]));
        async move {
            let request = app.post(&path).by(&token).header("idempotency-key", "click");
            request.asynchronously().send().await
        }
    }))
    .await;
    let id = |answer: &Answer| {
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
        answer.json()["id"].clone()
    };
    for n in 2..50 {
        assert_eq!(id(&answers[n]), id(&answers[n % 2]));
    }
    assert_ne!(id(&answers[0]), id(&answers[1]));
    assert_eq!(jobs(&app).await, 2);
    for user in users {
        assert_eq!(app.balance(user).await, (20, 5));
    }
    // A key gives no access to other users' images.
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={}", images[0]);
    let bob = app.post(&path).by(&app.token("bob")).header("idempotency-key", "click").send().await;
    bob.is_problem(404, "Image not found");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_different_mask_or_prompt_is_a_different_request(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    install(&app, &[FixMode::Remove], None).await;
    let path = format!("/api/magic-images/fix/{image}");
    let fix = async |mask: &[u8], prompt: &str| {
        let request = app.post(&path).by(&ada).header("idempotency-key", "click");
        request.fix(mask, prompt).asynchronously().send().await
    };
    let (drawing, other) = (mask(64, 48), mask(32, 24));
    let answers = join_all((0..50).map(|_| fix(&drawing, "remove it"))).await;
    assert_eq!(answers[0].status, StatusCode::ACCEPTED, "{}", answers[0].text());
    assert!(answers.iter().all(|answer| answer.json()["id"] == answers[0].json()["id"]));
    for (mask, prompt) in [(&other, "remove it"), (&drawing, "erase it")] {
        let answer = fix(mask, prompt).await;
        answer.is_problem(422, REUSED);
    }
    let cut_out = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let cut_out = app.post(&cut_out).by(&ada).header("idempotency-key", "click").send().await;
    cut_out.is_problem(422, REUSED);
    assert_eq!((jobs(&app).await, app.balance("ada").await), (1, (20, 8)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_invalid_key_is_rejected_instead_of_ignored(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    for key in ["", "clé", "k\u{1F511}", &"k".repeat(256)] {
        let answer = app.post(&path).by(&ada).header("idempotency-key", key).send().await;
        answer.is_problem(400, "The Idempotency-Key must have 1 to 255 ASCII characters.");
    }
    let once = "k".repeat(255);
    let answer = app.post(&path).by(&ada).header("idempotency-key", &once);
    assert_eq!(answer.asynchronously().send().await.status, StatusCode::ACCEPTED);
    assert_eq!((jobs(&app).await, app.balance("ada").await), (1, (20, 5)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_stays_used_when_its_image_is_deleted(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image, other) = (app.token("ada"), app.upload("ada").await, app.upload("ada").await);
    let run = |image: &str| {
        let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
        app.post(&path).by(&ada).header("idempotency-key", "click").send()
    };
    let worker = app.work_once();
    assert_eq!(run(&image).await.status, StatusCode::OK);
    worker.await.unwrap();
    app.delete(&format!("/api/images/{image}")).by(&ada).send().await;
    run(&other).await.is_problem(422, REUSED);
    run(&image).await.is_problem(404, "Image not found");
}

async fn sql(pool: &PgPool, statements: &'static str) {
    sqlx::raw_sql(statements).execute(pool).await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_submission_whose_outcome_is_unknown_does_not_ask_for_a_repeat(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let run = || app.post(&path).by(&ada).header("idempotency-key", "click").asynchronously();
    app.hang_up_at_commits_of("jobs").await;
    let lost = run().send().await;
    lost.is_problem(
        500,
        "We don't know whether this run has started. Check your runs before you start it again.",
    );
    assert_eq!((&lost.json()["code"], lost.header("retry-after")), (&json!("outcome_unknown"), ""));
    sql(&app.pool, "drop trigger hangs_up on jobs").await;
    assert_eq!(run().send().await.status, StatusCode::ACCEPTED);
    assert_eq!((jobs(&app).await, app.balance("ada").await), (1, (20, 5)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_that_is_submitted_is_accepted_though_its_details_cannot_be_read(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let run = || app.post(&path).by(&ada).header("idempotency-key", "click");
    sql(&app.pool, "alter table workers rename to workers_away").await;
    let first = run().asynchronously().send().await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text());
    assert_eq!(
        (&first.json()["state"], &first.json()["position"]),
        (&json!("queued"), &json!(null))
    );
    sql(&app.pool, "alter table workers_away rename to workers").await;

    let job = app.claim().await.unwrap().id;
    app.finish(job, &png(64, 48)).await;
    // As if the database were starting.
    sql(
        &app.pool,
        "create function away() returns boolean language plpgsql as
             'begin raise exception ''away'' using errcode = ''57P03''; end';
         alter table results rename to results_away;
         create view results as select * from results_away where away()",
    )
    .await;
    let paid = run().send().await;
    assert_eq!(paid.status, StatusCode::ACCEPTED, "{}", paid.text());
    assert_eq!(paid.header("location"), format!("/api/jobs/{job}"));
    assert_eq!(
        paid.json()["state"],
        "running",
        "without results, done means that they were deleted"
    );
    sql(&app.pool, "drop view results; alter table results_away rename to results").await;
    let again = run().send().await;
    assert_eq!((again.status, &again.json()[0]["jobId"]), (StatusCode::OK, &json!(job)));
    assert_eq!(debits(&app).await, [-5]);
}
