//! Using a result: names, images made from results, and previews.

use axum::http::StatusCode;
use retouch_core::{ImageId, janitor};
use retouch_standins::testing::object_keys;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{TestApp, png};

async fn upload(app: &TestApp, path: &str) -> Value {
    let request = app.post("/api/images/upload").by(&app.token("ada"));
    let answer = request.file_named(path, &png(64, 48)).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()
}

/// Runs a tool on the image and returns its result, whose picture is `picture`.
async fn run(app: &TestApp, path: &str, image: &Value, picture: &[u8]) -> Value {
    let ada = app.token("ada");
    let path = format!("/api/{path}?imageId={}", image["id"].as_str().unwrap());
    let accepted = app.post(&path).by(&ada).asynchronously().send().await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text());
    let job = app.claim().await.unwrap().id;
    app.finish(job, picture).await;
    app.get(&format!("/api/jobs/{job}")).by(&ada).send().await.json()["results"][0].clone()
}

async fn go_on_from(app: &TestApp, name: &str, result: &Value) -> crate::app::Answer {
    let path = format!("/api/images/from-result/{}", result["imageId"].as_str().unwrap());
    app.post(&path).by(&app.token(name)).send().await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_image_has_the_name_of_its_file_and_no_folder(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    assert_eq!(upload(&app, "holidays/My cat.jpg").await["name"], "My cat.jpg");
    assert_eq!(upload(&app, "猫.png").await["name"], "猫.png");
    let request = app.post("/api/images/upload").by(&ada).nameless_file(&png(8, 8));
    let nameless = request.send().await.json();
    assert_eq!((&nameless["name"], &nameless["madeFrom"]), (&Value::Null, &Value::Null));
    let exported = app.get("/api/user/export").by(&ada).send().await.json();
    assert_eq!(exported["images"][0]["name"], "My cat.jpg");
    assert_eq!(app.delete("/api/user").by(&ada).send().await.status, StatusCode::NO_CONTENT);
    let left: i64 =
        sqlx::query_scalar("select count(*) from images").fetch_one(&app.pool).await.unwrap();
    assert_eq!(left, 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_result_becomes_an_image_once_and_shares_its_object(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let cat = upload(&app, "cat.jpg").await;
    let picture = png(65, 49);
    let result = run(&app, "rmbg-images/remove-bg-ai", &cat, &picture).await;
    let objects = object_keys(&app.bucket.storage).await;

    let made = go_on_from(&app, "ada", &result).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let image = made.json();
    assert_eq!(image["name"], "cat (cut out).png");
    assert_eq!(
        image["madeFrom"],
        json!({"resultId": result["imageId"], "imageId": cat["id"], "tool": "remove-background"})
    );
    assert_eq!(image["freeRuns"], json!({"removeBackground": false, "upscale": false}));
    assert_eq!(app.get(image["url"].as_str().unwrap()).send().await.body, picture);
    assert_eq!(app.get(image["thumbnailUrl"].as_str().unwrap()).send().await.body, picture);
    let again = go_on_from(&app, "ada", &result).await;
    assert_eq!((again.status, again.json()), (StatusCode::OK, image.clone()));
    assert_eq!(object_keys(&app.bucket.storage).await, objects, "nothing is copied");
    let stored = app.get("/api/user/storage").by(&ada).send().await.json();
    assert_eq!(stored["pictures"], 3);

    // The tools work on it, and the next result is named after it.
    let larger = run(&app, "upscale/upscale-ai-2", &image, &picture).await;
    let next = go_on_from(&app, "ada", &larger).await.json();
    assert_eq!(next["name"], "cat (cut out) (2X).png");
    assert_eq!(next["madeFrom"]["tool"], "upscale");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_one_of_the_two_leaves_the_other_its_picture(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let picture = png(65, 49);
    let cat = upload(&app, "cat.jpg").await;
    let first = run(&app, "rmbg-images/remove-bg-ai", &cat, &picture).await;
    let second = run(&app, "rmbg-images/remove-bg-ai", &cat, &picture).await;
    let of_first = go_on_from(&app, "ada", &first).await.json();
    let of_second = go_on_from(&app, "ada", &second).await.json();
    let delete = async |path: String| {
        let gone = app.delete(&path).by(&ada).send().await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{path}");
        janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    };
    let show = async |view: &Value| app.get(view["url"].as_str().unwrap()).send().await;

    delete(format!("/api/rmbg-images/{}", first["imageId"].as_str().unwrap())).await;
    assert_eq!(show(&of_first).await.body, picture);
    let path = format!("/api/images/{}", of_first["id"].as_str().unwrap());
    let shown = app.get(&path).by(&ada).send().await.json();
    assert_eq!(shown["madeFrom"]["resultId"], Value::Null);
    assert_eq!(shown["madeFrom"]["imageId"], cat["id"]);

    delete(format!("/api/images/{}", of_second["id"].as_str().unwrap())).await;
    assert_eq!(show(&second).await.body, picture);

    delete(format!("/api/images/{}", cat["id"].as_str().unwrap())).await;
    show(&second).await.is_problem(404, "File not found");
    assert_eq!(show(&of_first).await.body, picture);
    delete(path).await;
    assert_eq!(object_keys(&app.bucket.storage).await, Vec::<String>::new());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_the_owner_can_go_on_and_only_within_the_quota(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--user-pictures=2", "--user-storage-mib=0"]).await;
    let image = upload(&app, "a.png").await;
    let result = run(&app, "rmbg-images/remove-bg-ai", &image, &png(9, 9)).await;
    go_on_from(&app, "bob", &result).await.is_problem(404, "Result not found");
    for unknown in [ImageId::new().to_string().as_str(), "x"] {
        let path = format!("/api/images/from-result/{unknown}");
        app.post(&path).by(&app.token("ada")).send().await.is_problem(404, "Result not found");
        assert_eq!(app.post(&path).send().await.status, StatusCode::UNAUTHORIZED);
    }
    let full = "Your storage is full (max 2 pictures). Delete images or results to make room.";
    go_on_from(&app, "ada", &result).await.is_problem(422, full);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_can_go_on_from_a_result(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let key = app.key("ada").await;
    let image = upload(&app, "a.png").await;
    let result = run(&app, "rmbg-images/remove-bg-ai", &image, &png(9, 9)).await;
    let path = format!("/api/images/from-result/{}", result["imageId"].as_str().unwrap());
    let made = app.post(&path).with_key(&key).send().await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_a_large_picture_has_a_preview(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let upload = async |width, height| {
        app.post("/api/images/upload").by(&ada).file(&png(width, height)).send().await.json()
    };
    assert_eq!(upload(1600, 20).await["previewUrl"], Value::Null);
    let large = upload(2000, 1000).await;
    let preview = app.get(large["previewUrl"].as_str().unwrap()).send().await;
    assert_eq!(preview.header("content-type"), "image/webp");
    let small = image::load_from_memory(&preview.body).unwrap();
    assert_eq!((small.width(), small.height()), (1600, 800));
    let path = format!("/api/images/{}", large["id"].as_str().unwrap());
    app.delete(&path).by(&ada).send().await;
    app.get(large["previewUrl"].as_str().unwrap()).send().await.is_problem(404, "File not found");
    janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    assert_eq!(object_keys(&app.bucket.storage).await.len(), 2, "of the small one");
}
