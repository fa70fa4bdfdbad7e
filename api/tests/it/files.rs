//! Signed file URLs, the page, and the headers of all responses.

use std::sync::{Arc, Mutex};

use axum::http::{Method, StatusCode};
use chrono::Duration;
use retouch_core::storage;
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::app::{TestApp, png};

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_file_supports_ranges_and_caching_until_its_url_expires(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let id = app.upload("ada").await;
    let image = app.get(&format!("/api/images/{id}")).by(&app.token("ada")).send().await.json();
    let url = image["url"].as_str().unwrap();
    let whole = app.get(url).send().await;
    assert_eq!((whole.status, whole.header("content-type")), (StatusCode::OK, "image/png"));
    assert_eq!(whole.header("cache-control"), "private, max-age=6000, immutable");
    assert_eq!(whole.header("content-length"), image["sizeBytes"].to_string());
    let part = app.get(url).header("range", "bytes=1-3").send().await;
    assert_eq!((part.status, part.body.as_ref()), (StatusCode::PARTIAL_CONTENT, b"PNG".as_slice()));
    let again = app.get(url).header("if-none-match", whole.header("etag")).send().await;
    assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let any = app.get(url).header("if-none-match", "*").send().await;
    assert_eq!(any.status, StatusCode::NOT_MODIFIED);
    let known = app.get(url).header("if-none-match", "\"another\"");
    let known = known.header("if-none-match", whole.header("etag")).send().await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED, "two lines are one list");
    // Anything but a single valid byte range is ignored.
    for range in ["bytes=9-2", "lines=1-2", "bytes=0-1,4-5", "nonsense"] {
        let answer = app.get(url).header("range", range).send().await;
        assert_eq!((answer.status, &answer.body), (StatusCode::OK, &whole.body), "{range}");
    }
    // A suffix longer than the file is the whole file (RFC 9110, §14.1.2).
    for range in ["bytes=-9223372036854775809", "bytes=0-18446744073709551616"] {
        let answer = app.get(url).header("range", range).send().await;
        assert_eq!((answer.status.as_u16(), &answer.body), (206, &whole.body), "{range}");
    }
    let far = app.get(url).header("range", "bytes=9223372036854775808-").send().await;
    far.is_problem(416, "The requested range is outside the file.");
    let beyond = app.get(url).header("range", "bytes=999999-").send().await;
    beyond.is_problem(416, "The requested range is outside the file.");
    assert_eq!(beyond.header("content-range"), format!("bytes */{}", whole.body.len()));
    for (known, status) in [(whole.header("etag"), 206), ("\"another\"", 200)] {
        let rest = app.get(url).header("range", "bytes=1-3").header("if-range", known).send().await;
        assert_eq!(rest.status.as_u16(), status, "{known}");
    }

    app.get(&url.replace("/images/", "/image-thumbnails/"))
        .send()
        .await
        .is_problem(404, "File not found");
    app.get(url.split('?').next().unwrap()).send().await.is_problem(404, "File not found");
    app.clock.advance(Duration::hours(2));
    app.get(url).send().await.is_problem(404, "File not found");
}

/// Relays connections to `server`. Returns the port, and the text of all requests.
async fn overhear(server: String) -> (u16, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(String::new()));
    let heard = requests.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            let (mut answers, mut forwarded) = server.into_split();
            let (mut sent, mut client) = client.into_split();
            let heard = heard.clone();
            tokio::spawn(async move {
                let mut piece = [0; 4096];
                while let Ok(length @ 1..) = sent.read(&mut piece).await {
                    heard.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
                    forwarded.write_all(&piece[..length]).await.unwrap();
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut answers, &mut client).await });
        }
    });
    (port, requests)
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn bytes_that_nobody_needs_are_not_read_from_the_store(pool: PgPool) {
    let stored = TestApp::start(pool.clone()).await;
    let id = stored.upload("ada").await;
    let path = format!("/api/images/{id}");
    let image = stored.get(&path).by(&stored.token("ada")).send().await.json();
    let url = image["url"].as_str().unwrap();
    let whole = stored.get(url).send().await;
    let store = stored.bucket.config.s3_endpoint.clone().unwrap().replace("http://", "");
    let (port, requests) = overhear(store).await;
    let app = TestApp::start_with(pool, &[&format!("--s3-endpoint=http://127.0.0.1:{port}")]).await;
    for (name, value, status, reads) in [
        ("if-none-match", whole.header("etag"), 304, 0),
        ("range", "bytes=999999-", 416, 1),
        ("range", "bytes=-3", 206, 2),
        ("if-none-match", "\"another\"", 200, 3),
    ] {
        let answer = app.get(url).header(name, value).send().await;
        assert_eq!(answer.status.as_u16(), status, "{name}: {value}");
        assert_eq!(requests.lock().unwrap().matches("GET /").count(), reads, "{name}: {value}");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn file_urls_redirect_to_a_public_object_store(pool: PgPool) {
    let app =
        TestApp::start_with(pool, &["--s3-public-endpoint=https://images.example.test"]).await;
    let id = app.upload("ada").await;
    let image = app.get(&format!("/api/images/{id}")).by(&app.token("ada")).send().await.json();
    let answer = app.get(image["url"].as_str().unwrap()).send().await;
    assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT);
    let location = answer.header("location");
    assert!(location.starts_with("https://images.example.test/test/images/"), "{location}");
    assert!(location.contains("X-Amz-Signature="));
    // The browser finds both the redirect and the picture in its cache.
    assert!(answer.header("cache-control").starts_with("private, max-age="));
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let later = app.get(image["url"].as_str().unwrap()).send().await;
    assert_eq!(later.header("location"), location);
    let head = app.request(Method::HEAD, image["url"].as_str().unwrap()).send().await;
    assert_eq!((head.status, head.header("content-type")), (StatusCode::OK, "image/png"));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_page_is_served_for_its_routes_and_never_for_api_paths(pool: PgPool) {
    let app = TestApp::start(pool).await;
    for path in ["/", "/dashboard", "/remove-background/0192", "/login"] {
        let page = app.get(path).send().await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.text().contains("<title>Retouch</title>"), "{path}");
        assert_eq!(page.header("cache-control"), "no-cache");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        // printf 'var shown = 1;' | openssl dgst -sha256 -binary | base64
        let script = "script-src 'self' 'sha256-erc47tlgT3S5NoInYLI0MlCIXTvg39WJv+7Ou5A0r1g=' ";
        assert!(policy.contains(script), "{policy}");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
    }
    let asset = app.get("/assets/index-1a2b.js").send().await;
    assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
    app.get("/assets/gone-9.js").send().await.is_problem(404, "This path does not exist.");
    app.get("/api/nothing").send().await.is_problem(404, "This path does not exist.");
    app.post("/api/user/get")
        .send()
        .await
        .is_problem(405, "This path does not support this method.");
    let posted = app.post("/dashboard").send().await;
    posted.is_problem(405, "This path does not support this method.");
    assert_eq!(posted.header("allow"), "GET,HEAD");
    let run = app.request(Method::HEAD, "/api/upscale/upscale-ai-2").send().await;
    assert_eq!((run.status.as_u16(), run.header("allow")), (405, "GET,POST"));
    let metadata = "/.well-known/oauth-authorization-server/realms/retouch";
    for file in ["/favicon.ico", "/.env", "/.git/config.old", "/images/a.png", metadata] {
        app.get(file).send().await.is_problem(404, "This path does not exist.");
    }
    assert_eq!(app.get("/index.html").send().await.status, StatusCode::OK);
    // Clients of remove.bg expect errors in its format.
    for (answer, status, title) in [
        (app.get("/v1.0/nothing").send().await, 404, "This path does not exist."),
        (app.get("/v1.0").send().await, 404, "This path does not exist."),
        (app.get("/v1.0/removebg").send().await, 405, "This path does not support this method."),
    ] {
        let shown = answer.json()["errors"][0]["title"].clone();
        assert_eq!((answer.status.as_u16(), shown.as_str()), (status, Some(title)));
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn browsers_never_use_http_where_the_public_address_is_https(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--public-url=https://retouch.test"]).await;
    for path in ["/", "/api/config", "/healthz", "/nothing.js"] {
        let answer = app.get(path).send().await;
        assert_eq!(answer.header("strict-transport-security"), "max-age=31536000", "{path}");
    }
    let app = TestApp::start(app.pool.clone()).await;
    assert_eq!(app.get("/").send().await.header("strict-transport-security"), "");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn responses_to_users_must_not_be_cached(pool: PgPool) {
    let app = TestApp::start(pool).await;
    for path in ["/api/user/get", "/api/images", "/api/checkouts/", "/api/keys", "/api/jobs"] {
        let answer = app.get(path).by(&app.token("ada")).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert!(answer.header("cache-control").contains("no-store"), "{path}");
    }
    let docs = app.get("/api/docs/").send().await;
    assert!(docs.header("content-security-policy").contains("frame-ancestors 'none'"));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn readiness_reports_unavailable_dependencies(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ready = app.get("/readyz").send().await;
    assert_eq!((ready.status, &ready.json()["ready"]), (StatusCode::OK, &true.into()));
    assert_eq!(app.get("/healthz").send().await.text(), "ok");
    assert!(ready.json()["workers"].is_array());
    for (header, client) in [("x-forwarded-for", "10.0.0.1"), ("forwarded", "for=10.0.0.1")] {
        let unlisted = app.get("/readyz").header(header, client).send().await.json();
        assert_eq!(unlisted.get("workers"), None, "behind a proxy that is not listed");
    }
    let proxied = TestApp::start_with(app.pool.clone(), &["--trusted-proxies=127.0.0.1"]).await;
    let elsewhere = proxied.get("/readyz").header("x-forwarded-for", "9.9.9.9").send().await;
    assert_eq!((elsewhere.status, &elsewhere.json()["ready"]), (StatusCode::OK, &true.into()));
    assert_eq!(elsewhere.json().get("workers"), None, "names and problems of workers are private");
    let app = TestApp::start_with(app.pool.clone(), &["--s3-endpoint=http://127.0.0.1:9"]).await;
    let not_ready = app.get("/readyz").send().await;
    assert_eq!(not_ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        (&not_ready.json()["storage"], &not_ready.json()["redis"]),
        (&false.into(), &true.into())
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_api_with_the_bucket_of_another_database_is_not_ready(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let another = b"another".to_vec().into();
    app.bucket.storage.put(storage::OWNER_KEY, "text/plain", another).await.unwrap();
    let not_ready = app.get("/readyz").send().await;
    assert_eq!(not_ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(not_ready.json()["storage"], false);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn readiness_is_checked_once_a_second_however_often_anybody_asks(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let status = async || app.get("/readyz").send().await.status;
    assert_eq!(status().await, StatusCode::OK);
    let another = b"another".to_vec().into();
    app.bucket.storage.put(storage::OWNER_KEY, "text/plain", another).await.unwrap();
    assert_eq!(status().await, StatusCode::OK, "as a moment ago");
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(status().await, StatusCode::SERVICE_UNAVAILABLE);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_times_of_runs_are_read_once_in_a_while(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let config = async || app.get("/api/config").send().await.json();
    let before = config().await["tools"].clone();
    let image = app.upload("ada").await;
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    app.post(&path).by(&app.token("ada")).asynchronously().send().await;
    let job = app.claim().await.unwrap().id;
    app.finish(job, &png(64, 48)).await;
    assert_eq!(config().await["tools"], before);
    let restarted = TestApp::start(app.pool.clone()).await;
    assert_ne!(restarted.get("/api/config").send().await.json()["tools"], before);
}
