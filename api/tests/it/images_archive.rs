//! Archives of images and their results.

use std::io::{Cursor, Read};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use futures::StreamExt;
use retouch_standins::testing::eventually;
use serde_json::{Value, json};
use sqlx::PgPool;
use zip::ZipArchive;

use crate::app::{Answer, TestApp, png};

async fn upload(app: &TestApp, name: &str, picture: &[u8]) -> String {
    let request = app.post("/api/images/upload").by(&app.token("ada"));
    let request = match name {
        "" => request.nameless_file(picture),
        name => request.file_named(name, picture),
    };
    request.send().await.json()["id"].as_str().unwrap().to_owned()
}

async fn run(app: &TestApp, image: &str, picture: &[u8]) {
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    app.post(&path).by(&app.token("ada")).asynchronously().send().await;
    let job = app.claim().await.unwrap().id;
    app.finish(job, picture).await;
}

async fn download(app: &TestApp, ids: &[&str], include: &str) -> Answer {
    let body = json!({"imageIds": ids, "include": include});
    app.post("/api/images/archive").by(&app.token("ada")).json_body(&body).send().await
}

/// Returns the names and contents of an archive's files.
fn files(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let mut archive = ZipArchive::new(Cursor::new(&answer.body)).unwrap();
    (0..archive.len())
        .map(|n| {
            let mut file = archive.by_index(n).unwrap();
            let mut bytes = Vec::new();
            // Also compares the checksum.
            file.read_to_end(&mut bytes).unwrap();
            (file.name().unwrap().into_owned(), bytes)
        })
        .collect()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_archive_has_every_file_under_a_unique_name(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let pictures = [png(64, 48), png(65, 48), png(66, 48), png(2000, 1500)];
    let one = upload(&app, "cat.png", &pictures[0]).await;
    let two = upload(&app, "cat.png", &pictures[1]).await;
    let nameless = upload(&app, "", &pictures[2]).await;
    let cutout = png(70, 48);
    run(&app, &one, &cutout).await;
    run(&app, &one, &pictures[3]).await;
    let path = format!("/api/images/{nameless}");
    let shown = app.get(&path).by(&app.token("ada")).send().await.json();
    let date = format!("image-{}.png", &shown["createdAt"].as_str().unwrap()[..10]);

    let answer = download(&app, &[&one, &two, &nameless, &one], "all").await;
    assert_eq!(answer.header("content-type"), "application/zip");
    let disposition = "attachment; filename=\"retouch-images.zip\"";
    assert_eq!(answer.header("content-disposition"), disposition);
    let expected = [
        ("cat (cut out).png", &cutout),
        ("cat (cut out) (2).png", &pictures[3]),
        ("cat.png", &pictures[0]),
        ("cat (2).png", &pictures[1]),
        (date.as_str(), &pictures[2]),
    ];
    let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes.clone()));
    assert_eq!(files(&answer), expected);
    let results = download(&app, &[&one, &two], "results").await;
    assert_eq!(files(&results), expected[..2]);
    let originals = download(&app, &[&two, &one], "originals").await;
    assert_eq!(
        files(&originals),
        [("cat.png".into(), pictures[1].clone()), ("cat (2).png".into(), pictures[0].clone())]
    );
    assert_eq!(files(&download(&app, &[&two], "results").await), [], "it has none");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_missing_object_is_left_out_and_listed(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let picture = png(64, 48);
    let here = upload(&app, "here.png", &picture).await;
    let lost = upload(&app, "lost.png", &picture).await;
    let key = format!("images/{lost}/original");
    app.bucket.storage.delete(&key).await.unwrap();
    let answer = download(&app, &[&lost, &here], "all").await;
    assert_eq!(
        files(&answer),
        [("here.png".into(), picture), ("missing.txt".into(), b"lost.png\n".to_vec())]
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn nobody_downloads_the_images_of_others(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (mine, theirs) = (app.upload("ada").await, app.upload("bob").await);
    download(&app, &[&theirs], "all").await.is_problem(404, "Image not found");
    assert_eq!(files(&download(&app, &[&theirs, &mine], "all").await).len(), 1);
    let ask = async |body: Value| {
        app.post("/api/images/archive").by(&app.token("ada")).json_body(&body).send().await.status
    };
    for wrong in [
        json!({"imageIds": [], "include": "all"}),
        json!({"imageIds": vec![&mine; 201], "include": "all"}),
        json!({"imageIds": [&mine], "include": "everything"}),
        json!({"imageIds": [&mine]}),
    ] {
        assert_eq!(ask(wrong).await, StatusCode::BAD_REQUEST);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_archive_is_sent_in_small_pieces_without_a_database_connection(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let one = app.upload("ada").await;
    let large = vec![7; 9 << 20];
    let key = format!("images/{one}/original");
    app.bucket.storage.put(&key, "image/png", Bytes::from(large)).await.unwrap();
    let body = json!({"imageIds": [one], "include": "originals"});
    let request = app.post("/api/images/archive").by(&app.token("ada")).json_body(&body);
    let mut chunks = request.open().await.into_body().into_data_stream();
    let first = chunks.next().await.unwrap().unwrap();
    // The client pauses here. Other uses of the database end without its help.
    eventually(Duration::from_secs(5), "no connection is in use", async || {
        (app.pool.size() as usize == app.pool.num_idle()).then_some(())
    })
    .await;
    let (mut total, mut longest) = (first.len(), first.len());
    while let Some(chunk) = chunks.next().await {
        let length = chunk.unwrap().len();
        (total, longest) = (total + length, longest.max(length));
    }
    assert!(total > 9 << 20 && longest <= 128 << 10, "{total} bytes, up to {longest} at once");
}
