//! Results as files: in each format, and finished.

use std::io::Cursor;

use axum::http::StatusCode;
use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{Answer, TestApp, png};

const REMOVE: &str = "/api/rmbg-images/remove-bg-ai?imageId=";
const UPSCALE: &str = "/api/upscale/upscale-ai-2?imageId=";

fn encoded(picture: impl Into<image::DynamicImage>) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.into().write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A cutout of the size of uploads: a red square of 16 × 16 at (20, 10).
fn cutout() -> Vec<u8> {
    encoded(RgbaImage::from_fn(64, 48, |x, y| {
        let is_inside = (20..36).contains(&x) && (10..26).contains(&y);
        if is_inside { Rgba([200, 10, 20, 255]) } else { Rgba([0; 4]) }
    }))
}

/// Runs a tool on a new image of `name`, which makes `file`. Returns the id of the result.
async fn made(app: &TestApp, name: &str, run: &str, file: &[u8]) -> String {
    let image = app.upload(name).await;
    let token = app.token(name);
    let job = app.post(&format!("{run}{image}")).by(&token).asynchronously().send().await;
    assert_eq!(job.status, StatusCode::ACCEPTED, "{}", job.text());
    let id = job.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(app.claim().await.unwrap().id.to_string(), id);
    app.finish(id.parse().unwrap(), file).await;
    let job = app.get(&format!("/api/jobs/{id}")).by(&token).send().await.json();
    job["results"][0]["imageId"].as_str().unwrap().to_owned()
}

async fn render(
    app: &TestApp,
    name: &str,
    result: &str,
    options: &Value,
    files: &[(&str, &[u8])],
) -> Answer {
    let options = options.to_string();
    let fields = [&[("options", options.as_bytes())], files].concat();
    let address = format!("/api/results/{result}/render");
    app.post(&address).by(&app.token(name)).form(&fields).send().await
}

fn picture(answer: &Answer) -> RgbaImage {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    image::load_from_memory(&answer.body).unwrap().into_rgba8()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_result_is_saved_in_every_format_under_a_telling_name(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, cut, large) = (app.token("ada"), cutout(), png(64, 48));
    let cutout = made(&app, "ada", REMOVE, &cut).await;
    let upscaled = made(&app, "ada", UPSCALE, &large).await;
    for (result, query, kind, name) in [
        (&cutout, "", "image/png", "cutout.png"),
        (&cutout, "?format=png&quality=3", "image/png", "cutout.png"),
        (&cutout, "?format=jpg", "image/jpeg", "cutout.jpg"),
        (&upscaled, "?format=webp&quality=70", "image/webp", "upscaled-2x.webp"),
        (&upscaled, "?format=jpg&quality=100", "image/jpeg", "upscaled-2x.jpg"),
    ] {
        let file = app.get(&format!("/api/results/{result}/file{query}")).by(&ada).send().await;
        assert_eq!(file.status, StatusCode::OK, "{}", file.text());
        assert_eq!((file.header("content-type"), file.header("cache-control")), (kind, "no-store"));
        let disposition = format!("attachment; filename=\"{name}\"");
        assert_eq!(file.header("content-disposition"), disposition);
        assert_eq!(file.header("content-length"), file.body.len().to_string());
        let is_jpeg = kind == "image/jpeg";
        let source = if *result == cutout { &cut } else { &large };
        if kind == "image/png" {
            assert_eq!(file.body, source, "the stored file, byte for byte");
        }
        let source = image::load_from_memory(source).unwrap().into_rgba8();
        for (made, source) in picture(&file).pixels().zip(source.pixels()) {
            assert_eq!(made.0[3], if is_jpeg { 255 } else { source.0[3] });
            assert!(!is_jpeg || source.0[3] > 0 || made.0.iter().all(|sample| *sample > 200));
        }
    }
    let lossless = format!("/api/results/{cutout}/file?format=webp&quality=100");
    let lossless = app.get(&lossless).by(&ada).send().await;
    assert_eq!(picture(&lossless), image::load_from_memory(&cut).unwrap().into_rgba8());

    let address = format!("/api/results/{cutout}/file");
    let with_key = app.get(&address).with_key(&app.key("ada").await).send().await;
    assert_eq!(with_key.body, cut);
    for (query, status) in
        [("format=gif", 400), ("quality=0", 422), ("quality=NaN", 422), ("quality=x", 400)]
    {
        let refused = app.get(&format!("{address}?{query}")).by(&ada).send().await;
        assert_eq!(refused.status.as_u16(), status, "{query}: {}", refused.text());
        assert!(refused.text().contains(query.split('=').next().unwrap()), "{}", refused.text());
    }
    assert_eq!(app.balance("ada").await, (12, 0), "files are free of charge");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_the_owner_gets_the_file(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let result = made(&app, "ada", REMOVE, &cutout()).await;
    app.upload("bob").await;
    for (address, is_render) in [("file", false), ("render", true)] {
        for id in [&result, &"no-id".to_owned(), &uuid_of_nothing()] {
            let address = format!("/api/results/{id}/{address}");
            let request = if is_render {
                app.post(&address).form(&[("options", b"{}")])
            } else {
                app.get(&address)
            };
            let theirs = request.by(&app.token("bob")).send().await;
            theirs.is_problem(404, "Result not found");
        }
    }
}

fn uuid_of_nothing() -> String {
    retouch_core::Id::<()>::new().to_string()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitors_result_belongs_to_nobody(pool: PgPool) {
    let app = std::sync::Arc::new(TestApp::start(pool).await);
    let worker = app.work_once();
    app.post("/api/free/remove-bg-fr").file(&png(64, 48)).send().await;
    worker.await.unwrap();
    let id: uuid::Uuid =
        sqlx::query_scalar("select id from results").fetch_one(&app.pool).await.unwrap();
    let address = format!("/api/results/{id}/file");
    app.get(&address).by(&app.token("ada")).send().await.is_problem(404, "Result not found");
    app.get(&address).send().await.is_problem(401, "Authentication token is missing.");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_cutout_is_touched_up_cropped_and_put_on_a_background(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let result = made(&app, "ada", REMOVE, &cutout()).await;
    let plain = render(&app, "ada", &result, &json!({}), &[]).await;
    assert_eq!(plain.body, cutout(), "nothing changes: the stored file");

    // Erases the left half of the subject, and restores a pixel of the upload.
    let touch_up = encoded(GrayImage::from_fn(64, 48, |x, y| {
        Luma([if x < 28 {
            0
        } else if (x, y) == (50, 30) {
            255
        } else {
            128
        }])
    }));
    let touched = render(&app, "ada", &result, &json!({}), &[("touchUp", &touch_up)]).await;
    assert_eq!(touched.header("content-disposition"), "attachment; filename=\"cutout.png\"");
    let touched = picture(&touched);
    assert_eq!(touched.get_pixel(22, 12).0, [0; 4]);
    assert_eq!(touched.get_pixel(30, 12).0, [200, 10, 20, 255]);
    assert_eq!(touched.get_pixel(50, 30).0, [30, 60, 90, 255], "the upload");

    let options = json!({
        "format": "png", "background": {"color": "#0102fF"},
        "shadow": {"opacity": 1, "blur": 0, "x": 12.5, "y": 0}, "crop": {"margin": 25, "aspect": "1:1"},
    });
    let made = picture(&render(&app, "ada", &result, &options, &[]).await);
    // 16 pixels, and a quarter of them on each side; the shadow lies 2 pixels to the right.
    assert_eq!(made.dimensions(), (24, 24));
    let row: Vec<_> = [3, 4, 19, 20, 21, 22].map(|x| made.get_pixel(x, 12).0).into();
    let (behind, red, black) = ([1, 2, 255, 255], [200, 10, 20, 255], [0, 0, 0, 255]);
    assert_eq!(row, [behind, red, red, black, black, behind]);

    let backdrop = encoded(RgbImage::from_pixel(7, 9, Rgb([9, 8, 7])));
    let files = [("background", &backdrop[..])];
    let options = json!({"format": "webp", "quality": 100, "background": {"picture": true}});
    let on_picture = render(&app, "ada", &result, &options, &files).await;
    assert_eq!(on_picture.header("content-type"), "image/webp");
    assert_eq!(picture(&on_picture).get_pixel(0, 0).0, [9, 8, 7, 255]);
    let blurred = json!({"format": "jpg", "background": {"blur": 2}});
    let blurred = picture(&render(&app, "ada", &result, &blurred, &[]).await);
    let corner = blurred.get_pixel(63, 2).0;
    assert!(corner[2].abs_diff(90) < 12 && corner[0].abs_diff(30) < 12, "{corner:?}");
    let gradient =
        json!({"background": {"gradient": {"from": "#000000", "to": "#ffffff", "angle": 180}}});
    let gradient = picture(&render(&app, "ada", &result, &gradient, &[]).await);
    assert!(gradient.get_pixel(0, 0).0[0] < 5 && gradient.get_pixel(0, 47).0[0] > 250);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn bad_requests_are_refused_by_name(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let result = made(&app, "ada", REMOVE, &cutout()).await;
    let shadow = |field: &str, value: f64| {
        let mut shadow = json!({"opacity": 0.5, "blur": 1, "x": 0, "y": 0});
        shadow[field] = json!(value);
        json!({ "shadow": shadow })
    };
    let gradient = |angle: f64| json!({"background": {"gradient": {"from": "#000000", "to": "#fffff0", "angle": angle}}});
    for (options, name) in [
        (json!({"format": "gif"}), "format"),
        (json!({"quality": 0}), "quality"),
        (json!({"quality": 90.5}), "quality"),
        (json!({"size": 3}), "size"),
        (json!({"background": {"color": "red"}}), "background.color"),
        (json!({"background": {"color": "#12345"}}), "background.color"),
        (json!({"background": {"pattern": "dots"}}), "pattern"),
        (json!({"background": {"blur": 5.1}}), "background.blur"),
        (json!({"background": {"blur": "much"}}), "background.blur"),
        (json!({"background": {"picture": true}}), "background"),
        (json!({"background": {"picture": false}}), "background.picture"),
        (gradient(360.0), "background.gradient.angle"),
        (shadow("opacity", 1.1), "shadow.opacity"),
        (shadow("blur", -0.1), "shadow.blur"),
        (shadow("x", 20.5), "shadow.x"),
        (shadow("y", -21.0), "shadow.y"),
        (shadow("spread", 1.0), "spread"),
        (json!({"crop": {"margin": 51}}), "crop.margin"),
        (json!({"crop": {}}), "margin"),
        (json!({"crop": {"margin": 0, "aspect": "0:1"}}), "crop.aspect"),
        (json!({"crop": {"margin": 0, "aspect": "1:101"}}), "crop.aspect"),
        (json!({"crop": {"margin": 0, "aspect": "wide"}}), "crop.aspect"),
    ] {
        let refused = render(&app, "ada", &result, &options, &[]).await;
        assert_eq!(refused.status.as_u16(), 422, "{options}: {}", refused.text());
        assert!(refused.text().contains(name), "{options}: {}", refused.text());
    }
    let address = format!("/api/results/{result}/render");
    for text in ["", "{", "NaN", "{\"quality\": NaN}", "{\"quality\": 1e999}", "[]", "{} {}"] {
        let request = app.post(&address).by(&app.token("ada"));
        let refused = request.form(&[("options", text.as_bytes())]).send().await;
        assert_eq!(refused.status.as_u16(), 422, "{text}: {}", refused.text());
        assert!(refused.text().contains("The field options is invalid"), "{}", refused.text());
    }
    let missing = app.post(&address).by(&app.token("ada")).form(&[("touchUp", b"x")]).send().await;
    missing.is_problem(400, "The upload has no field named options.");

    let small = encoded(GrayImage::new(48, 64));
    let refused = render(&app, "ada", &result, &json!({}), &[("touchUp", &small)]).await;
    let detail =
        "The field touchUp cannot be used: it is 48 × 64 pixels but the result is 64 × 48.";
    refused.is_problem(422, detail);
    let picture = json!({"background": {"picture": true}});
    let wide = encoded(RgbImage::new(6001, 1));
    let refused = render(&app, "ada", &result, &picture, &[("background", &wide)]).await;
    let detail = "The field background cannot be used: the image is 6001 × 1 pixels; the limit is 6000 per side.";
    refused.is_problem(422, detail);
    let gif = render(&app, "ada", &result, &picture, &[("background", b"GIF89a")]).await;
    let detail = "The field background cannot be used: This is a GIF file. Save it as JPEG or PNG and upload that.";
    gif.is_problem(422, detail);
    let erased = encoded(GrayImage::new(64, 48));
    let crop = json!({"crop": {"margin": 10}});
    let refused = render(&app, "ada", &result, &crop, &[("touchUp", &erased)]).await;
    refused.is_problem(422, "Nothing is left of the subject, so there is nothing to crop to.");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn results_of_other_tools_are_only_converted(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let result = made(&app, "ada", UPSCALE, &png(64, 48)).await;
    let touch_up = encoded(GrayImage::new(64, 48));
    let color = json!({"background": {"color": "#000000"}});
    let shadow = json!({"shadow": {"opacity": 1, "blur": 0, "x": 0, "y": 0}});
    let crop = json!({"crop": {"margin": 1}});
    for (options, files, field) in [
        (json!({}), &[("touchUp", &touch_up[..])][..], "The field touchUp"),
        (color, &[], "options.background"),
        (shadow, &[], "options.shadow"),
        (crop, &[], "options.crop"),
    ] {
        let refused = render(&app, "ada", &result, &options, files).await;
        refused.is_problem(422, &format!("{field} is for results of Remove Background only."));
    }
    let webp = render(&app, "ada", &result, &json!({"format": "webp"}), &[]).await;
    assert_eq!(webp.header("content-disposition"), "attachment; filename=\"upscaled-2x.webp\"");
    assert_eq!(picture(&webp).dimensions(), (64, 48));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn whoever_does_not_read_rendered_files_waits_for_further_ones(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--decode-wait-secs=1", "--decode-memory-mib=12"]).await;
    let result = made(&app, "ada", REMOVE, &cutout()).await;
    let jpg = format!("/api/results/{result}/file?format=jpg");
    let ask = || app.get(&jpg).by(&app.token("ada"));
    // A quarter of the memory; a file counts as a MiB at least.
    let unread = [ask().open().await, ask().open().await, ask().open().await];
    assert!(unread.iter().all(|response| response.status() == StatusCode::OK));
    let busy = ask().send().await;
    assert_eq!(busy.status, StatusCode::SERVICE_UNAVAILABLE, "{}", busy.text());
    assert_eq!(busy.header("retry-after"), "5");
    drop(unread);
    picture(&ask().send().await);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn rendering_is_limited_in_memory_and_per_minute(pool: PgPool) {
    let settings = ["--decode-memory-mib=12", "--user-uploads-per-minute=3"];
    let app = TestApp::start_with(pool, &settings).await;
    let result = made(&app, "ada", REMOVE, &cutout()).await;
    let large = json!({"crop": {"margin": 50, "aspect": "1:100"}});
    let refused = render(&app, "ada", &result, &large, &[]).await;
    let detail = "This image needs more memory than the server allows for one image. Please send it with fewer pixels.";
    refused.is_problem(422, detail);
    let jpg = format!("/api/results/{result}/file?format=jpg");
    for _ in 0..2 {
        picture(&app.get(&jpg).by(&app.token("ada")).send().await);
    }
    let beyond = app.get(&jpg).by(&app.token("ada")).send().await;
    assert_eq!(beyond.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(beyond.text().contains("You can start 3 renders per minute."), "{}", beyond.text());
    let stored = app.get(&format!("/api/results/{result}/file")).by(&app.token("ada")).send().await;
    assert_eq!(stored.status, StatusCode::OK, "the stored file takes no rendering");
}
