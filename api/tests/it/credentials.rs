//! Content Credentials: of uploads, of files that leave, and of pictures that somebody verifies.

use std::io::Cursor;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use image::{ImageFormat, RgbImage};
use retouch_catalog::{FixMode, Tool};
use retouch_core::{Clock, images};
use retouch_credentials::{
    Authority, Leaf, Model, Parent, Report, Signer, SourceType, State, Statement, Verifier,
};
use retouch_standins::testing::{object_keys, sign_in};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{Answer, TestApp, png};

const REMOVE: &str = "/api/rmbg-images/remove-bg-ai?imageId=";
const GENERATED: &str =
    "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia";

/// A certificate of its own authority.
struct Key {
    leaf: Leaf,
    signer: Signer,
}

impl Key {
    fn new(organization: &str) -> Self {
        // The fixed time of the tests' application.
        let now: DateTime<Utc> = "2026-03-01T10:20:00Z".parse().unwrap();
        let authority = Authority::new(organization, now).unwrap();
        let leaf = authority.issue(organization, now).unwrap();
        let signer = Signer::new(&leaf.chain, &leaf.key, None, now).unwrap();
        Self { leaf, signer }
    }

    /// Returns the settings of an application that signs.
    fn settings(&self) -> [String; 2] {
        let Leaf { chain, key } = &self.leaf;
        [format!("--credentials-chain={chain}"), format!("--credentials-key={key}")]
    }

    fn read(&self, file: &[u8]) -> Report {
        Verifier::new(Some(self.signer.chain()), None).unwrap().read(file)
    }

    /// Signs a picture as a result of Magic Fix.
    fn fixed(&self, picture: &[u8]) -> Vec<u8> {
        let model = Model { name: "net".into(), sha256: "0".repeat(64), is_trained: true };
        let statement = Statement::of_run(Tool::MagicFix(FixMode::Edit), &model, None);
        let parent = png(64, 48);
        let parent = Parent { picture: &parent, provenance: None };
        let now = "2026-03-01T10:20:00Z".parse().unwrap();
        self.signer.sign(picture, &statement, &parent, now).unwrap()
    }
}

async fn start(pool: PgPool, key: &Key, more: &[&str]) -> TestApp {
    let settings = key.settings();
    let settings: Vec<_> =
        settings.iter().map(String::as_str).chain(more.iter().copied()).collect();
    TestApp::start_with(pool, &settings).await
}

fn jpeg() -> Vec<u8> {
    let pixels = RgbImage::from_fn(64, 48, |x, y| image::Rgb([x as u8 * 3, y as u8 * 5, 90]));
    let mut bytes = Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}

/// Runs a tool on a new image of Ada, which makes `file`. Returns the result as the job shows it.
async fn made(app: &TestApp, file: &[u8]) -> Value {
    let (image, token) = (app.upload("ada").await, app.token("ada"));
    let job = app.post(&format!("{REMOVE}{image}")).by(&token).asynchronously().send().await;
    let id = job.json()["id"].as_str().unwrap().to_owned();
    app.claim().await.unwrap();
    app.finish(id.parse().unwrap(), file).await;
    let job = app.get(&format!("/api/jobs/{id}")).by(&token).send().await.json();
    job["results"][0].clone()
}

async fn verified(app: &TestApp, file: &[u8]) -> Value {
    let answer = app.post("/api/verify").file(file).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.json()
}

async fn upload(app: &TestApp, file: &[u8]) -> retouch_core::ImageId {
    let answer = app.post("/api/images/upload").by(&app.token("ada")).file(file).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().parse().unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upload_keeps_what_it_said_of_itself(pool: PgPool) {
    let (own, elsewhere) = (Key::new("Example Ltd"), Key::new("Elsewhere GmbH"));
    let app = start(pool, &own, &[]).await;
    let image = upload(&app, &elsewhere.fixed(&jpeg())).await;
    let kept = images::provenance(&app.pool, image).await.unwrap().unwrap();
    assert!(kept.ingredient.is_some_and(|archive| archive.len() > 1000));
    assert_eq!(kept.source.as_deref(), Some(GENERATED));
    let stored = app.bucket.storage.get(&retouch_core::storage::image_key(image)).await.unwrap();
    let of_stored = own.read(&stored);
    assert_eq!((of_stored.state, of_stored.source), (State::Absent, None), "no metadata is stored");

    let plain = upload(&app, &jpeg()).await;
    assert_eq!(images::provenance(&app.pool, plain).await.unwrap(), None);
    images::delete(&app.pool, app_user(&app).await, image).await.unwrap();
    assert_eq!(images::provenance(&app.pool, image).await.unwrap(), None, "deleted with the image");
}

async fn app_user(app: &TestApp) -> retouch_core::UserId {
    sign_in(&app.pool, &app.issuer.url, "ada").await.id
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn files_made_of_a_marked_result_are_signed_in_every_format(pool: PgPool) {
    let key = Key::new("Example Ltd");
    let app = start(pool, &key, &[]).await;
    let (marked, token) = (key.fixed(&png(64, 48)), app.token("ada"));
    let result = made(&app, &marked).await;
    assert_eq!(result["source"], GENERATED, "lists say so, too");
    let id = result["imageId"].as_str().unwrap();
    let file = async |query: &str| {
        app.get(&format!("/api/results/{id}/file{query}")).by(&token).send().await
    };
    assert_eq!(file("?format=png").await.body, marked, "the result itself");
    for query in ["?format=jpg", "?format=webp&quality=70"] {
        let report = key.read(&file(query).await.body);
        assert_eq!(report.state, State::Trusted, "{query}: {report:?}");
        assert_eq!(report.source.map(|source| source.uri()).as_deref(), Some(GENERATED));
        let parent = report.claim.unwrap().ingredients.pop().unwrap();
        assert!(parent.is_parent && parent.claim.is_some() && parent.problems.is_empty());
    }
    let background = json!({"background": {"color": "#ffffff"}, "format": "png"}).to_string();
    let address = format!("/api/results/{id}/render");
    let finished =
        app.post(&address).by(&token).form(&[("options", background.as_bytes())]).send().await;
    assert_eq!(finished.status, StatusCode::OK, "{}", finished.text());
    let report = key.read(&finished.body);
    assert_eq!(report.state, State::Trusted, "{report:?}");
    let actions: Vec<_> =
        report.claim.unwrap().actions.into_iter().map(|action| action.action).collect();
    assert_eq!(actions, ["c2pa.opened", "c2pa.edited"]);

    let plain = made(&app, &png(64, 48)).await;
    assert_eq!(plain["source"], Value::Null);
    let address = format!("/api/results/{}/file?format=jpg", plain["imageId"].as_str().unwrap());
    let report = key.read(&app.get(&address).by(&token).send().await.body);
    assert_eq!((report.state, report.source), (State::Absent, None));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_visitor_saves_a_result_in_every_format_with_its_signed_address(pool: PgPool) {
    let key = Key::new("Example Ltd");
    let app = start(pool, &key, &["--visitor-uploads-per-hour=6"]).await;
    let job = app.post("/api/free/remove-bg-fr").file(&png(64, 48)).asynchronously().send().await;
    let id = job.json()["id"].as_str().unwrap().to_owned();
    app.claim().await.unwrap();
    app.finish(id.parse().unwrap(), &key.fixed(&png(64, 48))).await;
    let job = app.get(&format!("/api/jobs/{id}")).send().await.json();
    let url = job["results"][0]["url"].as_str().unwrap();
    let (path, signature) = url.split_once('?').unwrap();
    let render = async |address: &str, options: &Value| -> Answer {
        let options = options.to_string();
        app.post(address).form(&[("options", options.as_bytes())]).send().await
    };
    let address = format!("{path}/render?{signature}");
    for (format, kind) in [("jpg", "image/jpeg"), ("webp", "image/webp")] {
        let file = render(&address, &json!({"format": format})).await;
        assert_eq!((file.status, file.header("content-type")), (StatusCode::OK, kind));
        assert_eq!(key.read(&file.body).state, State::Trusted, "{format}");
    }
    let jpg = json!({"format": "jpg"});
    for wrong in [
        format!("{path}/render"),
        format!("{path}/render?{}", signature.replace("signature=", "signature=0")),
        format!("{}/render?{signature}", path.replace("/results/", "/images/")),
        format!("/api/files/results/{}/render?{signature}", uuid::Uuid::now_v7()),
    ] {
        assert_eq!(render(&wrong, &jpg).await.status, StatusCode::NOT_FOUND, "{wrong}");
    }
    let mut last = StatusCode::OK;
    for _ in 0..4 {
        last = render(&address, &jpg).await.status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS, "rendering is limited like uploads");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_signed_address_of_a_users_result_gives_no_more_than_that_result(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let result = made(&app, &png(64, 48)).await;
    let url = result["url"].as_str().unwrap();
    let (path, signature) = url.split_once('?').unwrap();
    assert_eq!(app.get(url).send().await.status, StatusCode::OK);
    // The cutout may be shared; this would draw the background that was removed.
    let blurred = json!({"format": "jpg", "background": {"blur": 1}}).to_string();
    let render = app.post(&format!("{path}/render?{signature}"));
    let answer = render.form(&[("options", blurred.as_bytes())]).send().await;
    answer.is_problem(404, "File not found");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_a_required_key_no_marked_result_is_rendered(pool: PgPool) {
    let key = Key::new("Example Ltd");
    let app = TestApp::start_with(pool, &["--credentials-required"]).await;
    let token = app.token("ada");
    let ready = app.get("/readyz").send().await.json();
    let problem = ready["credentialsProblem"].as_str().unwrap();
    assert!(problem.contains("there is no key"), "{problem}");
    for (file, status) in
        [(key.fixed(&png(64, 48)), StatusCode::SERVICE_UNAVAILABLE), (png(64, 48), StatusCode::OK)]
    {
        let result = made(&app, &file).await;
        let address =
            format!("/api/results/{}/file?format=jpg", result["imageId"].as_str().unwrap());
        let answer = app.get(&address).by(&token).send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn anybody_can_verify_a_picture_and_nothing_is_stored(pool: PgPool) {
    let (own, elsewhere) = (Key::new("Example Ltd"), Key::new("Elsewhere GmbH"));
    let app = start(pool, &own, &[]).await;
    let ours = verified(&app, &own.fixed(&jpeg())).await;
    assert_eq!((&ours["state"], &ours["isGenerated"]), (&json!("trusted"), &json!(true)));
    assert_eq!((&ours["source"], &ours["isSourceClaimed"]), (&json!(GENERATED), &json!(true)));
    let signature = &ours["claim"]["signature"];
    assert_eq!(
        (&signature["isOurs"], &signature["organization"]),
        (&json!(true), &json!("Example Ltd"))
    );
    assert_eq!(ours["claim"]["actions"][1]["action"], "c2pa.edited");
    assert_eq!(ours["claim"]["ingredients"][0]["isParent"], true);

    let theirs = verified(&app, &elsewhere.fixed(&png(64, 48))).await;
    assert_eq!((&theirs["state"], &theirs["problems"]), (&json!("valid"), &json!([])));
    assert_eq!(theirs["claim"]["signature"]["isOurs"], false);

    let mut tampered = own.fixed(&png(64, 48));
    let at = tampered.len() - 30;
    tampered[at] ^= 1;
    let tampered = verified(&app, &tampered).await;
    assert_eq!(tampered["state"], "invalid");
    let problems = tampered["problems"].as_array().unwrap();
    assert!(problems.iter().any(|problem| problem["code"] == "assertion.dataHash.mismatch"));

    let nothing = verified(&app, &png(64, 48)).await;
    let expected = json!({"state": "absent", "source": null, "isSourceClaimed": false, "isGenerated": false,
        "claim": null, "problems": []});
    assert_eq!(nothing, expected);
    assert_eq!(object_keys(&app.bucket.storage).await, [""; 0]);

    let answer = app.post("/api/verify").file(b"no picture").send().await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{}", answer.text());
    let answer = app.post("/api/verify").by(&app.token("ada")).file(&jpeg()).send().await;
    assert_eq!(answer.status, StatusCode::OK, "signed in, too");
    let answer = app.post("/api/verify").by("wrong").file(&jpeg()).send().await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn verifying_counts_as_an_upload_of_the_address(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--visitor-uploads-per-hour=2"]).await;
    for expected in [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let answer = app.post("/api/verify").file(&png(64, 48)).send().await;
        assert_eq!(answer.status, expected, "{}", answer.text());
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_remove_bg_client_gets_marks_in_every_format(pool: PgPool) {
    let key = Key::new("Example Ltd");
    let app = std::sync::Arc::new(start(pool, &key, &["--credentials=all"]).await);
    let client = app.key("ada").await;
    for format in ["png", "jpg", "zip"] {
        let worker = {
            let (app, made) = (app.clone(), key.fixed(&png(64, 48)));
            tokio::spawn(async move {
                let patience = std::time::Duration::from_secs(20);
                let job = retouch_standins::testing::eventually(patience, "a job", || app.claim());
                app.finish(job.await.id, &made).await;
            })
        };
        let picture = match format {
            "png" => png(64, 48),
            "jpg" => jpeg(),
            _ => png(48, 64),
        };
        let answer = app
            .post("/v1.0/removebg")
            .with_key(&client)
            .form(&[("image_file", &picture), ("format", format.as_bytes())])
            .send()
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        worker.await.unwrap();
        let mut file = answer.body.to_vec();
        if format == "zip" {
            let mut zip =
                zip::ZipArchive::new(std::io::Cursor::new(std::mem::take(&mut file))).unwrap();
            std::io::Read::read_to_end(&mut zip.by_name("color.jpg").unwrap(), &mut file).unwrap();
        }
        let report = key.read(&file);
        assert_eq!(report.state, State::Trusted, "{format}: {report:?}");
        assert!(report.source.is_some_and(|source| source.is_generated()));
    }
    assert!(SourceType::parse(GENERATED).is_some());
}

#[test]
fn a_key_is_made_and_renewed_without_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("credentials");
    let retouch = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_retouch-api"));
        command.args(["admin", "credentials"]).args(arguments).env_remove("DATABASE_URL");
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let out_text = out.display().to_string();
    let (is_good, said) = retouch(&["init", "--out", &out_text, "--organization", "Example Ltd"]);
    assert!(is_good && said.contains("RETOUCH_CREDENTIALS_CHAIN_FILE"), "{said}");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    for name in ["key.pem", "authority-key.pem"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(out.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let (chain, key) = (read("chain.pem"), read("key.pem"));
    Signer::new(&chain, &key, None, Clock::system().now()).unwrap();
    let (is_good, said) = retouch(&["init", "--out", &out_text]);
    assert!(!is_good && said.contains("is not empty; name a new folder"), "{said}");
    assert_eq!((read("chain.pem"), read("key.pem")), (chain.clone(), key.clone()), "unchanged");

    let pair = [format!("--credentials-chain={chain}"), format!("--credentials-key={key}")];
    for (setting, signs) in [("generated", true), ("off", false)] {
        let coverage = format!("--credentials={setting}");
        let (is_good, said) = retouch(&["check", &pair[0], &pair[1], &coverage, "--json"]);
        assert!(is_good == signs && said.contains(&format!(r#""signs": {signs}"#)), "{said}");
    }
    let broken = ["--credentials-chain=no PEM", "--credentials-key=no PEM"];
    for key in [&[][..], &broken] {
        let (is_good, said) = retouch(&[&["check", "--credentials=off"], key].concat());
        assert!(!is_good && said.contains("neither marked nor signed"), "{said}");
    }

    let (is_good, said) = retouch(&["renew", "--out", &out_text, "--organization", "Example Ltd"]);
    assert!(is_good, "{said}");
    assert_ne!(read("key.pem"), key);
    let renewed =
        Signer::new(&read("chain.pem"), &read("key.pem"), None, Clock::system().now()).unwrap();
    let old = Signer::new(&chain, &key, None, Clock::system().now()).unwrap();
    assert_eq!(renewed.name(), old.name());

    let check = |chain: &str| {
        let (chain, key) = (format!("--credentials-chain={chain}"), read("key.pem"));
        retouch(&["check", &chain, &format!("--credentials-key={key}")])
    };
    let (is_good, said) = check(&read("chain.pem"));
    assert!(is_good && said.contains("Retouch signs until"), "{said}");
    let (is_good, said) = check(&chain);
    assert!(!is_good, "{said}");
}
