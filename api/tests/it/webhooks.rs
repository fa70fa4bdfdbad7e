//! Webhooks through HTTP: the routes for owners, and deliveries to a real receiver on this machine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use retouch_api::webhooks::sender;
use retouch_core::JobId;
use retouch_core::jobs::Failure;
use retouch_standins::testing::eventually;
use serde_json::{Value, json};
use sha2::Sha256;
use sqlx::PgPool;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::app::{TestApp, png};

/// Allows the receiver of these tests.
const LOCAL: &str = "--webhooks-allow-private=127.0.0.0/8,::1/128";
const SOON: Duration = Duration::from_secs(10);
const EVENTS: [&str; 4] = ["job.done", "job.failed", "job.canceled", "credits.low"];

/// A request that the receiver got.
#[derive(Clone, Debug)]
struct Received {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Checks each signature with `secrets`, as a receiver does.
    fn is_signed_with(&self, secrets: &[&str]) -> bool {
        let content = [
            self.header("webhook-id").as_bytes(),
            b".",
            self.header("webhook-timestamp").as_bytes(),
            b".",
            &self.body,
        ]
        .concat();
        let expected = secrets.iter().map(|secret| {
            let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(&content);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        });
        expected.collect::<Vec<_>>().join(" ") == self.header("webhook-signature")
    }
}

/// An HTTP server whose answer is the first part of the path: a status, `hang`, or `redirect`.
struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    async fn start() -> Self {
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().route("/{*path}", post(Self::answer));
        let router = router.with_state(received.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, received }
    }

    async fn answer(
        State(received): State<Arc<Mutex<Vec<Received>>>>,
        Path(path): Path<String>,
        headers: HeaderMap,
        body: Bytes,
    ) -> Response {
        received.lock().unwrap().push(Received { path: path.clone(), headers, body });
        match path.split('/').next().unwrap() {
            "hang" => std::future::pending().await,
            "redirect" => Redirect::temporary("/200/redirected").into_response(),
            status => StatusCode::from_u16(status.parse().unwrap()).unwrap().into_response(),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    fn all(&self, path: &str) -> Vec<Received> {
        let received = self.received.lock().unwrap();
        received.iter().filter(|one| one.path == path).cloned().collect()
    }

    /// Waits for `count` requests to `path`.
    async fn wait_for(&self, path: &str, count: usize) -> Vec<Received> {
        let what = format!("{count} requests to {path}");
        eventually(SOON, &what, || async { Some(self.all(path)).filter(|all| all.len() >= count) })
            .await
    }
}

fn send_from(app: &TestApp) -> JoinHandle<()> {
    tokio::spawn(sender::run(app.app.clone()))
}

async fn create(app: &TestApp, url: &str) -> (String, String) {
    create_by(app, "ada", url).await
}

async fn create_by(app: &TestApp, name: &str, url: &str) -> (String, String) {
    let request = json!({"url": url, "description": " shop ", "events": EVENTS});
    let made = app.post("/api/webhooks").by(&app.token(name)).json_body(&request).send().await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    assert_eq!(made.header("cache-control"), "no-store");
    let made = made.json();
    (made["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned())
}

async fn submit(app: &TestApp) -> JobId {
    let image = app.upload("ada").await;
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let job = app.post(&path).by(&app.token("ada")).asynchronously().send().await.json();
    job["id"].as_str().unwrap().parse().unwrap()
}

async fn run(app: &TestApp) -> JobId {
    submit(app).await;
    let job = app.claim().await.unwrap().id;
    app.finish(job, &png(64, 48)).await;
    job
}

async fn deliveries(app: &TestApp, webhook: &str) -> Vec<Value> {
    let path = format!("/api/webhooks/{webhook}/deliveries");
    let answer = app.get(&path).by(&app.token("ada")).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()["deliveries"].as_array().unwrap().clone()
}

/// Waits until the newest delivery is in `state`.
async fn newest(app: &TestApp, webhook: &str, state: &str) -> Value {
    let what = format!("a delivery that is {state}");
    eventually(SOON, &what, || async {
        let newest = deliveries(app, webhook).await.first().cloned()?;
        (newest["state"] == state && newest["attempts"] != 0).then_some(newest)
    })
    .await
}

async fn test_event(app: &TestApp, webhook: &str) -> Value {
    test_event_by(app, "ada", webhook).await
}

async fn test_event_by(app: &TestApp, name: &str, webhook: &str) -> Value {
    let path = format!("/api/webhooks/{webhook}/test");
    let sent = app.post(&path).by(&app.token(name)).send().await;
    assert_eq!(sent.status, StatusCode::ACCEPTED, "{}", sent.text());
    sent.json()["deliveryId"].clone()
}

async fn sql(pool: &PgPool, statement: &'static str) {
    sqlx::query(statement).execute(pool).await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_receiver_is_told_what_happened_and_can_verify_it(pool: PgPool) {
    let app = TestApp::start_with(pool, &[LOCAL]).await;
    let receiver = Receiver::start().await;
    let (hook, secret) = create(&app, &receiver.url("204/ada")).await;
    assert!(secret.starts_with("whsec_") && secret.len() == 6 + 44, "{secret}");
    let _sending = send_from(&app);

    let done = run(&app).await;
    let told = receiver.wait_for("204/ada", 2).await;
    assert!(told.iter().all(|one| one.is_signed_with(&[&secret])));
    assert_eq!(told[0].header("content-type"), "application/json");
    assert_eq!(told[0].header("webhook-timestamp"), app.clock.now().timestamp().to_string());
    let of = |event: &str| {
        let all: Vec<_> = receiver.all("204/ada").into_iter().map(|one| one.json()).collect();
        let mut its = all.into_iter().filter(|body| body["type"] == event);
        let first = its.next().unwrap_or_else(|| panic!("no {event}"));
        assert!(its.next().is_none(), "{event} is told once");
        first["data"].clone()
    };
    let told = of("job.done");
    assert_eq!((&told["jobId"], &told["tool"]), (&json!(done), &json!("remove-background")));
    assert_eq!(
        (&told["cost"], &told["credits"], &told["tier"]),
        (&json!(5), &json!(15), &json!("paid"))
    );
    assert_eq!(of("credits.low"), json!({"credits": 15, "creditsBelow": 20}));
    // The paths lead to the job and its picture.
    let key = app.key("ada").await;
    let job = app.get(told["jobPath"].as_str().unwrap()).with_key(&key).send().await.json();
    assert_eq!(job["results"][0]["imageId"], told["resultId"]);
    let picture = app.get(told["resultPath"].as_str().unwrap()).with_key(&key).send().await;
    assert_eq!((picture.status, &picture.body[..]), (StatusCode::OK, &png(64, 48)[..]));

    submit(&app).await;
    let failed = app.claim().await.unwrap().id;
    app.fail(failed, &Failure { code: "image_unreadable".into(), detail: "No.".into() }).await;
    let canceled = submit(&app).await;
    app.delete(&format!("/api/jobs/{canceled}")).by(&app.token("ada")).send().await;
    test_event(&app, &hook).await;
    receiver.wait_for("204/ada", 5).await;
    let told = of("job.failed");
    assert_eq!(told["failure"], json!({"code": "image_unreadable", "detail": "No."}));
    assert_eq!((&told["cost"], &told["credits"]), (&json!(0), &json!(15)));
    assert_eq!(of("job.canceled")["jobId"], json!(canceled));
    assert_eq!(of("webhook.test"), json!({"credits": 15}));
    assert_eq!(app.balance("ada").await, (15, 0));

    let last = newest(&app, &hook, "delivered").await;
    assert_eq!((&last["event"], &last["attempts"]), (&json!("webhook.test"), &json!(1)));
    assert_eq!((&last["responseStatus"], &last["problem"]), (&json!(204), &json!(null)));
    assert!(last["durationMs"].is_i64() && last["nextAttemptAt"].is_null(), "{last}");
    // Sent again, it is the same event.
    let id = last["id"].as_str().unwrap();
    let again = app.post(&format!("/api/webhooks/{hook}/deliveries/{id}/resend")).with_key(&key);
    assert_eq!(again.send().await.status, StatusCode::ACCEPTED);
    let told = receiver.wait_for("204/ada", 6).await;
    assert_eq!((told[5].header("webhook-id"), &told[5].body), (id, &told[4].body));
    let export = app.get("/api/user/export").by(&app.token("ada")).send().await;
    assert_eq!(export.json()["webhooks"][0]["id"], json!(hook));
    assert!(!export.text().contains(&secret[6..]), "no secrets");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_documented_examples_verify_deliveries(pool: PgPool) {
    let app = TestApp::start_with(pool, &[LOCAL]).await;
    let receiver = Receiver::start().await;
    let (hook, secret) = create(&app, &receiver.url("200/x")).await;
    let _sending = send_from(&app);
    test_event(&app, &hook).await;
    let told = receiver.wait_for("200/x", 1).await.remove(0);
    let manual = include_str!("../../../docs/using.md");
    let example = |language: &str| {
        let fence = format!("```{language}\n");
        let found = manual.split(&fence).skip(1).find(|code| code.contains("webhook-signature"));
        found.unwrap().split("```").next().unwrap()
    };
    let headers: serde_json::Map<_, _> = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| (name.to_owned(), json!(told.header(name))))
        .into_iter()
        .collect();
    let (headers, body) = (json!(headers), String::from_utf8(told.body.to_vec()).unwrap());
    let now = told.header("webhook-timestamp");
    let python = format!(
        "{}\nimport json, sys\ntime.time = lambda: {now}\nh, b, s = sys.argv[1:]\nassert verify(json.loads(h), b.encode(), s)\nassert not verify(json.loads(h), b.encode() + b' ', s)\ntime.time = lambda: {now} + 301\nassert not verify(json.loads(h), b.encode(), s)\n",
        example("python")
    );
    let node = format!(
        "{}\nconst [h, b, s] = process.argv.slice(-3);\nDate.now = () => {now} * 1000;\nif (!verify(JSON.parse(h), Buffer.from(b), s) || verify(JSON.parse(h), Buffer.from(b + ' '), s)) process.exit(1);\nDate.now = () => ({now} + 301) * 1000;\nif (verify(JSON.parse(h), Buffer.from(b), s)) process.exit(2);\n",
        example("js")
    );
    for (program, options, code) in
        [("python3", vec!["-c"], python), ("node", vec!["--input-type=module", "-e"], node)]
    {
        let ended = Command::new(program)
            .args(options)
            .arg(code)
            .args([&headers.to_string(), &body, &secret])
            .output()
            .await
            .unwrap();
        assert!(ended.status.success(), "{program}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn processes_share_the_work_and_a_crash_loses_nothing(pool: PgPool) {
    let one = TestApp::start_with(pool.clone(), &[LOCAL]).await;
    let other = TestApp::start_with(pool.clone(), &[LOCAL]).await;
    let receiver = Receiver::start().await;
    let (hook, _) = create(&one, &receiver.url("200/all")).await;
    let sending = (send_from(&one), send_from(&other));
    for _ in 0..30 {
        test_event(&one, &hook).await;
    }
    receiver.wait_for("200/all", 30).await;
    eventually(SOON, "all recorded", || async {
        let all = deliveries(&one, &hook).await;
        all.iter().all(|one| one["state"] == "delivered").then_some(())
    })
    .await;
    let all = receiver.all("200/all");
    let mut ids: Vec<_> = all.iter().map(|one| one.header("webhook-id").to_owned()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((all.len(), ids.len()), (30, 30), "each is sent by one of them");
    sending.1.abort();

    // A process dies after it has sent and before it has recorded the outcome.
    let patch = json!({"url": receiver.url("hang/crash")});
    let path = format!("/api/webhooks/{hook}");
    let changed = one.request(axum::http::Method::PATCH, &path).by(&one.token("ada"));
    assert_eq!(changed.json_body(&patch).send().await.status, StatusCode::OK);
    let job = run(&one).await;
    let lost = receiver.wait_for("hang/crash", 1).await.remove(0);
    sending.0.abort();
    assert!(sending.0.await.unwrap_err().is_cancelled());
    sql(&pool, "update webhooks set url = replace(url, 'hang', '200')").await;
    sql(
        &pool,
        "update webhook_deliveries set due_at = now(), lease_until = now() where state = 'waiting'",
    )
    .await;
    let _sending = send_from(&other);
    let told = receiver.wait_for("200/crash", 2).await;
    let again = told.iter().find(|one| one.header("webhook-id") == lost.header("webhook-id"));
    let again = again.expect("the same event");
    assert_eq!(again.body, lost.body);
    assert!(told.iter().any(|one| one.json()["data"]["jobId"] == json!(job)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn receivers_that_hang_do_not_hold_up_others(pool: PgPool) {
    let app = TestApp::start_with(pool.clone(), &[LOCAL]).await;
    let receiver = Receiver::start().await;
    for name in ["bob", "eve"] {
        for _ in 0..4 {
            let (dead, _) = create_by(&app, name, &receiver.url(&format!("hang/{name}"))).await;
            for _ in 0..6 {
                test_event_by(&app, name, &dead).await;
            }
        }
    }
    let (healthy, _) = create(&app, &receiver.url("200/healthy")).await;
    let sending = send_from(&app);
    receiver.wait_for("hang/bob", 8).await;
    receiver.wait_for("hang/eve", 8).await;
    for count in 1..=3 {
        test_event(&app, &healthy).await;
        receiver.wait_for("200/healthy", count).await;
    }
    for name in ["bob", "eve"] {
        let all = receiver.all(&format!("hang/{name}"));
        assert_eq!(all.len(), 8, "eight at once for all webhooks of an account");
    }
    assert_eq!(newest(&app, &healthy, "delivered").await["attempts"], 1);
    // A process that stops finishes what is in flight first.
    assert!(!sending.is_finished());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_receiver_that_accepts_an_event_late_has_it_though_its_answer_stalls(pool: PgPool) {
    let app = TestApp::start_with(pool, &[LOCAL]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = tokio::spawn(async move {
        let (mut sender, _) = listener.accept().await.unwrap();
        // Reading the rest takes another second, and both together more than an attempt may.
        tokio::time::sleep(Duration::from_millis(2300)).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
        sender.write_all(head).await.unwrap();
        std::future::pending::<()>().await;
    });
    let (hook, _) = create(&app, &format!("http://127.0.0.1:{port}/")).await;
    let _sending = tokio::spawn(sender::run_with(app.app.clone(), Duration::from_secs(3)));
    test_event(&app, &hook).await;
    assert_eq!(newest(&app, &hook, "delivered").await["responseStatus"], 200);
    receiver.abort();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn failures_are_named_and_retried(pool: PgPool) {
    let app = TestApp::start_with(pool.clone(), &[LOCAL]).await;
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let _sending = send_from(&app);
    for (url, status, problem) in [
        (receiver.url("500/x"), json!(500), "status"),
        (receiver.url("redirect/x"), json!(307), "redirect"),
        (format!("http://127.0.0.1:{closed}/"), json!(null), "connection"),
        (format!("https://localhost:{port}/"), json!(null), "tls"),
        (format!("https://no-such-host.invalid:{port}/"), json!(null), "dns"),
    ] {
        let (hook, _) = create(&app, &url).await;
        test_event(&app, &hook).await;
        let seen = newest(&app, &hook, "failed").await;
        assert_eq!(
            (&seen["responseStatus"], &seen["problem"]),
            (&status, &json!(problem)),
            "{url}"
        );
        app.delete(&format!("/api/webhooks/{hook}")).by(&app.token("ada")).send().await;
    }
    assert!(receiver.all("200/redirected").is_empty());

    // Deliveries other than tests are retried until the receiver is back.
    let (hook, _) = create(&app, &receiver.url("503/x")).await;
    run(&app).await;
    receiver.wait_for("503/x", 2).await;
    let waiting = newest(&app, &hook, "waiting").await;
    assert!(waiting["nextAttemptAt"].is_string(), "{waiting}");
    sql(&pool, "update webhooks set url = replace(url, '503', '200')").await;
    let told = receiver.wait_for("200/x", 2).await;
    assert_eq!(told[0].header("user-agent"), "Retouch-Webhooks/1");
    let webhooks = app.get("/api/webhooks").by(&app.token("ada")).send().await.json();
    assert_eq!(webhooks["webhooks"][0]["enabled"], true);
    // 410 turns it off.
    sql(&pool, "update webhooks set url = replace(url, '200', '410')").await;
    test_event(&app, &hook).await;
    newest(&app, &hook, "failed").await;
    let webhooks = app.get("/api/webhooks").by(&app.token("ada")).send().await.json();
    let seen = &webhooks["webhooks"][0];
    assert_eq!((&seen["enabled"], &seen["disabledReason"]), (&json!(false), &json!("gone")));
    let refused =
        app.post(&format!("/api/webhooks/{hook}/test")).by(&app.token("ada")).send().await;
    refused.is_problem(422, "This webhook is off. Turn it on first.");
    assert_eq!(app.balance("ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn private_addresses_are_called_only_where_the_operator_allows_it(pool: PgPool) {
    let open = TestApp::start_with(pool.clone(), &[LOCAL]).await;
    let strict = TestApp::start_with(pool.clone(), &[]).await;
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    let ask = async |app: &TestApp, url: &str| {
        let request = json!({"url": url, "events": ["job.done"]});
        app.post("/api/webhooks").by(&app.token("ada")).json_body(&request).send().await
    };
    let private = "This address belongs to a private network. Webhooks can only call public ones.";
    for (url, status, detail) in [
        ("https://10.0.0.1/hook", 422, private),
        ("https://[::ffff:169.254.169.254]/latest", 422, private),
        ("https://localhost/hook", 422, private),
        ("https://2130706433/", 422, private),
        ("http://example.com/hook", 400, "The address must begin with https://."),
        (
            "https://ada:pw@example.com/",
            400,
            "The address must not contain a user name or a password.",
        ),
        ("https://example.com:25/", 400, "The address must use port 443, or a port above 1023."),
        ("example.com", 400, "Enter a complete address, such as https://example.com/hooks."),
    ] {
        ask(&strict, url).await.is_problem(status, detail);
    }
    // A name that has come to mean something else, or rules that have become stricter: each attempt checks again.
    let mut hooks = Vec::new();
    for url in [receiver.url("200/literal"), format!("http://localhost:{port}/200/name")] {
        hooks.push(create(&open, &url).await.0);
    }
    hooks.push(create(&open, &format!("https://localhost:{port}/200/tls")).await.0);
    let sending = send_from(&strict);
    let token = open.token("ada");
    for hook in &hooks {
        test_event(&open, hook).await;
        let seen = newest(&open, hook, "failed").await;
        assert_eq!(seen["problem"], "address");
    }
    assert!(receiver.received.lock().unwrap().is_empty(), "nothing was sent");
    sending.abort();
    let _sending = send_from(&open);
    test_event(&open, &hooks[1]).await;
    receiver.wait_for("200/name", 1).await;
    let mine = open.get("/api/webhooks").by(&token).send().await.json();
    assert_eq!(mine["webhooks"].as_array().unwrap().len(), 3);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_rotated_secret_signs_beside_the_new_one_for_a_day(pool: PgPool) {
    let app = TestApp::start_with(pool.clone(), &[LOCAL]).await;
    let receiver = Receiver::start().await;
    let (hook, old) = create(&app, &receiver.url("200/x")).await;
    let path = format!("/api/webhooks/{hook}/secret");
    let rotated = app.post(&path).by(&app.token("ada")).send().await;
    assert_eq!((rotated.status, rotated.header("cache-control")), (StatusCode::OK, "no-store"));
    let rotated = rotated.json();
    let new = rotated["secret"].as_str().unwrap();
    assert!(new != old && rotated["oldSecretUntil"].is_string());
    let _sending = send_from(&app);
    test_event(&app, &hook).await;
    assert!(receiver.wait_for("200/x", 1).await[0].is_signed_with(&[new, &old]));
    sql(&pool, "update webhooks set old_secret_until = now()").await;
    test_event(&app, &hook).await;
    assert!(receiver.wait_for("200/x", 2).await[1].is_signed_with(&[new]));
    let listed = app.get("/api/webhooks").by(&app.token("ada")).send().await;
    assert!(!listed.text().contains("whsec_"), "{}", listed.text());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn owners_manage_webhooks_and_programs_only_use_them(pool: PgPool) {
    let app = TestApp::start_with(pool, &[LOCAL]).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    let url = "http://127.0.0.1:9999/hook";
    let (hook, _) = create(&app, url).await;
    let path = format!("/api/webhooks/{hook}");
    let patch = |body: Value| {
        app.request(axum::http::Method::PATCH, &path).by(&ada).json_body(&body).send()
    };
    let listed = app.get("/api/webhooks").with_key(&key).send().await.json();
    let seen = &listed["webhooks"][0];
    assert_eq!((&seen["url"], &seen["description"]), (&json!(url), &json!("shop")));
    assert_eq!((&seen["events"], &seen["creditsBelow"]), (&json!(EVENTS), &json!(20)));
    let refused = "API keys cannot be used here. Sign in instead.";
    for request in [
        app.post("/api/webhooks").json_body(&json!({"url": url, "events": EVENTS})),
        app.request(axum::http::Method::PATCH, &path).json_body(&json!({})),
        app.post(&format!("{path}/secret")),
        app.delete(&path),
    ] {
        request.with_key(&key).send().await.is_problem(403, refused);
    }
    let changed =
        patch(json!({"events": ["job.failed", "job.failed"], "creditsBelow": 7, "enabled": false}))
            .await;
    let seen = changed.json();
    assert_eq!((&seen["events"], &seen["creditsBelow"]), (&json!(["job.failed"]), &json!(7)));
    assert_eq!((&seen["enabled"], &seen["disabledReason"]), (&json!(false), &json!(null)));
    assert_eq!((&seen["url"], &seen["description"]), (&json!(url), &json!("shop")));
    let long = "d".repeat(201);
    for (body, detail) in [
        (json!({"events": []}), "Choose at least one event."),
        (json!({"events": ["webhook.test"]}), "Choose at least one event."),
        (json!({"description": long}), "The description must have at most 200 characters."),
        (json!({"description": "two\nlines"}), "The description must have at most 200 characters."),
        (json!({"creditsBelow": 0}), "The number of credits must be between 1 and 1000000."),
        (
            json!({"creditsBelow": 1_000_001}),
            "The number of credits must be between 1 and 1000000.",
        ),
        (json!({"url": "ftp://example.com"}), "The address must begin with https://."),
    ] {
        patch(body).await.is_problem(400, detail);
    }
    for body in [json!({"events": ["job.started"]}), json!({"enabled": "yes"}), json!(7)] {
        assert_eq!(patch(body).await.status, StatusCode::BAD_REQUEST);
    }
    // Concurrent requests must not exceed the limit.
    let made = (0..8).map(|_| {
        let body = json!({"url": url, "events": ["job.done"]});
        app.post("/api/webhooks").by(&ada).json_body(&body).send()
    });
    let answers = futures::future::join_all(made).await;
    let refused: Vec<_> =
        answers.iter().filter(|answer| answer.status != StatusCode::CREATED).collect();
    assert_eq!(refused.len(), 4);
    refused[0].is_problem(422, "You already have 5 webhooks. Delete one first.");
    assert_eq!(app.delete(&path).by(&ada).send().await.status, StatusCode::NO_CONTENT);
    app.delete(&path).by(&ada).send().await.is_problem(404, "Webhook not found");
    let unknown = format!("/api/webhooks/{}/deliveries/{hook}/resend", {
        let left = app.get("/api/webhooks").by(&ada).send().await.json();
        left["webhooks"][0]["id"].as_str().unwrap().to_owned()
    });
    app.post(&unknown).by(&ada).send().await.is_problem(404, "Delivery not found");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_webhook_that_may_have_been_created_is_not_asked_for_again(pool: PgPool) {
    let app = TestApp::start_with(pool, &[LOCAL]).await;
    let ada = app.token("ada");
    app.get("/api/webhooks").by(&ada).send().await;
    app.hang_up_at_commits_of("webhooks").await;
    let request = json!({"url": "http://127.0.0.1:9999/hook", "events": EVENTS});
    let lost = app.post("/api/webhooks").by(&ada).json_body(&request).send().await;
    lost.is_problem(
        500,
        "We don't know whether this webhook was created. If it is in your list, replace its secret, because nobody has it.",
    );
    assert_eq!((&lost.json()["code"], lost.header("retry-after")), (&json!("outcome_unknown"), ""));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn nobody_keeps_the_api_resolving_names(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ask = async |user: &str| {
        let request = json!({"url": "https://10.0.0.1/hook", "events": ["job.done"]});
        app.post("/api/webhooks").by(&app.token(user)).json_body(&request).send().await
    };
    let mut answers = Vec::new();
    // Some of the allowance comes back during the calls.
    while answers.last() != Some(&StatusCode::TOO_MANY_REQUESTS) && answers.len() < 90 {
        let answer = ask("ada").await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            assert!(answer.text().contains("You can start 30 address checks per minute."));
        }
        answers.push(answer.status);
    }
    assert!((31..90).contains(&answers.len()), "{answers:?}");
    assert_eq!(ask("bob").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}
