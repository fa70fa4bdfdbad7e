//! The free tools for visitors: one run per image, some per hour, deleted after an hour.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use retouch_standins::testing::{eventually, object_keys, wait_for_locks, waits_for_a_lock};
use sqlx::PgPool;

use crate::app::{Answer, TestApp, png};

const RUN: &str = "/api/free/remove-bg-fr";

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitor_gets_one_run_per_image_and_its_result_again_on_repeat(pool: PgPool) {
    let app = Arc::new(TestApp::start_with(pool, &["--visitor-runs-per-hour=1"]).await);
    let worker = app.work_once();
    for _ in 0..3 {
        let answer = app.post(RUN).file(&png(100, 80)).send().await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "image/png"));
        assert_eq!(answer.body, png(64, 48));
    }
    let job = worker.await.unwrap().to_string();
    let again = app.post(RUN).file(&png(100, 80)).asynchronously().send().await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
    assert_eq!((&again.json()["id"], &again.json()["state"]), (&job.into(), &"done".into()));
    assert!(app.claim().await.is_none(), "nothing ran twice");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_page_of_another_site_cannot_use_up_a_visitors_runs(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--visitor-runs-per-hour=1"]).await;
    let run = |site| app.post(RUN).header("sec-fetch-site", site).file(&png(100, 80));
    let refused = run("cross-site").asynchronously().send().await;
    refused.is_problem(403, "Pages of other sites cannot use this without a key.");
    let own = run("same-origin").asynchronously().send().await;
    assert_eq!(own.status, StatusCode::ACCEPTED, "{}", own.text());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitors_picture_stays_as_long_as_its_results(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let accepted = app.post(RUN).file(&png(100, 80)).asynchronously().send().await.json();
    // The run ends long after the upload.
    sqlx::query("update images set expires_at = now() + interval '1 minute'")
        .execute(&app.pool)
        .await
        .unwrap();
    app.work_once().await.unwrap();
    let job = format!("/api/jobs/{}", accepted["id"].as_str().unwrap());
    assert_eq!(app.get(&job).send().await.json()["state"], "done");
    let left: i64 = sqlx::query_scalar(
        "select extract(epoch from expires_at - now())::bigint from images where expires_at is not null",
    )
    .fetch_one(&app.pool)
    .await
    .unwrap();
    assert!((3500..=3600).contains(&left), "{left} s");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitor_who_left_returns_to_the_run_that_waits(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--visitor-queue=1"]).await;
    let run = async || app.post(RUN).file(&png(100, 80)).asynchronously().send().await.json();
    let first = run().await;
    // Although the queue is full.
    assert_eq!(run().await["id"], first["id"]);
    // A canceled run gives the free run back.
    app.delete(&format!("/api/jobs/{}", first["id"].as_str().unwrap())).send().await;
    assert_ne!(run().await["id"], first["id"]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_same_file_twice_at_once_is_one_run(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--visitor-runs-per-hour=2"]).await;
    let run = async |width: u32| app.post(RUN).file(&png(width, 40)).asynchronously().send().await;
    let mut busy = app.pool.acquire().await.unwrap();
    let lock = "begin; lock table images in share row exclusive mode";
    sqlx::raw_sql(lock).execute(&mut *busy).await.unwrap();
    let go = async {
        // Both requests have looked for an earlier image by now.
        wait_for_locks(&app.pool, 2).await;
        sqlx::raw_sql("rollback").execute(&mut *busy).await.unwrap();
    };
    let (one, other, ()) = tokio::join!(run(50), run(50), go);
    assert_eq!((one.status, other.status), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
    assert_eq!(one.json()["id"], other.json()["id"]);
    assert_eq!(run(51).await.status, StatusCode::ACCEPTED, "they count as one");
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
            app.claim().await.unwrap();
        } else {
            assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
            let wait: u64 = answer.header("retry-after").parse().unwrap();
            assert!((1..=360).contains(&wait), "{wait}");
        }
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_picture_beyond_the_runs_of_an_address_is_not_even_prepared(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--visitor-runs-per-hour=1"]).await;
    let run = async |file: &[u8]| app.post(RUN).file(file).asynchronously().send().await.status;
    // A refused picture gives its run back.
    assert_eq!(run(b"no picture").await, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(run(&png(50, 40)).await, StatusCode::ACCEPTED);
    assert_eq!(run(&png(51, 40)).await, StatusCode::TOO_MANY_REQUESTS);
    let images: i64 =
        sqlx::query_scalar("select count(*) from images").fetch_one(&app.pool).await.unwrap();
    assert_eq!(images, 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitor_who_hangs_up_during_the_upload_gets_the_run_back(pool: PgPool) {
    let settings = ["--visitor-runs-per-hour=1", "--visitor-uploads-per-hour=1000"];
    let app = TestApp::start_with(pool, &settings).await;
    let run = async |width: u32| app.post(RUN).file(&png(width, 40)).asynchronously().send().await;
    let mut busy = app.pool.acquire().await.unwrap();
    let lock = "begin; lock table images in share row exclusive mode";
    sqlx::raw_sql(lock).execute(&mut *busy).await.unwrap();
    tokio::select! {
        answer = run(50) => panic!("{}", answer.text()),
        () = waits_for_a_lock(&app.pool) => {}
    }
    sqlx::raw_sql("rollback").execute(&mut *busy).await.unwrap();
    eventually(Duration::from_secs(10), "another picture is accepted", async || {
        (run(51).await.status == StatusCode::ACCEPTED).then_some(())
    })
    .await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_visitors_queue_is_limited(pool: PgPool) {
    let settings = ["--visitor-queue=2", "--trusted-proxies=127.0.0.1"];
    let app = TestApp::start_with(pool, &settings).await;
    let run = async |n: u32| from(&app, &format!("9.9.9.{n}"), n).await;
    assert_eq!(run(0).await.status, StatusCode::ACCEPTED);
    assert_eq!(run(1).await.status, StatusCode::ACCEPTED);
    // More than the address has runs and uploads in an hour: none of them counts.
    for _ in 0..70 {
        let answer = run(2).await;
        answer.is_problem(503, "Too many free runs are waiting. Try again in a minute.");
        assert_eq!(answer.header("retry-after"), "60");
    }
    let images: i64 =
        sqlx::query_scalar("select count(*) from images").fetch_one(&app.pool).await.unwrap();
    assert_eq!(images, 2, "a refused picture is not even prepared");
    app.claim().await.unwrap();
    assert_eq!(run(2).await.status, StatusCode::ACCEPTED);
}

/// Sends a picture from an address.
async fn from(app: &TestApp, address: &str, n: u32) -> Answer {
    let request = app.post(RUN).header("x-forwarded-for", address).file(&png(50 + n, 40));
    request.asynchronously().send().await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_refused_by_a_full_queue_does_not_count(pool: PgPool) {
    let settings = ["--visitor-queue=8", "--address-queue=1", "--visitor-runs-per-hour=3"];
    let app = TestApp::start_with(pool, &settings).await;
    // Concurrently, so that several pass the first look at the queue.
    let answers = (0..6).map(|n| app.post(RUN).file(&png(50 + n, 40)).asynchronously().send());
    let answers = futures::future::join_all(answers).await;
    let accepted = answers.iter().filter(|answer| answer.status == StatusCode::ACCEPTED).count();
    assert_eq!(accepted, 1);
    for n in 10..12 {
        app.claim().await.unwrap();
        let answer = app.post(RUN).file(&png(50 + n, 40)).asynchronously().send().await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
    }
    app.claim().await.unwrap();
    let fourth = app.post(RUN).file(&png(62, 40)).asynchronously().send().await;
    assert!(fourth.text().contains("Too many free runs from your network"), "{}", fourth.text());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_address_has_a_share_of_the_visitors_queue(pool: PgPool) {
    let settings =
        ["--visitor-queue=12", "--trusted-proxies=127.0.0.1", "--visitor-runs-per-hour=100"];
    let app = TestApp::start_with(pool, &settings).await;
    let mut accepted = Vec::new();
    for visitor in 0..12 {
        let runs = (0..12).map(|n| {
            let address = format!("9.9.9.{visitor}");
            let app = &app;
            async move { from(app, &address, n).await }
        });
        let answers = futures::future::join_all(runs).await;
        for answer in answers.iter().filter(|answer| answer.status != StatusCode::ACCEPTED) {
            let refusal = if answer.status == StatusCode::TOO_MANY_REQUESTS {
                "Too many of your runs are waiting. Try again when some have finished."
            } else {
                "Too many free runs are waiting. Try again in a minute."
            };
            assert_eq!(answer.json()["detail"], refusal);
        }
        let is_accepted = |answer: &&Answer| answer.status == StatusCode::ACCEPTED;
        accepted.push(answers.iter().filter(is_accepted).count());
    }
    // Each gets a quarter of the free places, but at least one.
    assert_eq!(accepted, [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitors_image_is_deleted_after_an_hour(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let worker = app.work_once();
    app.post(RUN).file(&png(100, 80)).send().await;
    worker.await.unwrap();
    retouch_core::janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    assert_eq!(object_keys(&app.bucket.storage).await.len(), 4);
    let aged = [
        "update images set expires_at = now() - interval '1 second'",
        "update results set created_at = now() - interval '1 hour'",
    ];
    for statement in aged {
        sqlx::query(statement).execute(&app.pool).await.unwrap();
    }
    retouch_core::janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    assert_eq!(object_keys(&app.bucket.storage).await, Vec::<String>::new());
}
