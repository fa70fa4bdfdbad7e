//! HEIC and AVIF are accepted like other pictures, and EXIF stays where the caller asks for it.

use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use image::{ImageDecoder, ImageFormat, ImageReader};
use retouch_core::ImageId;
use retouch_core::storage::image_key;
use retouch_credentials::{Authority, State, Verifier};
use retouch_standins::testing::object_keys;
use sqlx::PgPool;

use crate::app::{Answer, TestApp, png};

/// A place in the EXIF of `phone.heic`.
const NORTH: &[u8] = b"N\0\0\0";

/// Returns a picture that `heif/tests/pictures/make.py` made.
fn picture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heif/tests/pictures");
    std::fs::read(folder.join(name)).unwrap()
}

fn exif(file: &[u8]) -> Option<Vec<u8>> {
    let format = image::guess_format(file).unwrap();
    let reader = ImageReader::with_format(std::io::Cursor::new(file), format);
    reader.into_decoder().unwrap().exif_metadata().unwrap()
}

fn has_place(file: &[u8]) -> bool {
    exif(file).is_some_and(|block| block.windows(4).any(|bytes| bytes == NORTH))
}

async fn stored(app: &TestApp, uploaded: &Answer) -> Vec<u8> {
    assert_eq!(uploaded.status, StatusCode::CREATED, "{}", uploaded.text());
    let id: ImageId = uploaded.json()["id"].as_str().unwrap().parse().unwrap();
    app.bucket.storage.get(&image_key(id)).await.unwrap().to_vec()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn heic_and_avif_are_uploaded_like_other_pictures(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let features = app.get("/api/config").send().await.json()["features"].clone();
    assert_eq!((&features["heic"], &features["avif"]), (&true.into(), &true.into()), "{features}");
    for (name, size, format) in [
        ("phone.heic", (90, 100), ImageFormat::Jpeg),
        ("ten-bit.avif", (65, 43), ImageFormat::Jpeg),
        ("alpha.heic", (65, 43), ImageFormat::Png),
    ] {
        let uploaded = app.post("/api/images/upload").by(&ada).file(&picture(name)).send().await;
        let image = uploaded.json();
        assert_eq!(
            (image["x"].as_u64(), image["y"].as_u64()),
            (Some(size.0), Some(size.1)),
            "{name}"
        );
        let file = stored(&app, &uploaded).await;
        assert_eq!(image::guess_format(&file).unwrap(), format, "{name}");
        assert_eq!(exif(&file), None, "{name}");
        let thumbnail = app.get(image["thumbnailUrl"].as_str().unwrap()).send().await;
        assert!(image::load_from_memory(&thumbnail.body).is_ok(), "{name}");
    }
    // A damaged one is refused for what it is, and nothing is left of it.
    let mut damaged = picture("phone.heic");
    damaged.truncate(damaged.len() - 100);
    let refused = app.post("/api/images/upload").by(&ada).file(&damaged).send().await;
    refused.is_problem(422, "This image is damaged or incomplete.");
    let mut huge = picture("phone.heic");
    let size = huge.windows(4).position(|kind| kind == b"ispe").unwrap() + 8;
    huge[size..size + 4].copy_from_slice(&60_000_u32.to_be_bytes());
    let refused = app.post("/api/images/upload").by(&ada).file(&huge).send().await;
    refused.is_problem(422, "Image dimensions too big (Max 6000x6000)");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_browser_that_cannot_show_a_file_gets_a_preview(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let preview = app.post("/api/preview").file(&picture("phone.heic")).send().await;
    assert_eq!(preview.status, StatusCode::OK, "{}", preview.text());
    assert_eq!((preview.header("x-width"), preview.header("x-height")), ("90", "100"));
    assert_eq!(preview.header("cache-control"), "no-store");
    assert_eq!(preview.header("content-type"), "image/jpeg", "it is small enough for the screen");
    let shown = image::load_from_memory(&preview.body).unwrap();
    assert_eq!((shown.width(), shown.height()), (90, 100));
    let large = app.post("/api/preview").by(&app.token("ada")).file(&png(2000, 500)).send().await;
    assert_eq!((large.header("content-type"), large.header("x-width")), ("image/webp", "2000"));
    assert_eq!(object_keys(&app.bucket.storage).await, Vec::<String>::new());
    let text = app.post("/api/preview").file(b"no picture").send().await;
    assert_eq!(text.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_the_library_heic_is_refused_with_what_to_do(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--heif-library="]).await;
    let features = app.get("/api/config").send().await.json()["features"].clone();
    assert_eq!((&features["heic"], &features["avif"]), (&false.into(), &false.into()));
    let (ada, file) = (app.token("ada"), picture("phone.heic"));
    let refused = app.post("/api/images/upload").by(&ada).file(&file).send().await;
    let detail = "HEIC files cannot be read here. Save the picture as JPEG or PNG and upload that.";
    refused.is_problem(415, detail);
    assert_eq!(refused.json()["code"], "image_format_unavailable");
    // Reading marks needs no pixels.
    let verified = app.post("/api/verify").file(&file).send().await;
    assert_eq!((verified.status, &verified.json()["state"]), (StatusCode::OK, &"absent".into()));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn remove_bg_clients_send_heic_and_may_keep_what_the_camera_wrote(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (key, file) = (app.key("ada").await, picture("phone.heic"));
    let mut worker = Some(app.work_once());
    for (metadata, keeps) in [("strip", false), ("keep", true)] {
        let fields =
            [("size", &b"full"[..]), ("metadata", metadata.as_bytes()), ("image_file", &file)];
        let answer = app.post("/v1.0/removebg").with_key(&key).form(&fields).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(has_place(&answer.body), keeps, "{metadata}");
        // The second is a repeat of the first, in another shape.
        if let Some(worker) = worker.take() {
            worker.await.unwrap();
        }
    }
    assert_eq!(app.balance("ada").await, (15, 0));
    let zip = [("format", &b"zip"[..]), ("metadata", b"keep"), ("image_file", &file)];
    let refused = app.post("/v1.0/removebg").with_key(&key).form(&zip).send().await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn what_the_camera_wrote_stays_where_somebody_asks_for_it(pool: PgPool) {
    let now = "2026-03-01T10:20:00Z".parse().unwrap();
    let leaf = Authority::new("Example Ltd", now).unwrap().issue("Example Ltd", now).unwrap();
    let settings = [
        format!("--credentials-chain={}", leaf.chain),
        format!("--credentials-key={}", leaf.key),
        "--credentials=all".to_owned(),
    ];
    let app = TestApp::start_with(pool, &settings.each_ref().map(String::as_str)).await;
    let ada = app.token("ada");
    for (query, keeps) in [("", false), ("?metadata=strip", false), ("?metadata=keep", true)] {
        let path = format!("/api/images/upload{query}");
        let uploaded = app.post(&path).by(&ada).file(&picture("phone.heic")).send().await;
        let file = stored(&app, &uploaded).await;
        assert_eq!(has_place(&file), keeps, "{query}");
        // The rotation is applied, so no program may apply it again.
        let upright = image::load_from_memory(&file).unwrap();
        assert_eq!((upright.width(), upright.height()), (90, 100), "{query}");

        let image = uploaded.json()["id"].as_str().unwrap().to_owned();
        let run = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
        let job = app.post(&run).by(&ada).asynchronously().send().await.json();
        app.claim().await.unwrap();
        let job = job["id"].as_str().unwrap();
        app.finish(job.parse().unwrap(), &png(64, 48)).await;
        let ended = app.get(&format!("/api/jobs/{job}")).by(&ada).send().await.json();
        let url = ended["results"][0]["url"].as_str().unwrap();
        let result = url.split(['/', '?']).nth(4).unwrap().to_owned();
        for format in ["png", "jpg", "webp"] {
            for (wanted, expected) in [("strip", false), ("keep", keeps)] {
                let path = format!("/api/results/{result}/file?format={format}&metadata={wanted}");
                let file = app.get(&path).by(&ada).send().await;
                assert_eq!(file.status, StatusCode::OK, "{}", file.text());
                assert_eq!(has_place(&file.body), expected, "{query} {format} {wanted}");
                if format != "png" || expected {
                    // Signed after the metadata went in.
                    let read = Verifier::new(None, None).unwrap().read(&file.body);
                    assert_eq!(read.state, State::Valid, "{query} {format} {wanted}: {read:?}");
                }
            }
        }
    }
    let wrong = app.post("/api/images/upload?metadata=some").by(&ada).file(&png(8, 8)).send().await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}
