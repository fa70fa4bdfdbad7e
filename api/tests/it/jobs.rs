//! Following and canceling runs.

use std::sync::Arc;
use std::time::Duration;

use axum::body::BodyDataStream;
use axum::http::StatusCode;
use chrono::TimeDelta;
use futures::StreamExt;
use retouch_catalog::{Count, CountUnit};
use retouch_core::queue::{JobEvent, JobProgress, ProgressStage};
use retouch_standins::testing::adjust;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{TestApp, png};

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_preference_is_said_to_be_applied_only_if_the_client_has_it(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--wait-secs=1"]).await;
    let image = app.upload("ada").await;
    let paid = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    for path in [paid.as_str(), "/api/free/remove-bg-fr"] {
        let ask = || app.post(path).by(&app.token("ada")).file(&png(64, 48));
        let preferred = ask().asynchronously().send().await;
        let late = ask().send().await;
        assert_eq!((preferred.status, late.status), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
        assert_eq!(preferred.header("preference-applied"), "respond-async");
        let two_lines = ask().header("prefer", "handling=lenient").asynchronously().send().await;
        assert_eq!(two_lines.header("preference-applied"), "respond-async");
        assert_eq!(late.header("preference-applied"), "", "after a timeout");
    }
}

async fn start(app: &TestApp, image: &str) -> Value {
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    app.post(&path).by(&app.token("ada")).asynchronously().send().await.json()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_event_stream_shows_progress_and_ends_with_the_result(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let image = app.upload("ada").await;
    let job = start(&app, &image).await;
    let id: retouch_core::JobId = job["id"].as_str().unwrap().parse().unwrap();
    let path = format!("/api/jobs/{id}/events");
    let response = app.get(&path).by(&app.token("ada")).open().await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: job"), "the first event arrives immediately");
    let acting = app.clone();
    tokio::spawn(async move {
        let job = acting.claim().await.unwrap().id;
        let count = Some(Count { unit: CountUnit::Tiles, done: 12, total: 48 });
        let at =
            JobProgress { eta_secs: Some(42), count, ..JobProgress::at(ProgressStage::Infer, 0.2) };
        let progress = JobEvent::progress(job, at);
        for _ in 0..3 {
            acting.app.queue.publish(progress).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        acting.finish(job, &png(64, 48)).await;
    });
    let mut text = String::from_utf8_lossy(&first).into_owned();
    let reading = async {
        while let Some(chunk) = body.next().await {
            text += &String::from_utf8_lossy(&chunk.unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading)
        .await
        .expect("the stream ends with the job");
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let states: Vec<&str> = events.iter().map(|event| event["state"].as_str().unwrap()).collect();
    assert_eq!((states.first(), states.last()), (Some(&"queued"), Some(&"done")), "{states:?}");
    assert!(
        events.iter().any(|event| event["progress"]
            == json!({"stage": "infer", "fraction": 0.2, "count": {"unit": "tiles", "done": 12, "total": 48}})
            && event["etaSeconds"] == 42),
        "{text}"
    );
    assert_eq!(events.last().unwrap()["results"][0]["credits"], 5);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn nobody_follows_a_job_for_longer_than_their_token_is_trusted(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let image = app.upload("ada").await;
    let path = format!("/api/jobs/{}/events", start(&app, &image).await["id"].as_str().unwrap());
    let response = app.get(&path).by(&app.token("ada")).open().await;
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: job"));
    app.clock.advance(TimeDelta::minutes(15));
    let job = app.claim().await.unwrap().id;
    app.finish(job, &png(64, 48)).await;
    let rest = tokio::time::timeout(Duration::from_secs(10), body.next()).await;
    assert!(rest.expect("the stream ends").is_none(), "and does not show the result");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn canceling_a_run_costs_nothing_and_ends_the_waiting_request(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let waiting = app.post(&path).by(&ada).send();
    let canceling = async {
        let job =
            retouch_standins::testing::eventually(Duration::from_secs(10), "a job", || async {
                let list =
                    app.get(&format!("/api/jobs?imageId={image}")).by(&ada).send().await.json();
                list["jobs"][0]["id"].as_str().map(str::to_owned)
            })
            .await;
        let answer = app.delete(&format!("/api/jobs/{job}")).by(&ada).send().await;
        assert_eq!((answer.status, &answer.json()["state"]), (StatusCode::OK, &json!("cancelled")));
        let again = app.delete(&format!("/api/jobs/{job}")).by(&ada).send().await;
        assert_eq!(again.json()["state"], "cancelled");
    };
    let (answer, ()) = tokio::join!(waiting, canceling);
    answer.is_problem(409, "The run was canceled.");
    assert_eq!(app.balance("ada").await, (20, 0));
    assert!(app.claim().await.is_none());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_lost_the_last_worker_does_not_stay_running(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let image = app.upload("ada").await;
    start(&app, &image).await;
    let job = app.claim().await.unwrap().id;
    retouch_standins::testing::always_reachable(&app.pool).await;
    sqlx::query("update jobs set lease_until = now()").execute(&app.pool).await.unwrap();
    // No worker runs, so no other process looks for it.
    let upkeep = tokio::spawn(retouch_api::upkeep::run(app.app.clone()));
    let path = format!("/api/jobs/{job}");
    retouch_standins::testing::eventually(Duration::from_secs(10), "it is queued", async || {
        let job = app.get(&path).by(&app.token("ada")).send().await.json();
        (job["state"] == "queued").then_some(())
    })
    .await;
    upkeep.abort();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn jobs_of_other_users_cannot_be_seen_or_canceled(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let image = app.upload("ada").await;
    let job = start(&app, &image).await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/jobs/{job}");
    for token in [Some(app.token("bob")), None] {
        let with = |method: &str, path: &str| {
            let request = app.request(method.parse().unwrap(), path);
            match &token {
                Some(token) => request.by(token),
                None => request,
            }
        };
        with("GET", &path).send().await.is_problem(404, "Job not found");
        with("DELETE", &path).send().await.is_problem(404, "Job not found");
        with("GET", &format!("{path}/events")).send().await.is_problem(404, "Job not found");
    }
    let theirs = app.get("/api/jobs").by(&app.token("bob")).send().await.json();
    assert_eq!(theirs, json!({"jobs": []}));
    assert_eq!(app.balance("ada").await, (20, 5));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_queued_job_has_a_position(pool: PgPool) {
    let app = TestApp::start(pool).await;
    for place in 0..3 {
        let image = app.upload("ada").await;
        assert_eq!(start(&app, &image).await["position"], place);
    }
}

/// Reads an account's stream until `is_last` says so, and returns the events: their names and data.
async fn account_events(
    body: &mut BodyDataStream,
    is_last: impl Fn(&str, &Value) -> bool,
) -> Vec<(String, Value)> {
    let mut text = String::new();
    let mut events = Vec::new();
    let reading = async {
        while let Some(chunk) = body.next().await {
            text += &String::from_utf8_lossy(&chunk.unwrap());
            while let Some((block, rest)) = text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
                    events.push((name.to_owned(), serde_json::from_str(data).unwrap()));
                }
                text = rest.to_string();
            }
            if events.iter().any(|(name, data)| is_last(name, data)) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the events arrive");
    events
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_account_stream_shows_runs_results_and_credits_of_other_tabs(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let image = app.upload("ada").await;
    let response = app.get("/api/events").by(&app.token("ada")).open().await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut body = response.into_body().into_data_stream();
    let first = account_events(&mut body, |name, _| name == "account").await;
    assert_eq!(first[0].1["user"]["credits"], 20);
    assert_eq!(first[0].1["jobs"], json!([]));

    let asked = std::time::Instant::now();
    let job = start(&app, &image).await;
    let seen =
        account_events(&mut body, |name, data| name == "user" && data["reserved"] == 5).await;
    assert!(asked.elapsed() < Duration::from_secs(2), "the stream is woken, not polled");
    assert_eq!((&seen[0].0, &seen[0].1["id"]), (&"job".to_owned(), &job["id"]));

    app.work_once().await.unwrap();
    let seen =
        account_events(&mut body, |name, data| name == "user" && data["credits"] == 15).await;
    let done = seen.iter().find(|(_, data)| data["state"] == "done").expect("the end of the job");
    assert_eq!(done.1["results"][0]["credits"], 5);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_account_stream_misses_no_job_that_ends_at_once(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let images = [app.upload("ada").await, app.upload("ada").await];
    let response = app.get("/api/events").by(&app.token("ada")).open().await;
    let mut body = response.into_body().into_data_stream();
    account_events(&mut body, |name, _| name == "account").await;
    for image in &images {
        let job = start(&app, image).await;
        let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
        app.delete(&path).by(&app.token("ada")).send().await;
        account_events(&mut body, |_, data| {
            data["id"] == job["id"] && data["state"] == "cancelled"
        })
        .await;
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_account_stream_shows_nothing_of_other_users(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let image = app.upload("ada").await;
    let theirs = app.get("/api/events").by(&app.token("bob")).open().await;
    let mut body = theirs.into_body().into_data_stream();
    account_events(&mut body, |name, _| name == "account").await;
    start(&app, &image).await;
    let mine = app.upload("bob").await;
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={mine}");
    let job = app.post(&path).by(&app.token("bob")).asynchronously().send().await.json();
    let seen = account_events(&mut body, |_, data| data["id"] == job["id"]).await;
    assert!(!format!("{seen:?}").contains(&image), "{seen:?}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_account_can_follow_fifty_streams(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let job = format!("/api/jobs/{}/events", start(&app, &image).await["id"].as_str().unwrap());
    let mut open = Vec::new();
    for n in 0..50 {
        let path = if n % 2 == 0 { "/api/events" } else { &job };
        let response = app.get(path).by(&ada).open().await;
        assert_eq!(response.status(), StatusCode::OK, "{n}");
        open.push(response);
    }
    for path in ["/api/events", &job] {
        let refused = app.get(path).by(&ada).send().await;
        refused.is_problem(
            429,
            "Too many pages or programs follow this account. Close some, then try again.",
        );
        assert_ne!(refused.header("retry-after"), "");
    }
    let other = app.get("/api/events").by(&app.token("bob")).open().await;
    assert_eq!(other.status(), StatusCode::OK);
    open.truncate(48);
    for path in ["/api/events", &job] {
        assert_eq!(app.get(path).by(&ada).open().await.status(), StatusCode::OK);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_streams_of_an_account_together_look_as_often_as_one(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let user = app.get("/api/user/get").by(&app.token("ada")).send().await.json();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let response = app.get("/api/events").by(&app.token("ada")).open().await;
        streams.push(response.into_body().into_data_stream());
    }
    for stream in &mut streams {
        account_events(stream, |name, _| name == "account").await;
    }
    let mut is_silent = async |seconds: u64| {
        let news = futures::future::select_all(streams.iter_mut().map(StreamExt::next));
        tokio::time::timeout(Duration::from_secs(seconds), news).await.is_err()
    };
    assert!(is_silent(1).await, "all have looked twice, and wait");
    // No event announces it. One stream alone would see it after four seconds, and three do after twelve.
    adjust(&app.pool, user["id"].as_str().unwrap().parse().unwrap(), 100).await;
    assert!(is_silent(5).await);
    account_events(&mut streams[0], |name, data| name == "user" && data["credits"] == 120).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_stopping_process_answers_those_who_wait_for_a_run(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let image = app.upload("ada").await;
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        app.app.stopping.cancel();
    };
    let run = app.post(&path).by(&app.token("ada")).send();
    let both = async { tokio::join!(run, stop) };
    let within = std::time::Duration::from_secs(5);
    let (answer, ()) = tokio::time::timeout(within, both).await.expect("it waits on");
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.json()["state"], "queued");
}
