//! `retouch-api admin objects`, as backups use it.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use bytes::Bytes;
use retouch_core::ImageId;
use retouch_core::storage::{OWNER_KEY, Storage, image_key};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, PgPool};
use tempfile::TempDir;

use crate::app::TestApp;

const BODY: &[u8] = b"a picture";
/// The SHA-256 of `BODY`.
const CHECKSUM: &str = "92b2fa58028958317e408bd84ecfa70f5ee35b121991dbc232c49d166353708b";

/// Runs `retouch-api admin objects` on a bucket of the test server.
fn objects(app: &TestApp, bucket: &str, arguments: &[&str], input: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_retouch-api"))
        .args(["admin", "--json", "objects"])
        .args(arguments)
        .env("DATABASE_URL", app.pool.connect_options().to_url_lossy().as_str())
        .env("S3_ENDPOINT", app.bucket.config.s3_endpoint.clone().unwrap())
        .env("S3_BUCKET", bucket)
        .env("S3_ACCESS_KEY_ID", "test")
        .env("S3_SECRET_ACCESS_KEY", "test-secret")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    program.wait_with_output().unwrap()
}

fn answer(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder_of(folder: &TempDir) -> &str {
    folder.path().to_str().unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn objects_are_copied_to_a_folder_and_into_another_bucket(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let large = Bytes::from(vec![7; 20 << 20]);
    app.bucket.storage.put("images/1/original", "image/jpeg", BODY.into()).await.unwrap();
    app.bucket.storage.put("results/2/1.png", "image/png", large.clone()).await.unwrap();
    let folder = TempDir::new().unwrap();
    let keys = "images/1/original\nimages/9/original\nresults/2/1.png\n";
    let copied = answer(&objects(&app, "test", &["download", folder_of(&folder)], keys));
    assert_eq!(copied["missing"], json!(["images/9/original"]));
    let expected = json!({
        "key": "images/1/original", "size": BODY.len(), "sha256": CHECKSUM, "contentType": "image/jpeg",
    });
    assert_eq!(copied["objects"][0], expected);
    assert_eq!(fs::read(folder.path().join("images/1/original")).unwrap(), BODY);
    assert_eq!(fs::read(folder.path().join("results/2/1.png")).unwrap(), large);
    let files = fs::read_dir(folder.path().join("results/2")).unwrap();
    assert_eq!(files.count(), 1, "no temporary file is left");

    let mut lines = String::new();
    for entry in copied["objects"].as_array().unwrap() {
        let [key, sha256, kind] =
            ["key", "sha256", "contentType"].map(|name| entry[name].as_str().unwrap());
        writeln!(lines, "{key}\t{}\t{sha256}\t{kind}", entry["size"]).unwrap();
    }
    assert_eq!(answer(&objects(&app, "restored", &["list"], "")), json!([]), "no such bucket");
    let uploaded = answer(&objects(&app, "restored", &["upload", folder_of(&folder)], &lines));
    assert_eq!(uploaded, json!({"objects": 2}));
    let keys = json!(["images/1/original", OWNER_KEY, "results/2/1.png"]);
    assert_eq!(answer(&objects(&app, "restored", &["list"], "")), keys);
    let some = ["list", "--prefix", "results/", "--limit", "1"];
    assert_eq!(answer(&objects(&app, "restored", &some, "")), json!(["results/2/1.png"]));
    let config = retouch_core::config::StorageConfig {
        s3_bucket: "restored".into(),
        ..app.bucket.config.clone()
    };
    let restored = Storage::new(&config);
    let object = restored.open("images/1/original", None).await.unwrap();
    assert_eq!(object.content_type.as_deref(), Some("image/jpeg"));
    assert_eq!(restored.get("results/2/1.png").await.unwrap(), large);

    // The lost database had another id.
    let key = image_key(ImageId::new());
    restored.put(&key, "image/png", BODY.into()).await.unwrap();
    sqlx::query("update installation set id = gen_random_uuid()").execute(&app.pool).await.unwrap();
    let refused = error(&objects(&app, "restored", &["upload", folder_of(&folder)], &lines));
    assert!(refused.contains("belongs to another database"), "{refused}");

    let refused = error(&objects(&app, "restored", &["claim"], ""));
    assert!(refused.contains("--discard-pictures"), "{refused}");
    let claimed = answer(&objects(&app, "restored", &["claim", "--discard-pictures"], ""));
    assert_eq!(claimed, json!({"lookedUp": 1, "known": 0}));
    answer(&objects(&app, "restored", &["upload", folder_of(&folder)], &lines));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn damaged_files_and_keys_outside_of_the_folder_are_rejected(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("images/1")).unwrap();
    fs::write(folder.path().join("images/1/original"), b"a pictura").unwrap();
    let line = format!("images/1/original\t{}\t{CHECKSUM}\timage/png\n", BODY.len());
    let upload = ["upload", folder_of(&folder)];
    let damaged = error(&objects(&app, "test", &upload, &line));
    assert!(damaged.contains("copying images/1/original: its file is damaged"), "{damaged}");
    assert_eq!(answer(&objects(&app, "test", &["list"], "")), json!([OWNER_KEY]));

    let outside = error(&objects(&app, "test", &["download", folder_of(&folder)], "../secret\n"));
    assert!(outside.contains("is not a path inside of the folder"), "{outside}");
    assert!(!Path::new(folder.path()).parent().unwrap().join("secret").exists());
}
