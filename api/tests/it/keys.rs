//! API keys: shown once, stored as hashes, valid for images and tools only.

use axum::http::StatusCode;
use serde_json::json;
use sqlx::PgPool;

use crate::app::{TestApp, png};

const NOT_VALID: &str = "This API key is invalid or was revoked.";

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_is_shown_once_and_listed_without_its_secret(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    assert_eq!(app.get("/api/keys").by(&ada).send().await.json(), json!({"keys": []}));
    let request = app.post("/api/keys").by(&ada).json_body(&json!({"name": " nightly batch "}));
    let made = request.send().await;
    assert_eq!((made.status, made.header("cache-control")), (StatusCode::CREATED, "no-store"));
    let made = made.json();
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("rt_") && key.len() == 46, "{key}");
    assert_eq!((&made["name"], &made["prefix"]), (&json!("nightly batch"), &json!(key[..9])));

    let list = app.get("/api/keys").by(&ada).send().await;
    assert!(!list.text().contains(key), "{}", list.text());
    let listed = &list.json()["keys"][0];
    assert_eq!((&listed["id"], &listed["lastUsedAt"]), (&made["id"], &json!(null)));
    assert!(listed.get("key").is_none());
    let stored: String = sqlx::query_scalar("select api_keys::text from api_keys")
        .fetch_one(&app.pool)
        .await
        .unwrap();
    assert!(!stored.contains(&key[9..]), "the key itself is stored: {stored}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_that_may_have_been_created_is_not_asked_for_again(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    app.get("/api/keys").by(&ada).send().await;
    app.hang_up_at_commits_of("api_keys").await;
    let lost = app.post("/api/keys").by(&ada).json_body(&json!({"name": "batch"})).send().await;
    lost.is_problem(
        500,
        "We don't know whether this key was created. If it is in your list, revoke it, because nobody has it.",
    );
    assert_eq!((&lost.json()["code"], lost.header("retry-after")), (&json!("outcome_unknown"), ""));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_acts_for_its_owner_on_images_and_tools(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    let user = app.get("/api/user/get").by(&ada).send().await.json();
    for request in [
        app.get("/api/user/get").with_key(&key),
        app.get("/api/user/get").header("authorization", &format!("Bearer {key}")),
    ] {
        let answer = request.send().await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, user.clone()));
    }
    let uploaded = app.post("/api/images/upload").with_key(&key).file(&png(64, 48)).send().await;
    assert_eq!(uploaded.status, StatusCode::CREATED, "{}", uploaded.text());
    let image = uploaded.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let job = app.post(&path).with_key(&key).asynchronously().send().await;
    assert_eq!(job.status, StatusCode::ACCEPTED, "{}", job.text());
    assert_eq!(app.balance("ada").await, (20, 5));
    let followed = app.get(job.header("location")).with_key(&key).send().await;
    assert_eq!(followed.json()["state"], "queued");
    let stranger = app.key("bob").await;
    let answer = app.get(job.header("location")).with_key(&stranger).send().await;
    answer.is_problem(404, "Job not found");
    // The owner sees the program's uploads.
    let images = app.get("/api/images").by(&ada).send().await.json();
    assert_eq!(images["images"][0]["id"], json!(image));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn managing_keys_requires_a_token(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let key = app.key("ada").await;
    let token_required = "API keys cannot be used here. Sign in instead.";
    for request in [
        app.get("/api/keys"),
        app.post("/api/keys").json_body(&json!({"name": "another"})),
        app.delete("/api/keys/0198a5a0-0000-7000-8000-000000000000"),
    ] {
        request.with_key(&key).send().await.is_problem(403, token_required);
    }
    let as_bearer = app.get("/api/keys").by(&key).send().await;
    as_bearer.is_problem(403, token_required);
    let nobody = app.get("/api/keys").send().await;
    nobody.is_problem(401, "Authentication token is missing.");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn invalid_keys_are_rejected(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let key = app.key("ada").await;
    let mut changed = key.clone();
    changed.replace_range(20..21, if &key[20..21] == "A" { "B" } else { "A" });
    for wrong in [&changed, &key[..45], "rt_", "", "x", "rt_ü", &key.to_uppercase()] {
        let answer = app.get("/api/user/get").with_key(wrong).send().await;
        answer.is_problem(401, NOT_VALID);
    }
    // Even with a valid token.
    let both = app.get("/api/user/get").by(&app.token("ada")).with_key("rt_x").send().await;
    both.is_problem(401, NOT_VALID);
    // Also on routes that need no token.
    let job = format!("/api/jobs/{}", "0198a5a0-0000-7000-8000-000000000000");
    app.get(&job).with_key(&changed).send().await.is_problem(401, NOT_VALID);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_revoked_key_is_rejected_immediately(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    assert_eq!(app.get("/api/user/get").with_key(&key).send().await.status, StatusCode::OK);
    let id = app.get("/api/keys").by(&ada).send().await.json()["keys"][0]["id"].clone();
    let path = format!("/api/keys/{}", id.as_str().unwrap());
    app.delete(&path).by(&app.token("bob")).send().await.is_problem(404, "Key not found");
    assert_eq!(app.get("/api/user/get").with_key(&key).send().await.status, StatusCode::OK);
    assert_eq!(app.delete(&path).by(&ada).send().await.status, StatusCode::NO_CONTENT);
    app.get("/api/user/get").with_key(&key).send().await.is_problem(401, NOT_VALID);
    for id in [id.as_str().unwrap(), "0198a5a0-0000-7000-8000-000000000000", "no-id"] {
        let gone = app.delete(&format!("/api/keys/{id}")).by(&ada).send().await;
        gone.is_problem(404, "Key not found");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_needs_a_name_and_a_user_has_at_most_twenty(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let make = |body: serde_json::Value| app.post("/api/keys").by(&ada).json_body(&body).send();
    for name in ["", "   ", &"n".repeat(61), "a\u{0}b", "two\nlines"] {
        let refused = make(json!({"name": name})).await;
        refused.is_problem(400, "The name must have 1 to 60 characters.");
    }
    for body in [json!({}), json!({"name": 7}), json!("name")] {
        let refused = make(body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text());
        assert_eq!(refused.header("content-type"), "application/problem+json");
    }
    // Concurrent requests must not exceed the limit.
    let longest = "ü".repeat(60);
    let made = (0..25).map(|_| make(json!({"name": longest})));
    let answers = futures::future::join_all(made).await;
    let refused: Vec<_> =
        answers.iter().filter(|answer| answer.status != StatusCode::CREATED).collect();
    assert_eq!(refused.len(), 5);
    for answer in refused {
        answer.is_problem(422, "You already have 20 keys. Revoke one first.");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_last_use_is_written_once_a_minute(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    let used_at = || async {
        let listed = app.get("/api/keys").by(&ada).send().await.json();
        listed["keys"][0]["lastUsedAt"].as_str().map(str::to_owned)
    };
    let used = async || app.get("/api/user/get").with_key(&key).send().await;
    used().await;
    let first = used_at().await.expect("a time");
    used().await;
    assert_eq!(used_at().await, Some(first.clone()));
    sqlx::query("update api_keys set last_used_at = last_used_at - interval '61 seconds'")
        .execute(&app.pool)
        .await
        .unwrap();
    used().await;
    assert!(used_at().await.unwrap() >= first);
}
