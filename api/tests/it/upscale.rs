//! Upscale: both factors, their prices, the free run and the size limit.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;
use sqlx::PgPool;

use crate::app::{TestApp, png};

fn run(action: &str, image: &str) -> String {
    format!("/api/upscale/upscale-{action}?imageId={image}")
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_factor_determines_the_price(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    for (method, action, factor, left) in [
        ("GET", "ai-2", 2, 17),
        ("POST", "ai-2", 2, 14),
        ("GET", "ai-4", 4, 8),
        ("POST", "ai-4", 4, 2),
    ] {
        let worker = app.work_once();
        let answer =
            app.request(method.parse().unwrap(), &run(action, &image)).by(&ada).send().await;
        worker.await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.header("cache-control"), "no-store");
        let results = answer.json();
        assert_eq!(results.as_array().unwrap().len(), 1);
        assert_eq!(results[0]["factor"], json!(factor));
        assert_eq!(app.balance("ada").await, (left, 0));
    }
    app.get(&run("ai-4", &image)).by(&ada).send().await.is_problem(402, "Not enough credits");

    let list = app.get(&format!("/api/upscale/{image}")).by(&ada).send().await.json();
    let factors: Vec<_> = list.as_array().unwrap().iter().map(|made| &made["factor"]).collect();
    assert_eq!(factors, [2, 2, 4, 4]);
    let others = app.get(&format!("/api/rmbg-images/{image}")).by(&ada).send().await.json();
    assert_eq!(others, json!([]), "each tool lists its own results");

    let first = list[0]["imageId"].as_str().unwrap();
    let wrong = app.delete(&format!("/api/rmbg-images/{first}")).by(&ada).send().await;
    wrong.is_problem(404, "Result not found");
    let deleted = app.delete(&format!("/api/upscale/{first}")).by(&ada).send().await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let list = app.get(&format!("/api/upscale/{image}")).by(&ada).send().await.json();
    assert_eq!(list.as_array().unwrap().len(), 3);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn each_image_has_one_free_upscale_by_two(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let worker = app.work_once();
    let results = app.get(&run("free", &image)).by(&ada).send().await.json();
    worker.await.unwrap();
    assert_eq!(
        (&results[0]["tier"], &results[0]["credits"], &results[0]["factor"]),
        (&json!("free"), &json!(0), &json!(2))
    );
    app.post(&run("free", &image)).by(&ada).send().await.is_problem(409, "Free Exists");
    let shown = app.get(&format!("/api/images/{image}")).by(&ada).send().await.json();
    assert_eq!(shown["freeRuns"], json!({"removeBackground": false, "upscale": true}));
    assert_eq!(app.balance("ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn both_factors_run_concurrently_with_one_job_each(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let mut jobs = Vec::new();
    for action in ["ai-2", "ai-4", "ai-2", "ai-4"] {
        let job = app.post(&run(action, &image)).by(&ada).asynchronously().send().await;
        assert_eq!(job.status, StatusCode::ACCEPTED);
        jobs.push(job.json()["id"].clone());
    }
    assert_eq!(jobs[0], jobs[2]);
    assert_eq!(jobs[1], jobs[3]);
    assert_ne!(jobs[0], jobs[1]);
    assert_eq!(app.balance("ada").await, (20, 9));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn images_above_1440_pixels_are_rejected_and_hold_no_credits(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    for (width, height, fits) in [(1440, 1440, true), (1441, 10, false), (10, 1441, false)] {
        let uploaded =
            app.post("/api/images/upload").by(&ada).file(&png(width, height)).send().await;
        let image = uploaded.json()["id"].as_str().unwrap().to_owned();
        for action in ["ai-2", "ai-4", "free"] {
            let answer = app.post(&run(action, &image)).by(&ada).asynchronously().send().await;
            if fits {
                assert_eq!(answer.status, StatusCode::ACCEPTED);
            } else {
                answer.is_problem(422, "Image dimensions too big (Max 1440x1440)");
            }
        }
    }
    assert_eq!(app.balance("ada").await, (20, 9), "only accepted runs hold credits");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn other_users_and_malformed_ids_get_not_found(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (eve, image) = (app.token("eve"), app.upload("ada").await);
    for action in ["ai-2", "ai-4", "free"] {
        app.post(&run(action, &image)).by(&eve).send().await.is_problem(404, "Image not found");
        app.post(&run(action, "no-id")).by(&eve).send().await.is_problem(404, "Image not found");
        app.post(&run(action, "")).by(&eve).send().await.is_problem(400, "Image ID is missing.");
        let nobody = app.post(&run(action, &image)).send().await;
        nobody.is_problem(401, "Authentication token is missing.");
    }
    app.get(&format!("/api/upscale/{image}"))
        .by(&eve)
        .send()
        .await
        .is_problem(404, "Image not found");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitor_upscales_an_image_once(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let worker = app.work_once();
    let picture = png(64, 48);
    let answer = app.post("/api/free/upscale-fr").file(&picture).send().await;
    worker.await.unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "image/png"));
    // A repeat returns the first result. It would time out if it enqueued a run, because no worker claims one.
    let repeat = app.post("/api/free/upscale-fr").file(&picture).send().await;
    assert_eq!((repeat.status, &repeat.body), (StatusCode::OK, &answer.body));
    // The upscale limit also applies to an image that another tool has accepted.
    let wide = png(1500, 20);
    let refusal = "Image dimensions too big (Max 1440x1440)";
    app.post("/api/free/upscale-fr").file(&wide).send().await.is_problem(422, refusal);
    let taken = app.post("/api/free/remove-bg-fr").file(&wide).asynchronously().send().await;
    assert_eq!(taken.status, StatusCode::ACCEPTED);
    app.post("/api/free/upscale-fr").file(&wide).send().await.is_problem(422, refusal);
}
