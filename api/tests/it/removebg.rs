//! The wire format of remove.bg: parameters work or are rejected by name, and the response states the price.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use retouch_catalog::{JobClass, Tier, ToolName};
use retouch_core::jobs::{self, Failure, Isolation};
use retouch_core::results::NewResult;
use retouch_core::{ImageId, JobId, WorkerId, storage};
use retouch_standins::testing::{eventually, first_attempt, new_result, object_keys};
use serde_json::json;
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::app::{Answer, TestApp, TestRequest, png};

const REMOVE: &str = "/v1.0/removebg";
const ACCOUNT: &str = "/v1.0/account";

/// A transparent PNG of 64 × 48 pixels with a red subject of 16 × 12 at (8, 4).
fn cutout() -> Vec<u8> {
    let picture = image::RgbaImage::from_fn(64, 48, |x, y| {
        let inside = (8..24).contains(&x) && (4..16).contains(&y);
        if inside { image::Rgba([200, 10, 20, 255]) } else { image::Rgba([0; 4]) }
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Processes the next `number` jobs in the background.
fn work(app: &Arc<TestApp>, number: usize) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        for _ in 0..number {
            let job = eventually(Duration::from_secs(20), "a job", || app.claim()).await;
            app.finish(job.id, &cutout()).await;
        }
    })
}

/// Returns a multipart body with the image and other fields.
fn form(image: &[u8], fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let head = format!("--frontier\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(value.as_bytes());
        body.extend_from_slice(b"\r\n");
    }
    let head =
        "--frontier\r\ncontent-disposition: form-data; name=\"image_file\"; filename=\"a\"\r\n\r\n";
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(image);
    body.extend_from_slice(b"\r\n--frontier--\r\n");
    body
}

fn remove<'a>(app: &'a TestApp, key: &str, fields: &[(&str, &str)]) -> TestRequest<'a> {
    let body = form(&png(64, 48), fields);
    app.post(REMOVE).with_key(key).body("multipart/form-data; boundary=frontier", body)
}

#[track_caller]
fn is_refused(answer: &Answer, status: u16, code: &str) {
    let body = answer.json();
    let errors = body["errors"].as_array().unwrap();
    assert_eq!((answer.status.as_u16(), errors[0]["code"].as_str().unwrap()), (status, code));
    assert_eq!(errors.len(), 1);
    assert!(!errors[0]["title"].as_str().unwrap().is_empty());
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert_eq!(answer.header("x-credits-charged"), "");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn removing_a_background_costs_five_credits(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    let worker = work(&app, 1);
    let answer = remove(&app, &key, &[("size", "auto"), ("format", "png")]).send().await;
    worker.await.unwrap();
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!((answer.header("content-type"), &answer.body[..]), ("image/png", &cutout()[..]));
    for (name, value) in [
        ("x-credits-charged", "5"),
        ("x-width", "64"),
        ("x-height", "48"),
        ("x-max-width", "64"),
        ("x-max-height", "48"),
        ("x-ratelimit-limit", "60"),
        ("x-ratelimit-remaining", "59"),
        // One of 60 calls per minute is replenished every second.
        ("x-ratelimit-reset", &(app.clock.now().timestamp() + 1).to_string()),
        ("access-control-allow-origin", "*"),
        ("cache-control", "no-store"),
        // No type is detected.
        ("x-type", ""),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn every_encoding_is_accepted_and_json_returned_on_request(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    let worker = work(&app, 3);
    // Different pictures: an equal request would not run again.
    let b64 = |width| STANDARD.encode(png(width, 48));
    let encoded = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("image_file_b64", &b64(65))
        .append_pair("format", "png")
        .finish();
    let requests = [
        remove(&app, &key, &[("format", "png")]),
        app.post(REMOVE).with_key(&key).body("application/x-www-form-urlencoded", encoded),
        // With the key as a bearer token, and with empty values for omitted parameters.
        app.post(REMOVE).by(&key).json_body(&json!(
            {"image_file_b64": b64(66), "format": "png", "crop": false, "roi": null, "bg_color": ""}
        )),
    ];
    for request in requests {
        let answer = request.header("accept", "application/json").send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let result = answer.json()["data"]["result_b64"].as_str().unwrap().to_owned();
        assert_eq!(STANDARD.decode(result).unwrap(), cutout());
        assert_eq!(answer.header("x-credits-charged"), "5");
    }
    worker.await.unwrap();
    assert_eq!(app.balance("ada").await, (5, 0));
    let worker = work(&app, 1);
    let axios = "application/json, text/plain, */*";
    let request = remove(&app, &key, &[("format", "png"), ("size", "full")]);
    let answer = request.header("accept", axios).send().await;
    assert_eq!(answer.header("content-type"), "image/png", "{}", answer.text());
    worker.await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_parameters_shape_the_cutout(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    let worker = work(&app, 3);
    let fields = [("crop", "true"), ("crop_margin", "2px 25%"), ("bg_color", "00f8")];
    let cropped = remove(&app, &key, &fields).send().await;
    assert_eq!((cropped.status, cropped.header("content-type")), (StatusCode::OK, "image/png"));
    assert_eq!((cropped.header("x-width"), cropped.header("x-height")), ("24", "16"));
    let cropped = image::load_from_memory(&cropped.body).unwrap().into_rgba8();
    assert_eq!(cropped.get_pixel(3, 2).0, [0, 0, 255, 0x88]);
    assert_eq!(cropped.get_pixel(4, 2).0, [200, 10, 20, 255]);
    assert_eq!(cropped.dimensions(), (24, 16));

    let zip = remove(&app, &key, &[("format", "zip")]).send().await;
    assert_eq!(zip.header("content-type"), "application/zip");
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(zip.body)).unwrap();
    let mut alpha = Vec::new();
    zip.by_name("alpha.png").unwrap().read_to_end(&mut alpha).unwrap();
    let alpha = image::load_from_memory(&alpha).unwrap().into_luma8();
    assert_eq!((alpha.get_pixel(8, 4).0, alpha.get_pixel(7, 4).0), ([255], [0]));
    assert!(zip.by_name("color.jpg").is_ok());

    let moved = remove(&app, &key, &[("scale", "100%"), ("format", "png")]).send().await;
    let moved = image::load_from_memory(&moved.body).unwrap().into_rgba8();
    assert_eq!(moved.dimensions(), (64, 48));
    assert_eq!((moved.get_pixel(0, 0).0[3], moved.get_pixel(63, 47).0[3]), (255, 255));
    worker.await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_routes_require_a_valid_key(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    is_refused(&app.post(REMOVE).send().await, 403, "auth_failed");
    is_refused(&app.get(ACCOUNT).send().await, 403, "auth_failed");
    is_refused(&remove(&app, "rt_wrong", &[]).send().await, 403, "auth_failed");
    // Tokens are not accepted here.
    is_refused(&app.get(ACCOUNT).by(&ada).send().await, 403, "auth_failed");
    let id = app.get("/api/keys").by(&ada).send().await.json()["keys"][0]["id"].clone();
    app.delete(&format!("/api/keys/{}", id.as_str().unwrap())).by(&ada).send().await;
    is_refused(&remove(&app, &key, &[]).send().await, 403, "auth_failed");
    is_refused(&app.get(ACCOUNT).with_key(&key).send().await, 403, "auth_failed");
    assert_eq!(app.balance("ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn invalid_and_unsupported_parameters_are_named_and_cost_nothing(pool: PgPool) {
    let settings = ["--max-upload-bytes=20000", "--max-dimension=100"];
    let app = TestApp::start_with(pool, &settings).await;
    let key = app.key("ada").await;
    for (name, value) in [
        ("bg_image_url", "https://x.test/a.png"),
        ("roi", "0% 0% 50% 50%"),
        ("add_shadow", "true"),
        ("semitransparency", "false"),
        ("no_such_thing", "1"),
    ] {
        let answer = remove(&app, &key, &[(name, value)]).send().await;
        is_refused(&answer, 400, "unsupported_parameter");
        assert!(answer.text().contains(&format!("\"title\":\"{name} ")), "{}", answer.text());
        assert_eq!(answer.header("x-ratelimit-limit"), "60");
    }
    for (name, value) in [("size", "huge"), ("scale", "9%"), ("bg_color", "no color")] {
        let answer = remove(&app, &key, &[(name, value)]).send().await;
        is_refused(&answer, 400, "invalid_parameter");
        assert!(answer.text().contains(&format!("\"title\":\"{name} ")), "{}", answer.text());
    }
    let multipart = "multipart/form-data; boundary=frontier";
    let send = |kind: &str, body: Vec<u8>| app.post(REMOVE).with_key(&key).body(kind, body).send();
    let json = "application/json";
    is_refused(&send(json, b"{}".to_vec()).await, 400, "missing_source");
    is_refused(&send(json, b"[1]".to_vec()).await, 400, "bad_request");
    is_refused(&send(json, b"{\"size\":[]}".to_vec()).await, 400, "invalid_parameter");
    is_refused(&send("text/plain", Vec::new()).await, 400, "invalid_content_type");
    is_refused(&send("multipart/form-data", Vec::new()).await, 400, "bad_request");
    is_refused(&send(multipart, b"--frontier\r\nbroken".to_vec()).await, 400, "bad_request");
    let both = form(&png(64, 48), &[("image_file_b64", "aGVsbG8=")]);
    is_refused(&send(multipart, both).await, 400, "multiple_sources");
    is_refused(&send(multipart, form(b"text", &[])).await, 400, "invalid_file_type");
    is_refused(&send(multipart, form(&png(64, 48)[..99], &[])).await, 400, "failed_to_read_image");
    is_refused(&send(multipart, form(&png(101, 10), &[])).await, 400, "resolution_too_high");
    let large = vec![0; 20_001];
    is_refused(&send(multipart, form(&large, &[])).await, 413, "file_size_too_large");
    let large = json!({"image_file_b64": STANDARD.encode(&large)}).to_string();
    is_refused(&send(json, large.into()).await, 413, "file_size_too_large");
    let far_larger = vec![b' '; 200_000];
    is_refused(&send(json, far_larger).await, 413, "file_size_too_large");
    assert_eq!(app.balance("ada").await, (20, 0));
    let jobs: i64 =
        sqlx::query_scalar("select count(*) from jobs").fetch_one(&app.pool).await.unwrap();
    assert_eq!(jobs, 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn urls_are_rejected_and_never_fetched(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let key = app.key("ada").await;
    let canary = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let url = format!("http://{}/a.png", canary.local_addr().unwrap());
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("image_url", &url)
        .append_pair("size", "auto")
        .finish();
    for request in [
        app.post(REMOVE).with_key(&key).body("application/x-www-form-urlencoded", body),
        app.post(REMOVE).with_key(&key).json_body(&json!({"image_url": url})),
        remove(&app, &key, &[("image_url", &url)]),
        remove(&app, &key, &[("bg_image_url", &url)]),
    ] {
        is_refused(&request.send().await, 400, "unsupported_parameter");
    }
    assert_eq!(canary.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_credits_nothing_is_held_or_stored(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    for _ in 0..4 {
        let image = app.upload("ada").await;
        let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
        app.post(&path).by(&ada).asynchronously().send().await;
    }
    let objects = object_keys(&app.bucket.storage).await.len();
    is_refused(&remove(&app, &key, &[]).send().await, 402, "insufficient_credits");
    assert_eq!(app.balance("ada").await, (20, 20));
    assert_eq!(object_keys(&app.bucket.storage).await.len(), objects);
    let account = app.get(ACCOUNT).with_key(&key).send().await.json();
    assert_eq!(account["data"]["attributes"]["credits"]["total"], 0);
    // With an idempotency key, the balance is checked when the job is submitted.
    let keyed = remove(&app, &key, &[]).header("idempotency-key", "one").send().await;
    is_refused(&keyed, 402, "insufficient_credits");
    assert_eq!(app.balance("ada").await, (20, 20));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failed_run_reports_its_reason_and_costs_nothing(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    for (code, status, told) in [
        ("image_unreadable", 400, "image_unreadable"),
        ("image_without_subject", 400, "unknown_foreground"),
        ("model_failed", 500, "model_failed"),
    ] {
        let request = remove(&app, &key, &[]).send();
        let worker = async {
            let job = eventually(Duration::from_secs(10), "a job", || app.claim()).await;
            let failure = Failure { code: code.into(), detail: "It did not work.".into() };
            app.fail(job.id, &failure).await;
        };
        let (answer, ()) = tokio::join!(request, worker);
        is_refused(&answer, status, told);
        assert_eq!(answer.json()["errors"][0]["title"], "It did not work.");
        assert_eq!(app.balance("ada").await, (20, 0));
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_that_takes_too_long_is_canceled_and_costs_nothing(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--wait-secs=1"]).await;
    let key = app.key("ada").await;
    // A repeat with the same key runs again.
    for _ in 0..2 {
        let answer = remove(&app, &key, &[]).header("idempotency-key", "one").send().await;
        is_refused(&answer, 503, "unavailable");
        assert_eq!(answer.header("retry-after"), "30");
    }
    assert_eq!(app.balance("ada").await, (20, 0));
    assert!(app.claim().await.is_none(), "it is still queued");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_that_outlives_the_process_is_canceled_and_costs_nothing(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let key = app.key("ada").await;
    app.app.stopping.cancel();
    let answer = remove(&app, &key, &[]).send().await;
    is_refused(&answer, 503, "unavailable");
    assert!(answer.text().contains("The service is restarting"), "{}", answer.text());
    assert_eq!(app.balance("ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unreadable_result_is_reported_as_charged(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    let request = remove(&app, &key, &[]).header("idempotency-key", "one").send();
    let worker = async {
        let worker = WorkerId::new();
        let class = [JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground }];
        let lease = Duration::from_mins(1);
        let claim = || jobs::claim(&app.pool, worker, &class, &[], Isolation::Shared, lease);
        let job = eventually(Duration::from_secs(10), "a job", async || claim().await.unwrap());
        let job = job.await.id;
        let lost = storage::result_key(job, 1);
        let made = NewResult { object_key: lost.clone(), ..new_result(job, 1) };
        jobs::finish(&app.pool, first_attempt(job, worker), &made).await.unwrap();
        lost
    };
    let (answer, lost) = tokio::join!(request, worker);
    assert_eq!((answer.status.as_u16(), answer.header("x-credits-charged")), (503, "5"));
    assert_eq!(answer.json()["errors"][0]["code"], "result_unavailable");
    assert!(answer.text().contains("Idempotency-Key"), "{}", answer.text());
    assert_eq!(app.balance("ada").await, (15, 0));
    app.bucket.storage.put(&lost, "image/png", cutout().into()).await.unwrap();
    let again = remove(&app, &key, &[]).header("idempotency-key", "one").send().await;
    assert_eq!((again.status, again.header("x-credits-charged")), (StatusCode::OK, "5"));
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn rate_limited_requests_get_a_retry_time(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-runs-per-minute=2"]).await;
    let key = app.key("ada").await;
    for left in ["1", "0"] {
        // Rejected for another reason, but counted.
        let answer = remove(&app, &key, &[("size", "huge")]).send().await;
        is_refused(&answer, 400, "invalid_parameter");
        assert_eq!(answer.header("x-ratelimit-remaining"), left);
    }
    let answer = remove(&app, &key, &[]).send().await;
    is_refused(&answer, 429, "rate_limit_exceeded");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    assert_eq!(answer.header("x-ratelimit-limit"), "2");
    assert_eq!(answer.header("x-ratelimit-remaining"), "0");
    let reset: i64 = answer.header("x-ratelimit-reset").parse().unwrap();
    assert_eq!(reset, app.clock.now().timestamp() + 60);
    assert_eq!(app.balance("ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn repeats_with_an_idempotency_key_share_one_run(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    let worker = work(&app, 1);
    let once = || remove(&app, &key, &[("format", "png")]).header("idempotency-key", "one").send();
    // First concurrently, so that several upload before the first submits; then again after the end.
    let mut answers = futures::future::join_all((0..20).map(|_| once())).await;
    worker.await.unwrap();
    answers.push(once().await);
    for answer in &answers {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!((answer.header("x-credits-charged"), &answer.body), ("5", &answers[0].body));
    }
    assert_eq!(app.balance("ada").await, (15, 0));
    let other = app.post(REMOVE).with_key(&key).header("idempotency-key", "one");
    let other = other.body("multipart/form-data; boundary=frontier", form(&png(65, 48), &[]));
    is_refused(&other.send().await, 422, "idempotency_key_reused");
    assert_eq!(app.balance("ada").await, (15, 0));
}

/// Sends the request over a connection and hangs up after `until`, like a client that gives up.
async fn give_up(address: SocketAddr, key: &str, body: &[u8], until: impl Future<Output = ()>) {
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {REMOVE} HTTP/1.1\r\nHost: test\r\nX-Api-Key: {key}\r\nContent-Length: {}\r\n\
         Content-Type: multipart/form-data; boundary=frontier\r\n\r\n",
        body.len()
    );
    client.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let mut first = [0; 1];
    tokio::select! {
        _ = client.read(&mut first) => panic!("answered before the client gave up"),
        () = until => {}
    }
}

/// Waits until there is an active job, and so many requests wait for it.
async fn wait_for_waiting(app: &TestApp, requests: u32) {
    let active = "select id from jobs where state in ('queued', 'running')";
    eventually(Duration::from_secs(10), "requests wait for a job", async || {
        let job: JobId = sqlx::query_scalar(active).fetch_optional(&app.pool).await.unwrap()?;
        (app.app.job_events.subscribe(job).others() == requests).then_some(())
    })
    .await;
}

async fn jobs_in(app: &TestApp, state: &str) -> i64 {
    let count = sqlx::query_scalar("select count(*) from jobs where state = $1").bind(state);
    count.fetch_one(&app.pool).await.unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_whose_client_has_gone_is_canceled(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (key, address) = (app.key("ada").await, app.listen().await);
    for (picture, is_running) in [(png(64, 48), false), (png(65, 48), true)] {
        let body = form(&picture, &[]);
        let until = async {
            wait_for_waiting(&app, 1).await;
            if is_running {
                app.claim().await.unwrap();
            }
        };
        give_up(address, &key, &body, until).await;
        assert_eq!(app.balance("ada").await, (20, 5), "it may try again");
        let canceled = async || (app.balance("ada").await == (20, 0)).then_some(());
        eventually(Duration::from_secs(10), "the cancellation", canceled).await;
        assert!(app.claim().await.is_none(), "the job is still queued");
    }
    assert_eq!(jobs_in(&app, "cancelled").await, 2);
    // The image is not tainted by it.
    let app = Arc::new(app);
    let worker = work(&app, 1);
    assert_eq!(remove(&app, &key, &[]).send().await.status, StatusCode::OK);
    worker.await.unwrap();
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn five_tries_of_an_impatient_client_cost_one_price(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (key, address) = (app.key("ada").await, app.listen().await);
    let body = form(&png(64, 48), &[("format", "png")]);
    for attempt in 0..4 {
        give_up(address, &key, &body, wait_for_waiting(&app, 1)).await;
        wait_for_waiting(&app, 0).await;
        assert_eq!(jobs_in(&app, "queued").await, 1, "attempt {attempt} joins the first");
    }
    let worker = work(&app, 1);
    // With the last one while it runs, and others after it has ended.
    for _ in 0..3 {
        let answer = remove(&app, &key, &[("format", "png")]).send().await;
        assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &cutout()[..]));
        assert_eq!(answer.header("x-credits-charged"), "5");
    }
    worker.await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!((jobs_in(&app, "done").await, jobs_in(&app, "cancelled").await), (1, 0));
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_an_equal_request_within_ten_minutes_is_a_repeat(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (key, other) = (app.key("ada").await, app.key("bob").await);
    let run = async |key: &str, fields: &[(&str, &str)]| {
        let worker = work(&app, 1);
        let answer = remove(&app, key, fields).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        worker.await.unwrap();
    };
    run(&key, &[]).await;
    // A second key of the same account, and a field that changes nothing, make no difference.
    let second = app.key("ada").await;
    let repeat = remove(&app, &second, &[("size", "preview")]).send().await;
    assert_eq!((repeat.status, app.balance("ada").await), (StatusCode::OK, (15, 0)));
    run(&key, &[("bg_color", "fff")]).await;
    assert_eq!(app.balance("ada").await, (10, 0));
    run(&other, &[]).await;
    assert_eq!(app.balance("bob").await, (15, 0));
    sqlx::query("update jobs set finished_at = finished_at - interval '10 minutes'")
        .execute(&app.pool)
        .await
        .unwrap();
    run(&key, &[]).await;
    assert_eq!(app.balance("ada").await, (5, 0));
    // The result of the repeated run counts from now on.
    assert_eq!(remove(&app, &key, &[]).send().await.status, StatusCode::OK);
    assert_eq!(app.balance("ada").await, (5, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_request_that_joined_a_canceled_run_runs_on_its_own(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    for (before, idempotency_key) in [(20, None), (15, Some("mine"))] {
        joined_and_canceled(&app, &key, idempotency_key, before).await;
    }
}

async fn joined_and_canceled(app: &Arc<TestApp>, key: &str, own: Option<&str>, before: i64) {
    let send = || {
        let request = remove(app, key, &[("bg_color", own.map_or("fff", |_| "000"))]);
        match own {
            Some(own) => request.header("idempotency-key", own).send(),
            None => request.send(),
        }
    };
    let first = send();
    let rest = async {
        let queued = async || (jobs_in(app, "queued").await == 1).then_some(());
        eventually(Duration::from_secs(10), "a job", queued).await;
        let second = send();
        let cancel = async {
            // The second request has joined by then; otherwise it is a first one, with the same outcome.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let job: JobId = sqlx::query_scalar("select id from jobs where state = 'queued'")
                .fetch_one(&app.pool)
                .await
                .unwrap();
            let canceled =
                app.delete(&format!("/api/jobs/{job}")).by(&app.token("ada")).send().await;
            assert!(canceled.status.is_success(), "{}", canceled.text());
            work(app, 1).await.unwrap();
        };
        tokio::join!(second, cancel).0
    };
    let (first, second) = tokio::join!(first, rest);
    is_refused(&first, 409, "cancelled");
    assert_eq!(second.status, StatusCode::OK, "{}", second.text());
    assert_eq!(app.balance("ada").await, (before - 5, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_canceled_run_is_not_joined_again_and_again(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (key, token) = (app.key("ada").await, app.token("ada"));
    let image = app.upload("ada").await;
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let run = app.post(&path).by(&token).header("idempotency-key", "mine").asynchronously();
    assert_eq!(run.send().await.status, StatusCode::ACCEPTED);
    let delete = async |image: &str| {
        let deleted = app.delete(&format!("/api/images/{image}")).by(&token).send().await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    };
    delete(&image).await;
    let send = async |own: &str| {
        let request = remove(&app, &key, &[]).header("idempotency-key", own).send();
        tokio::time::timeout(Duration::from_secs(10), request).await.expect("an answer")
    };
    let worker = work(&app, 1);
    let answer = send("mine").await;
    assert_eq!(answer.status, StatusCode::OK, "the key is free: {}", answer.text());
    worker.await.unwrap();

    // Two requests wait for one run, and its picture is deleted.
    let delete_shared = async {
        wait_for_waiting(&app, 2).await;
        let image: ImageId = sqlx::query_scalar("select image_id from jobs where state = 'queued'")
            .fetch_one(&app.pool)
            .await
            .unwrap();
        delete(&image.to_string()).await;
    };
    let (one, other, ()) = tokio::join!(send("shared"), send("shared"), delete_shared);
    let mut statuses = [one.status, other.status];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::NOT_FOUND, StatusCode::CONFLICT]);

    // An older version did not free the key.
    let keep = "update jobs set idempotency_key = 'old'
                where id = (select id from jobs where state = 'cancelled' limit 1)";
    assert_eq!(sqlx::query(keep).execute(&app.pool).await.unwrap().rows_affected(), 1);
    is_refused(&send("old").await, 409, "cancelled");
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_paid_cutout_does_not_wait_until_others_are_read(pool: PgPool) {
    let app = Arc::new(TestApp::start_with(pool, &["--wait-secs=5"]).await);
    let (key, worker) = (app.key("ada").await, work(&app, 3));
    let mut unread = Vec::new();
    for color in ["000", "888", "fff"] {
        let response = remove(&app, &key, &[("bg_color", color)]).open().await;
        assert_eq!(response.status(), StatusCode::OK, "{color}");
        unread.push(response);
    }
    worker.await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn images_expire_and_are_not_in_the_gallery(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    let worker = work(&app, 1);
    let keyed = || remove(&app, &key, &[]).header("idempotency-key", "one").send();
    assert_eq!(keyed().await.status, StatusCode::OK);
    worker.await.unwrap();
    let gallery = app.get("/api/images").by(&ada).send().await.json();
    assert_eq!(gallery["images"], json!([]));
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
    for table in ["images", "results"] {
        let query = format!("select count(*) from {table}");
        let rows: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(&app.pool).await.unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    // The debit stays, and a late repeat gets its own error.
    assert_eq!(app.balance("ada").await, (15, 0));
    is_refused(&keyed().await, 422, "not_possible");
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_account_shows_the_available_credits(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    let image = app.upload("ada").await;
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    app.post(&path).by(&ada).asynchronously().send().await;
    let answer = app.get(ACCOUNT).with_key(&key).send().await;
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let credits = json!({"total": 15, "subscription": 0, "payg": 15, "enterprise": 0});
    let api = json!({"free_calls": 0, "sizes": "all"});
    assert_eq!(answer.json(), json!({"data": {"attributes": {"credits": credits, "api": api}}}));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn cross_origin_requests_are_allowed(pool: PgPool) {
    let app = TestApp::start(pool).await;
    for path in [REMOVE, ACCOUNT] {
        let answer =
            app.request(Method::OPTIONS, path).header("origin", "https://x.test").send().await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert!(answer.header("access-control-allow-headers").contains("X-Api-Key"));
        assert!(answer.header("access-control-allow-methods").contains("POST"));
    }
    // But not on other routes.
    let answer = app.get("/api/config").header("origin", "https://x.test").send().await;
    assert_eq!(answer.header("access-control-allow-origin"), "");
    let unknown = app.get("/v1.0/improve").send().await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_official_client_works(pool: PgPool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/removebg-client");
    assert!(
        folder.join("node_modules/remove.bg").is_dir(),
        "the client is not installed: run `npm ci` in {}, or scripts/test",
        folder.display()
    );
    let app = Arc::new(TestApp::start(pool).await);
    let key = app.key("ada").await;
    let address = app.listen().await;
    // One job per successful call of the client.
    let worker = work(&app, 3);
    let facts = json!({
        "origin": format!("http://{address}"),
        "key": key,
        "picture": STANDARD.encode(png(64, 48)),
    });
    let client = tokio::process::Command::new("node")
        .args(["--test", "client.test.mjs"])
        .current_dir(&folder)
        .env("RETOUCH_CLIENT_FACTS", facts.to_string())
        .stdin(Stdio::null())
        .output();
    let client = tokio::time::timeout(Duration::from_mins(1), client).await;
    let client = client.expect("the client ends within a minute").expect("node is installed");
    let said = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{said}{}", String::from_utf8_lossy(&client.stderr));
    tokio::time::timeout(Duration::from_secs(5), worker).await.expect("three runs").unwrap();
    assert_eq!(app.balance("ada").await, (5, 0));
}
