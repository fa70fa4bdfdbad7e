//! Magic Fix: prices, validation before credits are held, and results.

use std::sync::Arc;

use axum::http::StatusCode;
use retouch_catalog::{FixMode, Tier, ToolName};
use retouch_core::workers::{self, ServedModel, Worker};
use retouch_core::{WorkerId, jobs};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::TestApp;

/// Returns a mask that marks a quarter of the image.
pub fn mask(width: u32, height: u32) -> Vec<u8> {
    drawing(width, height, 255)
}

fn drawing(width: u32, height: u32, paint: u8) -> Vec<u8> {
    let drawing = image::GrayImage::from_fn(width, height, |x, y| {
        image::Luma([if x > width / 2 && y > height / 2 { paint } else { 0 }])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    drawing.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Registers a worker that serves these modes.
pub async fn install(app: &TestApp, modes: &[FixMode], vocabulary: Option<&[&str]>) {
    let serving = |mode: &FixMode| ServedModel {
        tool: ToolName::MagicFix,
        tier: Tier::Paid,
        model: "tiny".into(),
        sha256: "0".repeat(64),
        mode: Some(*mode),
        factor: None,
        largest_pixels: None,
        vocabulary: vocabulary
            .filter(|_| mode.needs_words())
            .map(|words| words.iter().map(|word| (*word).to_owned()).collect()),
        is_demo: mode.needs_words(),
        is_loaded: true,
    };
    let worker = Worker {
        id: WorkerId::new(),
        name: "test".into(),
        device: "cpu".into(),
        hardware: String::new(),
        models: modes.iter().map(serving).collect(),
        problems: Vec::new(),
        slots: 1,
        version: "0".into(),
        seen_at: app.clock.now(),
    };
    workers::report(&app.pool, &worker).await.unwrap();
}

fn address(image: &str) -> String {
    format!("/api/magic-images/fix/{image}")
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_fix_costs_eight_credits_and_its_result_has_the_prompt(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    install(&app, &[FixMode::Remove], None).await;
    let worker = app.work_once();
    let drawing = mask(64, 48);
    let answer = app.post(&address(&image)).by(&ada).fix(&drawing, "Remove the cup").send().await;
    worker.await.unwrap();
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    let made = answer.json()[0].clone();
    assert_eq!(
        (&made["prompt"], &made["mode"], &made["demo"], &made["credits"], &made["factor"]),
        (&json!("Remove the cup"), &json!("remove"), &json!(false), &json!(8), &json!(null))
    );
    assert_eq!(app.balance("ada").await, (12, 0));
    let list = app.get(&format!("/api/magic-images/{image}")).by(&ada).send().await.json();
    assert_eq!(list.as_array().unwrap().len(), 1);
    let id = made["imageId"].as_str().unwrap();
    let wrong = app.delete(&format!("/api/upscale/{id}")).by(&ada).send().await;
    wrong.is_problem(404, "Result not found");
    let deleted = app.delete(&format!("/api/magic-images/{id}")).by(&ada).send().await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let left: i64 =
        sqlx::query_scalar("select count(*) from masks").fetch_one(&app.pool).await.unwrap();
    assert_eq!(left, 0, "a mask is deleted when its job ends");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn invalid_requests_are_explained_and_hold_no_credits(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    install(&app, &[FixMode::Remove, FixMode::Edit], Some(&["a", "red", "circle"])).await;
    let (drawing, blank) = (mask(64, 48), drawing(64, 48, 100));
    let long = "ж".repeat(501);
    for (file, prompt, code, detail) in [
        (&drawing[..], "", "prompt_required", "Prompt is required"),
        (&drawing, "  ", "prompt_required", "Prompt is required"),
        (&drawing, &long, "prompt_too_long", "maximum of 500 letters"),
        (b"no png", "remove it", "mask_invalid", "must be a PNG"),
        (&mask(48, 64), "remove it", "mask_invalid", "48 × 64"),
        (&blank, "remove it", "mask_empty", "draw"),
        (&drawing, "restore", "prompt_not_possible", "cannot restore"),
        (&drawing, "a castle in the sky", "prompt_not_possible", "“castle”"),
        (&drawing, "🐱", "prompt_not_possible", "🐱"),
        (&drawing, "قطة", "prompt_not_possible", "قطة"),
    ] {
        let answer = app.post(&address(&image)).by(&ada).fix(file, prompt).send().await;
        let problem = answer.json();
        assert_eq!((answer.status.as_u16(), &problem["code"]), (422, &json!(code)), "{prompt}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
    }
    assert_eq!(app.balance("ada").await, (20, 0));
    let submitted: i64 =
        sqlx::query_scalar("select count(*) from jobs").fetch_one(&app.pool).await.unwrap();
    assert_eq!(submitted, 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_the_owner_can_fix_an_image(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (eve, image) = (app.token("eve"), app.upload("ada").await);
    install(&app, &[FixMode::Remove], None).await;
    let drawing = mask(64, 48);
    let theirs = app.post(&address(&image)).by(&eve).fix(&drawing, "remove it").send().await;
    theirs.is_problem(404, "Image not found");
    let unknown = app.post(&address("no-id")).by(&eve).fix(&drawing, "remove it").send().await;
    unknown.is_problem(404, "Image not found");
    let nobody = app.post(&address(&image)).fix(&drawing, "remove it").send().await;
    nobody.is_problem(401, "Authentication token is missing.");
    let list = app.get(&format!("/api/magic-images/{image}")).by(&eve).send().await;
    list.is_problem(404, "Image not found");
    let ada = app.token("ada");
    let no_file = app.post(&address(&image)).by(&ada).send().await;
    assert_eq!(no_file.status, StatusCode::BAD_REQUEST);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn repeats_join_the_job_unless_mask_or_prompt_differ(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    install(&app, &[FixMode::Remove], None).await;
    let (one, other) = (mask(64, 48), mask(128, 96));
    let mut ids = Vec::new();
    for (drawing, prompt) in [(&one, "remove it"), (&one, "remove it"), (&other, "remove it")] {
        let job =
            app.post(&address(&image)).by(&ada).fix(drawing, prompt).asynchronously().send().await;
        assert_eq!(job.status, StatusCode::ACCEPTED, "{}", job.text());
        ids.push(job.json()["id"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
    assert_eq!(app.balance("ada").await, (20, 16));
    let poor =
        app.post(&address(&image)).by(&ada).fix(&one, "erase it").asynchronously().send().await;
    poor.is_problem(402, "Not enough credits");

    let job = ids[0].as_str().unwrap().parse().unwrap();
    let stored = jobs::mask(&app.pool, job).await.unwrap().expect("a stored mask");
    assert_eq!(image::load_from_memory(&stored).unwrap().to_luma8().dimensions(), (64, 48));
    assert!(jobs::cancel(&app.pool, job).await.unwrap());
    assert_eq!(jobs::mask(&app.pool, job).await.unwrap(), None);
    assert_eq!(app.balance("ada").await, (20, 8));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_config_lists_modes_and_vocabulary(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let config = app.get("/api/config").send().await.json();
    let offer = |config: &Value| {
        let offer = &config["magicFix"];
        [&offer["modes"], &offer["vocabulary"], &offer["demo"]].map(Value::clone)
    };
    assert_eq!(offer(&config), [json!([]), json!(null), json!(false)]);
    let reach = config["magicFix"]["reach"].as_array().unwrap();
    assert_eq!(reach.len(), 5);
    assert_eq!(
        reach[2],
        json!({"mode": "remove", "divisor": 80, "least": 8, "most": 24, "exactByDefault": false})
    );
    assert_eq!((&reach[0]["mode"], &reach[0]["exactByDefault"]), (&json!("edit"), &json!(true)));
    install(&app, &[FixMode::Remove, FixMode::Edit], Some(&["red", "blue"])).await;
    // A process remembers for two seconds what it has read.
    let restarted = TestApp::start(app.pool.clone()).await;
    let config = restarted.get("/api/config").send().await.json();
    assert_eq!(offer(&config), [json!(["edit", "remove"]), json!(["red", "blue"]), json!(true)]);
    let offer = config["tools"].as_array().unwrap().last().unwrap();
    assert_eq!((&offer["tool"], &offer["available"]), (&json!("magic-fix"), &json!(true)));
    assert_eq!(offer["costs"], json!([{"factor": null, "credits": 8}]));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_that_fails_because_of_its_input_is_a_client_error(pool: PgPool) {
    for (code, status) in [("mask_invalid", 422), ("result_unsafe", 422), ("model_failed", 500)] {
        let app = Arc::new(TestApp::start(pool.clone()).await);
        let (ada, image) = (app.token("ada"), app.upload("ada").await);
        install(&app, &[FixMode::Remove], None).await;
        let worker = {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                let patience = std::time::Duration::from_secs(10);
                let job = retouch_standins::testing::eventually(patience, "a job", || app.claim());
                let failure = jobs::Failure { code: code.into(), detail: "Not this time.".into() };
                app.fail(job.await.id, &failure).await;
            })
        };
        let answer =
            app.post(&address(&image)).by(&ada).fix(&mask(64, 48), "remove it").send().await;
        worker.await.unwrap();
        answer.is_problem(status, "Not this time.");
        assert_eq!(answer.json()["code"], json!(code));
        assert_eq!(app.balance("ada").await, (20, 0));
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_mask_is_exact_for_edits_or_on_request(pool: PgPool) {
    let app = TestApp::start(pool).await;
    install(&app, &[FixMode::Remove, FixMode::Edit, FixMode::Add], None).await;
    let drawing = mask(64, 48);
    let send = async |name: &str, prompt: &str, exact: Option<&str>| {
        let request = app.post(&address(&app.upload(name).await)).by(&app.token(name));
        let fields: Vec<_> = exact.map(|exact| ("exactMask", exact)).into_iter().collect();
        request.fix_with(&drawing, prompt, &fields).asynchronously().send().await
    };
    for (name, prompt, exact, expected) in [
        ("ada", "remove it", None, false),
        ("bob", "a red cup", None, true),
        ("carol", "add a hat", None, true),
        ("dave", "remove it", Some("true"), true),
        ("eve", "a red cup", Some("false"), false),
    ] {
        let answer = send(name, prompt, exact).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
        let stored: bool = sqlx::query_scalar("select exact_mask from jobs where id = $1::uuid")
            .bind(answer.json()["id"].as_str().unwrap())
            .fetch_one(&app.pool)
            .await
            .unwrap();
        assert_eq!(stored, expected, "{prompt} {exact:?}");
    }
    let wrong = send("ada", "remove it", Some("maybe")).await;
    wrong.is_problem(400, "The field exactMask must be true or false.");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_same_mask_exact_or_not_is_another_request(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    install(&app, &[FixMode::Remove], None).await;
    let drawing = mask(64, 48);
    let mut ids = Vec::new();
    for exact in ["true", "false", "true"] {
        let request = app.post(&address(&image)).by(&ada);
        let request = request.fix_with(&drawing, "remove it", &[("exactMask", exact)]);
        ids.push(request.asynchronously().send().await.json()["id"].clone());
    }
    assert!(ids[0] != ids[1] && ids[0] == ids[2], "{ids:?}");
    assert_eq!(app.balance("ada").await, (20, 16));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_meaning_of_a_prompt_is_known_before_a_run(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    install(&app, &[FixMode::Remove, FixMode::Edit], Some(&["a", "red", "circle"])).await;
    let ask = async |prompt: &str| {
        let request = app.post("/api/magic-images/meaning").by(&ada);
        request.json_body(&json!({ "prompt": prompt })).send().await
    };
    let clear = ask("remove the cup").await;
    assert_eq!(clear.status, StatusCode::OK);
    assert_eq!(clear.json(), json!({"mode": "remove", "problem": null}));
    assert_eq!(ask("a red circle").await.json(), json!({"mode": "edit", "problem": null}));
    let unknown = ask("a red castle").await.json();
    assert_eq!(unknown["mode"], "edit");
    let problem = unknown["problem"].as_str().unwrap();
    assert!(problem.contains("“castle”") && problem.ends_with("Try “remove it”."), "{problem}");
    let missing = ask("restore").await.json();
    assert_eq!(missing["problem"], "This server cannot restore yet. Try “remove it”.");
    assert_eq!(ask(" ").await.json()["code"], "prompt_required");
}
