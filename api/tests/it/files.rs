//! Pictures at signed addresses, the page beside them, and everything that surrounds an answer.

use axum::http::StatusCode;
use chrono::Duration;
use sqlx::PgPool;

use crate::app::TestApp;

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_picture_is_streamed_in_ranges_and_cached_while_its_address_works(pool: PgPool) {
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

    app.get(&url.replace("/images/", "/image-thumbnails/"))
        .send()
        .await
        .is_problem(404, "File not found");
    app.get(url.split('?').next().unwrap()).send().await.is_problem(404, "File not found");
    app.clock.advance(Duration::hours(2));
    app.get(url).send().await.is_problem(404, "File not found");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn with_a_public_store_pictures_are_served_by_it(pool: PgPool) {
    let app =
        TestApp::start_with(pool, &["--s3-public-endpoint=https://pictures.example.test"]).await;
    let id = app.upload("ada").await;
    let image = app.get(&format!("/api/images/{id}")).by(&app.token("ada")).send().await.json();
    let answer = app.get(image["url"].as_str().unwrap()).send().await;
    assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT);
    let location = answer.header("location");
    assert!(location.starts_with("https://pictures.example.test/test/images/"), "{location}");
    assert!(location.contains("X-Amz-Signature="));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_page_answers_its_own_routes_and_nothing_of_the_api(pool: PgPool) {
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
    app.get("/assets/gone-9.js").send().await.is_problem(404, "There is nothing at this address");
    app.get("/api/nothing").send().await.is_problem(404, "There is nothing at this address");
    app.post("/api/user/get").send().await.is_problem(405, "This address has no such method");
    app.post("/dashboard").send().await.is_problem(405, "This address has no such method");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn readiness_names_what_is_missing(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ready = app.get("/readyz").send().await;
    assert_eq!((ready.status, &ready.json()["ready"]), (StatusCode::OK, &true.into()));
    assert_eq!(app.get("/healthz").send().await.text(), "ok");
    let app = TestApp::start_with(app.pool.clone(), &["--s3-endpoint=http://127.0.0.1:9"]).await;
    let not_ready = app.get("/readyz").send().await;
    assert_eq!(not_ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        (&not_ready.json()["storage"], &not_ready.json()["redis"]),
        (&false.into(), &true.into())
    );
}
