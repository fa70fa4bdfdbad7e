//! Samples of paid upscales: what the API asks a worker, and what it answers when there is none.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use retouch_catalog::Factor;
use retouch_core::sample::{SampleFailure, SampleReply, SampleRequest};
use sqlx::PgPool;

use crate::app::{TestApp, png};

const PATH: &str = "/api/upscale/sample?factor=4&width=1200&height=800";

/// Answers the next request like a worker, and returns it.
fn answer_once(app: &Arc<TestApp>, reply: SampleReply) -> tokio::task::JoinHandle<SampleRequest> {
    let queue = app.app.queue.clone();
    tokio::spawn(async move {
        let mut requests = queue.requests::<SampleRequest>();
        loop {
            if let Some(pending) = requests.next().await.unwrap() {
                assert!(pending.time_left > Duration::from_secs(20));
                queue.reply::<SampleRequest>(pending.request.id, reply).await.unwrap();
                return pending.request;
            }
        }
    })
}

async fn start(pool: PgPool, settings: &[&str]) -> Arc<TestApp> {
    let app = Arc::new(TestApp::start_with(pool, settings).await);
    app.app.queue.announce::<SampleRequest>().await.unwrap();
    app
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn visitors_and_users_get_what_the_worker_made(pool: PgPool) {
    let app = start(pool, &[]).await;
    let (part, made) = (png(128, 128), png(512, 512));
    for token in [None, Some(app.token("ada"))] {
        let worker = answer_once(&app, Ok(Bytes::from(made.clone())));
        let mut request = app.post(PATH).file(&part);
        if let Some(token) = &token {
            request = request.by(token);
        }
        let answer = request.send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.header("content-type"), "image/png");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.body, made);
        let request = worker.await.unwrap();
        assert_eq!((request.factor, request.picture_pixels), (Factor::X4, 960_000));
        assert_eq!(request.file, part);
    }
    assert_eq!(app.balance("ada").await, (20, 0), "nothing is charged");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_small_parts_of_possible_pictures_reach_a_worker(pool: PgPool) {
    let app = start(pool, &[]).await;
    let post = async |path: &str, file: &[u8]| app.post(path).file(file).send().await;
    let large = post(PATH, &png(129, 8)).await;
    large.is_problem(422, "Image dimensions too big (Max 128x128)");
    assert_eq!(post(PATH, b"no picture").await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(post(PATH, &vec![0; 300_000]).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let part = png(8, 8);
    for size in ["width=0&height=8", "width=1441&height=8"] {
        let answer = post(&format!("/api/upscale/sample?factor=2&{size}"), &part).await;
        answer.is_problem(422, "Image dimensions too big (Max 1440x1440)");
    }
    for query in ["factor=3&width=8&height=8", "factor=2&width=-1&height=8", "factor=2"] {
        let answer = post(&format!("/api/upscale/sample?{query}"), &part).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}: {}", answer.text());
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_failures_of_a_worker_are_explained(pool: PgPool) {
    let app = start(pool, &[]).await;
    for (failure, status) in [
        (SampleFailure::Unreadable, 422),
        (SampleFailure::NoModel, 503),
        (SampleFailure::Failed("a secret of the operator".into()), 500),
    ] {
        let worker = answer_once(&app, Err(failure));
        let answer = app.post(PATH).file(&png(8, 8)).send().await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
        assert!(!answer.text().contains("secret"));
        worker.await.unwrap();
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_a_worker_the_answer_says_so_and_samples_are_limited(pool: PgPool) {
    let settings = ["--visitor-uploads-per-hour=1", "--user-uploads-per-minute=12"];
    let app = Arc::new(TestApp::start_with(pool, &settings).await);
    let token = app.token("ada");
    let visitor = || app.post(PATH).file(&png(8, 8)).send();
    let answer = visitor().await;
    answer.is_problem(503, "No worker can make a sample right now. Try again later.");
    assert_eq!(answer.header("retry-after"), "30");
    let answer = visitor().await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.text().contains("Too many samples from your network."), "{}", answer.text());
    let user = || app.post(PATH).by(&token).file(&png(8, 8)).send();
    for status in [503, 503, 429] {
        assert_eq!(user().await.status.as_u16(), status);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_client_that_hangs_up_takes_its_request_back(pool: PgPool) {
    let app = start(pool, &[]).await;
    tokio::select! {
        answer = app.post(PATH).file(&png(8, 8)).send() => panic!("{}", answer.text()),
        () = app.wait_for_requests::<SampleRequest>(1) => {}
    }
    app.wait_for_requests::<SampleRequest>(0).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_address_does_not_fill_the_queue_of_samples(pool: PgPool) {
    let app = start(pool, &["--trusted-proxies=127.0.0.1"]).await;
    let ask = async |address: &str| {
        app.post(PATH).header("x-forwarded-for", address).file(&png(8, 8)).send().await
    };
    // No worker answers, so what waits is dropped when the time is over.
    let waiting = futures::future::join_all((0..4).map(|_| ask("7.7.7.7")));
    let others = async {
        app.wait_for_requests::<SampleRequest>(4).await;
        let fifth = ask("7.7.7.7").await;
        fifth.is_problem(503, "A sample takes too long right now. Try again in a moment.");
        tokio::select! {
            refused = ask("8.8.8.8") => panic!("another address: {}", refused.text()),
            () = app.wait_for_requests::<SampleRequest>(5) => {}
        }
    };
    tokio::select! {
        _ = waiting => panic!("somebody answered"),
        () = others => {}
    }
}
