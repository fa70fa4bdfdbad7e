//! The application under test, a request builder, and a simulated worker.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use clap::Parser;
use retouch_api::config::ApiConfig;
use retouch_api::server::{router, serve};
use retouch_api::state::App;
use retouch_catalog::{FixMode, JobClass, Tier, ToolName};
use retouch_core::jobs::{self, Claimed, Failure, Isolation};
use retouch_core::results::NewResult;
use retouch_core::{Clock, JobId, WorkerId, storage};
use retouch_credentials::Verifier;
use retouch_standins::issuer::Issuer;
use retouch_standins::redis_server::RedisServer;
use retouch_standins::stripe::StripeStandIn;
use retouch_standins::testing::{Bucket, eventually, first_attempt, new_result};
use serde_json::Value;
use sqlx::PgPool;
use tower::ServiceExt;

/// The audience of access tokens.
pub const AUDIENCE: &str = "retouch-api";

#[derive(Parser)]
#[command(args_override_self = true)]
struct Settings {
    #[command(flatten)]
    api: ApiConfig,
}

/// The application and its services, which stop when the test ends.
pub struct TestApp {
    pub app: App,
    pub pool: PgPool,
    pub issuer: Issuer,
    pub bucket: Bucket,
    pub clock: Clock,
    router: Router,
    worker: WorkerId,
    redis: RedisServer,
    _page: tempfile::TempDir,
}

impl TestApp {
    /// Starts the application with its default limits.
    pub async fn start(pool: PgPool) -> Self {
        Self::start_with(pool, &[]).await
    }

    /// Starts the application with a payment provider, and with the system clock, which its signatures require.
    pub async fn start_selling(pool: PgPool) -> (Self, StripeStandIn) {
        let stripe = StripeStandIn::start().await;
        let settings = [
            format!("--stripe-secret-key={}", stripe.secret_key),
            format!("--stripe-webhook-secret={}", stripe.webhook_secret),
            format!("--stripe-api-url={}/", stripe.url),
            "--public-url=https://retouch.test".to_owned(),
        ];
        let settings: Vec<_> = settings.iter().map(String::as_str).collect();
        (Self::start_at(pool, &settings, Clock::system()).await, stripe)
    }

    /// Starts the application with command-line arguments, at a fixed time.
    pub async fn start_with(pool: PgPool, settings: &[&str]) -> Self {
        let clock = Clock::fixed("2026-03-01T10:20:00Z".parse::<DateTime<Utc>>().unwrap());
        Self::start_at(pool, settings, clock).await
    }

    async fn start_at(pool: PgPool, settings: &[&str], clock: Clock) -> Self {
        let (issuer, bucket) = (Issuer::start().await, Bucket::of(&pool).await);
        let redis = RedisServer::start();
        let page = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(page.path().join("assets")).unwrap();
        let index = "<!doctype html><title>Retouch</title><script>var shown = 1;</script>";
        std::fs::write(page.path().join("index.html"), index).unwrap();
        std::fs::write(page.path().join("assets/index-1a2b.js"), "console.log(1)").unwrap();
        let config = &bucket.config;
        let args = [
            "test",
            "--database-url=postgres://unused",
            &format!("--redis-url={}", redis.url()),
            &format!("--s3-endpoint={}", config.s3_endpoint.clone().unwrap()),
            "--s3-bucket=test",
            "--s3-access-key-id=test",
            "--s3-secret-access-key=test-secret",
            &format!("--oidc-issuer={}", issuer.url),
            &format!("--oidc-audience={AUDIENCE}"),
            "--url-secret=a secret of the tests",
            &format!("--ui-dir={}", page.path().display()),
            concat!("--picture-decoder=", env!("CARGO_BIN_EXE_retouch-api")),
        ];
        let args = args.into_iter().chain(settings.iter().copied());
        let api = Settings::parse_from(args).api;
        let app = App::with_pool(&api, clock.clone(), pool.clone()).unwrap();
        app.job_events.start(app.queue.clone());
        let router = router::router(app.clone(), &api.ui_dir);
        Self {
            app,
            pool,
            issuer,
            bucket,
            clock,
            router,
            worker: WorkerId::new(),
            redis,
            _page: page,
        }
    }

    /// Returns a token of `name`. The first request with it creates the user.
    pub fn token(&self, name: &str) -> String {
        self.issuer.token(name, AUDIENCE)
    }

    /// Starts building a request.
    pub fn request(&self, method: Method, path: &str) -> TestRequest<'_> {
        TestRequest {
            app: self,
            request: Request::builder().method(method).uri(path),
            body: Body::empty(),
        }
    }

    pub fn get(&self, path: &str) -> TestRequest<'_> {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> TestRequest<'_> {
        self.request(Method::POST, path)
    }

    pub fn delete(&self, path: &str) -> TestRequest<'_> {
        self.request(Method::DELETE, path)
    }

    /// Uploads an image of `name` and returns its id.
    pub async fn upload(&self, name: &str) -> String {
        let answer =
            self.post("/api/images/upload").by(&self.token(name)).file(&png(64, 48)).send().await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Breaks the connection of every transaction that inserted into `table`, while the server commits it.
    pub async fn hang_up_at_commits_of(&self, table: &str) {
        let statements = format!(
            "create function hang_up() returns trigger language plpgsql as
                 'begin perform pg_terminate_backend(pg_backend_pid()); return null; end';
             create constraint trigger hangs_up after insert on {table} deferrable initially deferred
                 for each row execute function hang_up()"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&self.pool).await.unwrap();
    }

    /// Returns the balance of `name` and the held part of it.
    pub async fn balance(&self, name: &str) -> (i64, i64) {
        let user = self.get("/api/user/get").by(&self.token(name)).send().await.json();
        (user["credits"].as_i64().unwrap(), user["reserved"].as_i64().unwrap())
    }

    /// Claims the next job like a worker.
    pub async fn claim(&self) -> Option<Claimed> {
        let classes: Vec<_> = Tier::ALL
            .into_iter()
            .flat_map(|tier| ToolName::ALL.map(|tool| JobClass { tier, tool }))
            .collect();
        let lease = Duration::from_mins(1);
        jobs::claim(&self.pool, self.worker, &classes, &FixMode::ALL, Isolation::Shared, lease)
            .await
            .unwrap()
    }

    /// Finishes a job like a worker, with `png` as its result.
    pub async fn finish(&self, job: JobId, png: &[u8]) {
        self.record(job, png).await;
        self.publish(job).await;
    }

    /// Finishes a job without publishing an event.
    pub async fn finish_silently(&self, job: JobId) {
        self.record(job, &png(64, 48)).await;
    }

    async fn record(&self, job: JobId, png: &[u8]) {
        let (key, thumbnail) = (storage::result_key(job, 1), storage::result_thumbnail_key(job, 1));
        for key in [&key, &thumbnail] {
            self.bucket.storage.put(key, "image/png", Bytes::copy_from_slice(png)).await.unwrap();
        }
        let said = Verifier::new(None, None).unwrap().read(png);
        let made = NewResult {
            object_key: key,
            thumbnail_key: thumbnail,
            size_bytes: png.len() as i64,
            source: said.source.map(|source| source.uri()),
            ..new_result(job, 1)
        };
        jobs::finish(&self.pool, first_attempt(job, self.worker), &made).await.unwrap();
    }

    /// Fails a job like a worker.
    pub async fn fail(&self, job: JobId, failure: &Failure) {
        assert!(jobs::fail(&self.pool, first_attempt(job, self.worker), failure).await.unwrap());
        self.publish(job).await;
    }

    async fn publish(&self, job: JobId) {
        self.app.queue.publish(retouch_core::queue::JobEvent::changed(job)).await.unwrap();
    }

    /// Processes the next job in the background.
    pub fn work_once(self: &std::sync::Arc<Self>) -> tokio::task::JoinHandle<JobId> {
        let app = self.clone();
        tokio::spawn(async move {
            let job = eventually(Duration::from_secs(10), "a job", || app.claim()).await.id;
            app.finish(job, &png(64, 48)).await;
            job
        })
    }

    /// Serves the application on a free port.
    pub async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (app, router) = (self.app.clone(), self.router.clone());
        tokio::spawn(async move { serve(&app, listener, router, std::future::pending()).await });
        address
    }

    /// Creates an API key for `name`.
    pub async fn key(&self, name: &str) -> String {
        let request = serde_json::json!({"name": "test"});
        let created = self.post("/api/keys").by(&self.token(name)).json_body(&request).send().await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
        created.json()["key"].as_str().unwrap().to_owned()
    }

    /// Waits until so many requests of a kind wait for workers.
    pub async fn wait_for_requests<R: retouch_core::queue::Request>(&self, waiting: usize) {
        let list = format!("retouch:{}", R::KIND);
        eventually(Duration::from_secs(10), "requests wait", async || {
            (self.redis.list_length(&list) == waiting).then_some(())
        })
        .await;
    }

    /// Returns the Redis server.
    pub const fn redis(&self) -> &RedisServer {
        &self.redis
    }
}

/// A request under construction.
pub struct TestRequest<'a> {
    app: &'a TestApp,
    request: axum::http::request::Builder,
    body: Body,
}

impl TestRequest<'_> {
    /// Adds a bearer token.
    pub fn by(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    /// Asks for the job instead of the result.
    pub fn asynchronously(self) -> Self {
        self.header("prefer", "respond-async")
    }

    /// Adds an API key.
    pub fn with_key(self, key: &str) -> Self {
        self.header("x-api-key", key)
    }

    /// Sets the body and its type.
    pub fn body(mut self, content_type: &str, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self.header("content-type", content_type)
    }

    /// Sets a multipart body with the file `file`.
    pub fn file(self, bytes: &[u8]) -> Self {
        self.field("file", bytes)
    }

    /// Sets a multipart body with one file.
    pub fn field(self, name: &str, bytes: &[u8]) -> Self {
        self.part(&format!("name=\"{name}\"; filename=\"a\""), bytes)
    }

    /// Sets a multipart body with the file `file`, and `path` as its name.
    pub fn file_named(self, path: &str, bytes: &[u8]) -> Self {
        self.part(&format!("name=\"file\"; filename=\"{path}\""), bytes)
    }

    /// Sets a multipart body with the file `file`, without a name.
    pub fn nameless_file(self, bytes: &[u8]) -> Self {
        self.part("name=\"file\"", bytes)
    }

    fn part(mut self, disposition: &str, bytes: &[u8]) -> Self {
        let mut body =
            format!("--frontier\r\ncontent-disposition: form-data; {disposition}\r\n\r\n")
                .into_bytes();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n--frontier--\r\n");
        self.body = body.into();
        self.header("content-type", "multipart/form-data; boundary=frontier")
    }

    /// Sets a multipart body with these fields.
    pub fn form(mut self, fields: &[(&str, &[u8])]) -> Self {
        let mut body = Vec::new();
        for (name, value) in fields {
            let head =
                format!("--frontier\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n");
            body.extend([head.as_bytes(), value, b"\r\n"].concat());
        }
        body.extend(b"--frontier--\r\n");
        self.body = body.into();
        self.header("content-type", "multipart/form-data; boundary=frontier")
    }

    /// Sets a JSON body.
    pub fn json_body(self, body: &Value) -> Self {
        self.header("content-type", "application/json").raw(body.to_string().into_bytes())
    }

    /// Sets the body.
    pub fn raw(mut self, body: Vec<u8>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the multipart body of Magic Fix.
    pub fn fix(self, mask: &[u8], prompt: &str) -> Self {
        self.fix_with(mask, prompt, &[])
    }

    /// Sets the multipart body of Magic Fix, with further text fields before the file.
    pub fn fix_with(mut self, mask: &[u8], prompt: &str, fields: &[(&str, &str)]) -> Self {
        let fields = [&[("prompt", prompt)], fields].concat();
        let mut body = Vec::new();
        for (name, text) in fields {
            let head =
                format!("--frontier\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n");
            body.extend([head.as_bytes(), text.as_bytes(), b"\r\n"].concat());
        }
        body.extend_from_slice(
            b"--frontier\r\ncontent-disposition: form-data; name=\"file\"; filename=\"mask.png\"\r\n\r\n",
        );
        body.extend_from_slice(mask);
        body.extend_from_slice(b"\r\n--frontier--\r\n");
        self.body = body.into();
        self.header("content-type", "multipart/form-data; boundary=frontier")
    }

    /// Sends the request and returns the response unread.
    pub async fn open(self) -> Response<Body> {
        let request = self.request.body(self.body).unwrap();
        self.app.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends the request and reads the whole response.
    pub async fn send(self) -> Answer {
        let (head, body) = self.open().await.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        // A copy, because the body itself keeps what was reserved for it, as if it were not sent yet.
        Answer { status: head.status, headers: head.headers, body: Bytes::copy_from_slice(&body) }
    }
}

/// A response.
pub struct Answer {
    pub status: StatusCode,
    pub headers: axum::http::HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts that the response is a problem.
    #[track_caller]
    pub fn is_problem(&self, status: u16, detail: &str) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!((self.status.as_u16(), problem["detail"].as_str().unwrap()), (status, detail));
        assert_eq!(problem["status"], status);
    }
}

/// Returns a PNG in one color with a diagonal line, so that the content depends on the size.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    let picture = image::RgbImage::from_fn(width, height, |x, y| {
        if x == y { image::Rgb([250, 240, 10]) } else { image::Rgb([30, 60, 90]) }
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}
