//! Click to select: what the API asks a worker, and what it answers when there is none.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use retouch_core::selection::{
    Clicks, ImageBox, ImagePoint, SelectionFailure, SelectionReply, SelectionRequest,
};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{TestApp, png};

/// Answers the next request like a worker, and returns it.
fn answer_once(
    app: &Arc<TestApp>,
    reply: SelectionReply,
) -> tokio::task::JoinHandle<SelectionRequest> {
    let queue = app.app.queue.clone();
    tokio::spawn(async move {
        queue.announce::<SelectionRequest>().await.unwrap();
        let mut requests = queue.requests::<SelectionRequest>();
        loop {
            if let Some(pending) = requests.next().await.unwrap() {
                assert!(pending.time_left > Duration::from_secs(5));
                queue.reply::<SelectionRequest>(pending.request.id, reply).await.unwrap();
                return pending.request;
            }
        }
    })
}

async fn start(pool: PgPool) -> (Arc<TestApp>, String) {
    let app = Arc::new(TestApp::start(pool).await);
    let image = app.upload("ada").await;
    (app, image)
}

fn path(image: &str) -> String {
    format!("/api/images/{image}/select")
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_gets_the_clicks_and_its_mask_is_the_answer(pool: PgPool) {
    let (app, image) = start(pool).await;
    let mask = png(64, 48);
    let worker = answer_once(&app, Ok(Bytes::from(mask.clone())));
    app.app.queue.announce::<SelectionRequest>().await.unwrap();
    let clicks = json!({
        "positive": [{"x": 3, "y": 4}],
        "negative": [{"x": 63, "y": 47}],
        "box": {"x": 1, "y": 2, "width": 63, "height": 46},
    });
    let answer = app.post(&path(&image)).by(&app.token("ada")).json_body(&clicks).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "image/png");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.body, mask);
    let request = worker.await.unwrap();
    assert_eq!(request.image.to_string(), image);
    assert_eq!((request.width, request.height), (64, 48));
    let expected = Clicks {
        positive: vec![ImagePoint { x: 3, y: 4 }],
        negative: vec![ImagePoint { x: 63, y: 47 }],
        area: Some(ImageBox { x: 1, y: 2, width: 63, height: 46 }),
        subject: false,
    };
    assert_eq!(request.clicks, expected);
    assert_eq!(app.balance("ada").await, (20, 0), "nothing is charged");
    let jobs = app.get("/api/jobs").by(&app.token("ada")).send().await.json();
    assert_eq!(jobs["jobs"], json!([]));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_program_selects_with_its_key(pool: PgPool) {
    let (app, image) = start(pool).await;
    let key = app.key("ada").await;
    app.app.queue.announce::<SelectionRequest>().await.unwrap();
    let worker = answer_once(&app, Ok(Bytes::from(png(64, 48))));
    let subject = json!({"subject": true});
    let answer = app.post(&path(&image)).with_key(&key).json_body(&subject).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert!(worker.await.unwrap().clicks.subject);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_failures_of_a_worker_are_explained(pool: PgPool) {
    let (app, image) = start(pool).await;
    app.app.queue.announce::<SelectionRequest>().await.unwrap();
    for (failure, status, code) in [
        (SelectionFailure::NothingFound, 422, json!("nothing_found")),
        (SelectionFailure::ImageMissing, 404, Value::Null),
        (SelectionFailure::ImageUnreadable, 422, json!("image_unreadable")),
        (SelectionFailure::StorageUnavailable, 503, Value::Null),
        (SelectionFailure::Failed("a secret of the operator".into()), 500, Value::Null),
    ] {
        let worker = answer_once(&app, Err(failure));
        let click = json!({"positive": [{"x": 3, "y": 4}]});
        let answer = app.post(&path(&image)).by(&app.token("ada")).json_body(&click).send().await;
        let problem = answer.json();
        assert_eq!((answer.status.as_u16(), &problem["code"]), (status, &code), "{problem}");
        assert!(!answer.text().contains("secret"));
        worker.await.unwrap();
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_a_worker_or_redis_the_answer_says_so_at_once(pool: PgPool) {
    let (app, image) = start(pool).await;
    let click = json!({"positive": [{"x": 3, "y": 4}]});
    let send = || app.post(&path(&image)).by(&app.token("ada")).json_body(&click).send();
    let started = std::time::Instant::now();
    let answer = send().await;
    answer.is_problem(503, "No worker can select right now. Use the brush, or try again later.");
    assert_eq!(answer.header("retry-after"), "30");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    let dead = "--redis-url=redis://127.0.0.1:1";
    let other = TestApp::start_with(app.pool.clone(), &[dead]).await;
    let hers = other.upload("eve").await;
    let answer = other.post(&path(&hers)).by(&other.token("eve")).json_body(&click).send().await;
    let detail = "Selecting is temporarily unavailable. Use the brush, or try again in a moment.";
    answer.is_problem(503, detail);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn clicks_that_make_no_sense_never_reach_a_worker(pool: PgPool) {
    let (app, image) = start(pool).await;
    app.app.queue.announce::<SelectionRequest>().await.unwrap();
    let send = async |body: Value| {
        app.post(&path(&image)).by(&app.token("ada")).json_body(&body).send().await
    };
    let point = json!([{"x": 1, "y": 1}]);
    for (body, status, detail) in [
        (json!({}), 422, "Send a positive point, a box, or \"subject\": true."),
        (json!({"negative": point}), 422, "Send a positive point, a box, or \"subject\": true."),
        (
            json!({"positive": [{"x": 64, "y": 1}]}),
            422,
            "The point 64, 1 is outside the image of 64 × 48 pixels.",
        ),
    ] {
        send(body).await.is_problem(status, detail);
    }
    for body in [
        json!({"positive": [{"x": -1, "y": 1}]}),
        json!({"positive": [{"x": 0.5, "y": 1}]}),
        json!({"positive": point, "threshold": 3}),
        json!([1, 2]),
    ] {
        let answer = send(body.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}: {}", answer.text());
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn selections_are_limited_like_uploads_and_counted_by_themselves(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-uploads-per-minute=2"]).await;
    let image = app.upload("ada").await;
    let subject = json!({"subject": true});
    let send = || app.post(&path(&image)).by(&app.token("ada")).json_body(&subject).send();
    for _ in 0..2 {
        assert_eq!(send().await.status, StatusCode::SERVICE_UNAVAILABLE);
    }
    let answer = send().await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.text().contains("You can start 2 selections per minute."), "{}", answer.text());
    app.upload("ada").await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_user_does_not_fill_the_queue_of_selections(pool: PgPool) {
    let (app, image) = start(pool).await;
    let hers = app.upload("eve").await;
    app.app.queue.announce::<SelectionRequest>().await.unwrap();
    let subject = json!({"subject": true});
    let ask = async |name: &str, image: &str| {
        app.post(&path(image)).by(&app.token(name)).json_body(&subject).send().await
    };
    // No worker answers, so what waits is dropped when the time is over.
    let waiting = futures::future::join_all((0..4).map(|_| ask("ada", &image)));
    let others = async {
        app.wait_for_requests::<SelectionRequest>(4).await;
        let fifth = ask("ada", &image).await;
        let detail = "Selecting takes too long right now. Use the brush, or try again in a moment.";
        fifth.is_problem(503, detail);
        tokio::select! {
            refused = ask("eve", &hers) => panic!("another user: {}", refused.text()),
            () = app.wait_for_requests::<SelectionRequest>(5) => {}
        }
    };
    tokio::select! {
        _ = waiting => panic!("somebody answered"),
        () = others => {}
    }
}
