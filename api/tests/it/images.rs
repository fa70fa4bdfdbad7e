//! Uploaded images: only images are accepted, and only their owner sees them.

use axum::http::StatusCode;
use img_parts::png::{Png, PngChunk};
use retouch_standins::testing::object_keys;
use sqlx::PgPool;

use crate::app::{TestApp, png};

async fn assert_nothing_is_stored(app: &TestApp) {
    let images: i64 =
        sqlx::query_scalar("select count(*) from images").fetch_one(&app.pool).await.unwrap();
    assert_eq!(images, 0);
    assert_eq!(object_keys(&app.bucket.storage).await, Vec::<String>::new());
}

/// Returns a tiny PNG whose header claims `side` × `side` pixels.
fn bomb(side: u32) -> Vec<u8> {
    let mut png = Png::from_bytes(crate::app::png(1, 1).into()).unwrap();
    let mut header = png.chunks()[0].contents().to_vec();
    header[..4].copy_from_slice(&side.to_be_bytes());
    header[4..8].copy_from_slice(&side.to_be_bytes());
    png.chunks_mut()[0] = PngChunk::new(*b"IHDR", header.into());
    png.encoder().bytes().to_vec()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_uploaded_image_can_be_listed_shown_and_deleted(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let uploaded = app.post("/api/images/upload").by(&ada).file(&png(640, 480)).send().await;
    assert_eq!(uploaded.status, StatusCode::CREATED);
    let image = uploaded.json();
    assert_eq!((image["x"].as_i64(), image["y"].as_i64()), (Some(640), Some(480)));
    assert_eq!(image["id"], image["imageId"]);
    let id = image["id"].as_str().unwrap();

    let list = app.get("/api/images").by(&ada).send().await.json();
    assert_eq!(list["images"].as_array().unwrap().len(), 1);
    assert_eq!(app.get(&format!("/api/images/{id}")).by(&ada).send().await.json(), image);

    let thumbnail = app.get(image["thumbnailUrl"].as_str().unwrap()).send().await;
    let small = image::load_from_memory(&thumbnail.body).unwrap();
    assert_eq!((small.width(), small.height()), (512, 384));

    let gone = app.delete(&format!("/api/images/{id}")).by(&ada).send().await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    app.get(&format!("/api/images/{id}")).by(&ada).send().await.is_problem(404, "Image not found");
    app.get(image["url"].as_str().unwrap()).send().await.is_problem(404, "File not found");
    retouch_core::janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    assert_nothing_is_stored(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_long_list_comes_whole_or_in_pages(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    app.upload("ada").await;
    // Of every two, one was uploaded at the same moment as the one before it.
    sqlx::query(
        "insert into images (id, owner_id, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height, created_at)
         select gen_random_uuid(), owner_id, 'images/' || n, 'images/t' || n, 'image/png', 'x', 1, 64, 48,
                created_at - make_interval(mins => n / 2)
         from images, generate_series(2, 1499) n",
    )
    .execute(&app.pool)
    .await
    .unwrap();
    let ids = |list: &serde_json::Value| -> Vec<String> {
        let images = list["images"].as_array().unwrap();
        images.iter().map(|image| image["id"].as_str().unwrap().to_owned()).collect()
    };
    let answer = app.get("/api/images").by(&ada).send().await;
    assert_eq!(answer.header("content-type"), "application/json");
    let whole = answer.json();
    assert_eq!((ids(&whole).len(), whole.get("next")), (1499, None));
    let times: Vec<_> = whole["images"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["createdAt"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "the newest first");

    for limit in [1, 100, 499, 500] {
        let (mut paged, mut before) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/images?limit={limit}{before}");
            let page = app.get(&path).by(&ada).send().await.json();
            paged.extend(ids(&page));
            let Some(next) = page["next"].as_str() else { break };
            before = format!("&before={next}");
            // A page of one image each would take long.
            if limit == 1 && paged.len() == 5 {
                break;
            }
        }
        assert_eq!(paged, ids(&whole)[..paged.len()], "in pages of {limit}");
        assert!(limit == 1 || paged.len() == 1499);
    }
    let rest = app.get("/api/images?limit=2").by(&ada).send().await.json()["next"].clone();
    let rest =
        app.get(&format!("/api/images?before={}", rest.as_str().unwrap())).by(&ada).send().await;
    assert_eq!(ids(&rest.json()), ids(&whole)[2..]);
    let theirs = app.get("/api/images?limit=2").by(&app.token("bob")).send().await.json();
    assert_eq!(theirs, serde_json::json!({"images": [], "total": 0}));
    for wrong in [
        "limit=0",
        "limit=501",
        "limit=x",
        "before=x",
        "before=1-x",
        "before=99999999999999999999-x",
    ] {
        let answer = app.get(&format!("/api/images?{wrong}")).by(&ada).send().await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

/// Returns the start of a WebP that says it is animated.
fn animated_webp() -> Vec<u8> {
    let frames = b"VP8X\x0a\0\0\0\x02\0\0\0\0\0\0\0\0\0";
    [b"RIFF\x16\0\0\0WEBP", &frames[..]].concat()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upload_with_the_same_key_and_file_is_stored_once(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, bob) = (app.token("ada"), app.token("bob"));
    let upload = |token: &str, key: &str, bytes: Vec<u8>| {
        let request = app.post("/api/images/upload").by(token).header("idempotency-key", key);
        async move { request.file(&bytes).send().await }
    };
    let (one, other) = (png(64, 48), png(48, 64));
    let repeats = (0..5).map(|_| upload(&ada, "first", one.clone()));
    let answers = futures::future::join_all(repeats).await;
    let ids: std::collections::HashSet<_> = answers
        .iter()
        .map(|answer| {
            assert_eq!(answer.status, StatusCode::CREATED);
            answer.json()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 1, "one image for five concurrent repeats");
    let id = ids.into_iter().next().unwrap();
    let detail = "This Idempotency-Key was already used for a different request.";
    upload(&ada, "first", other.clone()).await.is_problem(422, detail);
    assert_ne!(upload(&ada, "second", one.clone()).await.json()["id"], id.as_str());
    assert_ne!(upload(&bob, "first", one.clone()).await.json()["id"], id.as_str());
    let list = app.get("/api/images").by(&ada).send().await.json();
    assert_eq!(list["images"].as_array().unwrap().len(), 2);

    // A deleted image frees its key.
    app.delete(&format!("/api/images/{id}")).by(&ada).send().await;
    let again = upload(&ada, "first", other).await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert_ne!(again.json()["id"], id.as_str());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn files_that_are_not_images_are_rejected_and_leave_nothing_behind(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let upload = |bytes: Vec<u8>| {
        let request = app.post("/api/images/upload").by(&ada);
        async move { request.file(&bytes).send().await }
    };
    let unsupported = "We can't read this file as an image. Use PNG, JPEG, WebP, HEIC or AVIF.";
    upload(b"just some text".to_vec()).await.is_problem(415, unsupported);
    for (file, code, detail) in [
        (
            &b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..],
            "image_drawing",
            "This is a drawing (SVG). Export it as PNG and upload that.",
        ),
        (
            b"GIF89a\x01\0\x01\0\0\0\0;",
            "image_other_format",
            "This is a GIF file. Save it as JPEG or PNG and upload that.",
        ),
        (
            b"\0\0\0\x18ftypcrx \0\0\0\x01crx isom",
            "image_raw",
            "This is a RAW photo (Canon CR3). Export it as JPEG or PNG and upload that.",
        ),
    ] {
        let refused = upload(file.to_vec()).await;
        refused.is_problem(415, detail);
        assert_eq!(refused.json()["code"], code);
    }
    let moving = upload(animated_webp()).await;
    assert_eq!((moving.status.as_u16(), &moving.json()["code"]), (415, &"image_animation".into()));
    upload(Vec::new()).await.is_problem(400, "The file is empty.");

    let whole = png(300, 200);
    let truncated = upload(whole[..whole.len() / 2].to_vec()).await;
    assert_eq!(truncated.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        truncated.json()["detail"]
            .as_str()
            .unwrap()
            .starts_with("This image is damaged or incomplete")
    );
    assert_eq!(
        upload(b"\x89PNG\r\n\x1a\n".to_vec()).await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );

    app.post("/api/images/upload")
        .by(&ada)
        .field("photo", &whole)
        .send()
        .await
        .is_problem(400, "The upload has no field named file.");
    let no_body = app.post("/api/images/upload").by(&ada).send().await;
    assert_eq!(no_body.status, StatusCode::BAD_REQUEST);
    assert_eq!(no_body.header("content-type"), "application/problem+json");
    assert_nothing_is_stored(&app).await;
    assert_eq!(app.balance("ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_decompression_bomb_is_rejected_by_its_header(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    app.balance("ada").await;
    let bomb = bomb(30_000);
    let started = std::time::Instant::now();
    let refused = app.post("/api/images/upload").by(&ada).file(&bomb).send().await;
    let took = started.elapsed();
    refused.is_problem(422, "Image dimensions too big (Max 6000x6000)");
    // Decoding would take seconds.
    assert!(took.as_millis() < 500, "{took:?}");
    assert_nothing_is_stored(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn files_over_25_megabytes_are_rejected(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let mut large = png(10, 10);
    large.resize(26 * 1024 * 1024, 0);
    for path in ["/api/images/upload", "/api/free/remove-bg-fr"] {
        app.post(path)
            .by(&ada)
            .file(&large)
            .send()
            .await
            .is_problem(413, "The file is too large (max 25 MB).");
    }
    assert_nothing_is_stored(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn images_of_other_users_look_like_missing_ones(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let hers = app.upload("ada").await;
    let bob = app.token("bob");
    let unknown = retouch_core::ImageId::new().to_string();
    for id in [hers.as_str(), unknown.as_str(), "not-an-id", "0", "%2e%2e"] {
        let path = format!("/api/images/{id}");
        app.get(&path).by(&bob).send().await.is_problem(404, "Image not found");
        app.delete(&path).by(&bob).send().await.is_problem(404, "Image not found");
        app.get(&format!("/api/rmbg-images/{id}"))
            .by(&bob)
            .send()
            .await
            .is_problem(404, "Image not found");
        app.delete(&format!("/api/rmbg-images/{id}"))
            .by(&bob)
            .send()
            .await
            .is_problem(404, "Result not found");
        let run = format!("/api/rmbg-images/remove-bg-ai?imageId={id}");
        app.post(&run).by(&bob).send().await.is_problem(404, "Image not found");
        app.get(&format!("/api/jobs/{id}")).by(&bob).send().await.is_problem(404, "Job not found");
    }
    assert_eq!(
        app.get(&format!("/api/images/{hers}")).by(&app.token("ada")).send().await.status,
        StatusCode::OK
    );
    assert_eq!(app.balance("bob").await, (20, 0));
}
