//! Deleting and exporting an account, and the operator's commands.

use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use clap::Parser;
use retouch_api::admin::{Admin, Answer};
use retouch_core::jobs::Failure;
use retouch_core::{audit, janitor, with_causes};
use retouch_standins::issuer::Key;
use retouch_standins::testing::object_keys;
use serde_json::{Value, json};
use sqlx::{ConnectOptions, PgPool};

use crate::app::{AUDIENCE, TestApp, png};

const DELETED: &str = "This account was deleted. To start a new one, sign in on the website.";

/// Returns a token that was issued five seconds later.
fn later_token(app: &TestApp, name: &str) -> String {
    let mut claims = app.issuer.claims(name, AUDIENCE);
    claims["iat"] = json!(claims["iat"].as_u64().unwrap() + 5);
    app.issuer.sign(Key::First, &claims)
}

/// Runs a tool on a new image of `name`; returns the ids of the image and the job.
async fn run_a_tool(app: &Arc<TestApp>, name: &str) -> (String, String) {
    let image = app.upload(name).await;
    let worker = app.work_once();
    let path = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    let answer = app.get(&path).by(&app.token(name)).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    (image, worker.await.unwrap().to_string())
}

/// Returns the bytes and the number of pictures that `name` stores.
async fn stored(app: &TestApp, name: &str) -> (i64, i64) {
    let stored = app.get("/api/user/storage").by(&app.token(name)).send().await.json();
    (stored["bytes"].as_i64().unwrap(), stored["pictures"].as_i64().unwrap())
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn images_and_results_count_until_they_are_deleted(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let ada = app.token("ada");
    assert_eq!(stored(&app, "ada").await, (0, 0));
    let (image, _) = run_a_tool(&app, "ada").await;
    let other = app.upload("ada").await;
    let size = png(64, 48).len() as i64;
    assert_eq!(stored(&app, "ada").await, (3 * size, 3));
    assert_eq!(stored(&app, "bob").await, (0, 0));
    let results = app.get(&format!("/api/rmbg-images/{image}")).by(&ada).send().await.json();
    let result = format!("/api/rmbg-images/{}", results[0]["imageId"].as_str().unwrap());
    assert_eq!(app.delete(&result).by(&ada).send().await.status, StatusCode::NO_CONTENT);
    assert_eq!(stored(&app, "ada").await, (2 * size, 2));
    for image in [image, other] {
        app.delete(&format!("/api/images/{image}")).by(&ada).send().await;
    }
    assert_eq!(stored(&app, "ada").await, (0, 0));
    let limits = app.get("/api/user/storage").by(&ada).send().await.json();
    assert_eq!(
        (&limits["maxBytes"], &limits["maxPictures"]),
        (&json!(100_i64 << 30), &json!(100_000))
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn uploads_beyond_the_quota_are_refused_and_store_nothing(pool: PgPool) {
    let settings = ["--user-pictures=3", "--user-storage-mib=0"];
    let app = TestApp::start_with(pool, &settings).await;
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    let upload = || app.post("/api/images/upload").by(&ada).file(&png(64, 48)).send();
    // Also when they arrive together.
    let answers = futures::future::join_all((0..8).map(|_| upload())).await;
    let created: Vec<_> =
        answers.iter().filter(|answer| answer.status == StatusCode::CREATED).collect();
    assert_eq!(created.len(), 3);
    let refused = upload().await;
    let detail = "Your storage is full (max 3 pictures). Delete images or results to make room.";
    refused.is_problem(422, detail);
    assert_eq!(refused.json()["code"], "storage_full");
    let program = app.post("/v1.0/removebg").with_key(&key).field("image_file", &png(64, 48));
    let program = program.send().await;
    assert_eq!(program.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(program.json()["errors"][0]["code"], "storage_full");
    assert_eq!(app.balance("ada").await, (20, 0));
    assert_eq!(stored(&app, "ada").await.1, 3);
    // Deleting makes room, and other users have their own.
    let first = created[0].json()["id"].as_str().unwrap().to_owned();
    app.delete(&format!("/api/images/{first}")).by(&ada).send().await;
    assert_eq!(upload().await.status, StatusCode::CREATED);
    app.upload("bob").await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_quota_also_limits_bytes(pool: PgPool) {
    let settings = ["--user-pictures=0", "--user-storage-mib=1"];
    let app = TestApp::start_with(pool, &settings).await;
    let ada = app.token("ada");
    app.upload("ada").await;
    sqlx::query("update images set size_bytes = (1 << 20) - 100").execute(&app.pool).await.unwrap();
    let refused = app.post("/api/images/upload").by(&ada).file(&png(64, 48)).send().await;
    refused
        .is_problem(422, "Your storage is full (max 1 MB). Delete images or results to make room.");
    sqlx::query("update images set size_bytes = 100").execute(&app.pool).await.unwrap();
    app.upload("ada").await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_an_account_deletes_its_data_and_cancels_its_runs(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, key) = (app.token("ada"), app.key("ada").await);
    let (image, _) = run_a_tool(&app, "ada").await;
    let url = app.get(&format!("/api/images/{image}")).by(&ada).send().await.json()["url"].clone();
    let other = app.upload("ada").await;
    let run = format!("/api/upscale/upscale-ai-2?imageId={other}");
    let waiting = {
        let (app, ada, run) = (app.clone(), ada.clone(), run.clone());
        tokio::spawn(async move { app.post(&run).by(&ada).send().await })
    };
    retouch_standins::testing::eventually(Duration::from_secs(10), "a job", async || {
        let jobs = app.get("/api/jobs").by(&ada).send().await.json();
        (!jobs["jobs"].as_array().unwrap().is_empty()).then_some(())
    })
    .await;

    let by_program = app.delete("/api/user").header("x-api-key", &key).send().await;
    by_program.is_problem(403, "API keys cannot be used here. Sign in instead.");
    assert_eq!(app.delete("/api/user").by(&ada).send().await.status, StatusCode::NO_CONTENT);

    // The request that waited for the run ends.
    let waiting = waiting.await.unwrap().status;
    assert!(matches!(waiting, StatusCode::NOT_FOUND | StatusCode::CONFLICT), "{waiting}");
    app.get(url.as_str().unwrap()).send().await.is_problem(404, "File not found");
    let again = app.delete("/api/user").by(&ada).send().await;
    assert_eq!(again.status, StatusCode::NO_CONTENT, "a repeat succeeds");
    let refused = app.get("/api/user/get").by(&ada).send().await;
    refused.is_problem(401, DELETED);
    // By this code, the page knows that it must not renew its token.
    assert_eq!(refused.json()["code"], "account_deleted");
    app.post("/api/images/upload").by(&ada).file(&png(8, 8)).send().await.is_problem(401, DELETED);
    let by_program = app.get("/api/images").header("x-api-key", &key).send().await;
    assert_eq!(by_program.status, StatusCode::UNAUTHORIZED);
    assert_eq!(audit::books(&app.pool).await.unwrap(), []);
    janitor::round(&app.pool, &app.bucket.storage).await.unwrap();
    assert_eq!(object_keys(&app.bucket.storage).await, Vec::<String>::new());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn signing_in_again_starts_a_new_account_without_free_credits(pool: PgPool) {
    let app = TestApp::start(pool).await;
    app.upload("ada").await;
    let from_before = app.token("ada");
    let first = app.get("/api/user/get").by(&from_before).send().await.json();
    let (one, two) = tokio::join!(
        app.delete("/api/user").by(&app.token("ada")).send(),
        app.delete("/api/user").by(&app.token("ada")).send(),
    );
    assert_eq!([one.status, two.status], [StatusCode::NO_CONTENT; 2], "a double click");
    let refused = app.post("/api/user").by(&from_before).send().await;
    assert_eq!(refused.json()["code"], "account_deleted");
    let back = later_token(&app, "ada");
    // A page on another device renewed its token.
    app.get("/api/user/get").by(&back).send().await.is_problem(401, DELETED);
    let (one, two) = tokio::join!(
        app.post("/api/user").by(&back).send(),
        app.post("/api/user").by(&back).send(),
    );
    assert_eq!([one.status, two.status], [StatusCode::NO_CONTENT; 2]);
    let second = app.get("/api/user/get").by(&back).send().await.json();
    assert_ne!(second["id"], first["id"]);
    assert_eq!((&second["credits"], &second["email"]), (&json!(0), &json!("ada@example.test")));
    let images = app.get("/api/images").by(&back).send().await.json();
    assert_eq!(images["images"], json!([]));
    // Other users of the same provider get the free credits, and keep them.
    assert_eq!(app.balance("bob").await, (20, 0));
    let asked = app.post("/api/user").by(&app.token("bob")).send().await;
    assert_eq!((asked.status, app.balance("bob").await), (StatusCode::NO_CONTENT, (20, 0)));
    let by_program = app.post("/api/user").header("x-api-key", &app.key("bob").await).send().await;
    assert_eq!(by_program.status, StatusCode::FORBIDDEN);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_an_account_closes_its_payment_page(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let ada = app.token("ada");
    let bought = app.post("/api/payments/create-checkout-session-1").by(&ada).send().await;
    assert_eq!(bought.status, StatusCode::OK, "{}", bought.text());
    let session = stripe.sessions().pop().unwrap();
    assert_eq!(app.delete("/api/user").by(&ada).send().await.status, StatusCode::NO_CONTENT);
    // As a stopping process does.
    app.app.tasks.close();
    app.app.tasks.wait().await;
    assert_eq!(stripe.session(&session).unwrap()["status"], "expired");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_export_contains_all_data_of_the_user_and_no_other(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let ada = app.token("ada");
    let empty = app.get("/api/user/export").by(&ada).send().await.json();
    for list in ["images", "results", "jobs", "checkouts", "paymentMessages", "keys"] {
        assert_eq!(empty[list], json!([]), "{list}");
    }
    app.key("ada").await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        expected.push(run_a_tool(&app, "ada").await);
        run_a_tool(&app, "bob").await;
    }
    let answer = app.get("/api/user/export").by(&ada).send().await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(answer.header("content-disposition").starts_with("attachment; filename="));
    let document = answer.json();
    let column = |list: &str, name: &str| -> Vec<String> {
        let rows = document[list].as_array().unwrap();
        rows.iter().map(|row| row[name].as_str().unwrap().to_owned()).collect()
    };
    let (images, jobs): (Vec<_>, Vec<_>) = expected.into_iter().unzip();
    assert_eq!(column("images", "id"), images);
    assert_eq!((column("jobs", "id"), column("results", "jobId")), (jobs.clone(), jobs));
    assert_eq!(column("ledger", "kind"), ["signup_grant", "job", "job", "job"]);
    assert_eq!(document["keys"].as_array().unwrap().len(), 1);
    assert_eq!(document["user"]["email"], "ada@example.test");
    assert_eq!(document["user"]["subject"], "ada");
    assert!(!answer.text().contains("bob"), "{}", answer.text());
    let picture = app.get(document["results"][0]["url"].as_str().unwrap()).send().await;
    assert_eq!(picture.status, StatusCode::OK, "the URLs work");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_export_can_be_compressed(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    for kind in ["gzip", "br"] {
        let export = app.get("/api/user/export").by(&ada).header("accept-encoding", kind);
        let answer = export.send().await;
        assert_eq!((answer.status, answer.header("content-encoding")), (StatusCode::OK, kind));
        assert!(!answer.body.is_empty());
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_export_of_many_pages_is_one_document(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    app.get("/api/user/get").by(&ada).send().await;
    sqlx::query(
        "insert into ledger (user_id, kind, amount, reference)
         select id, 'admin', 1, 'n' || n from users, generate_series(1, 1499) n",
    )
    .execute(&app.pool)
    .await
    .unwrap();
    // Three full pages, and an empty fourth one.
    let document = app.get("/api/user/export").by(&ada).send().await.json();
    let ids: Vec<i64> = document["ledger"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), 1500);
    assert!(ids.is_sorted_by(|a, b| a < b), "every entry appears once");
    assert_eq!(document["checkouts"], json!([]));
}

#[derive(Parser)]
struct AdminCommand {
    #[command(flatten)]
    admin: Admin,
}

/// Runs `retouch-api admin` in this process.
async fn admin(app: &TestApp, words: &[&str]) -> anyhow::Result<Answer> {
    let args = ["admin", "--database-url=postgres://unused"].iter().chain(words);
    AdminCommand::try_parse_from(args)?.admin.perform(&app.pool).await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_operator_shows_an_account_and_grants_credits_once(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    run_a_tool(&app, "ada").await;
    let granting =
        ["grant", "ada@example.test", "30", "--note", "an outage", "--reference", "ticket 7"];
    let granted = admin(&app, &granting).await.unwrap();
    assert!(granted.text.starts_with("Recorded +30 credits"), "{}", granted.text);
    assert!(granted.text.contains(&format!("ada at {}", app.issuer.url)), "{}", granted.text);
    let again = admin(&app, &granting).await.unwrap();
    assert_eq!((&again.json["isNew"], &again.json["credits"]), (&json!(false), &json!(45)));
    assert_eq!(app.balance("ada").await, (45, 0));
    admin(&app, &["grant", "ada", "-40", "--note", "a mistake"]).await.unwrap();
    let too_much = admin(&app, &["grant", "ada", "-6", "--note", "too much"]).await.unwrap_err();
    assert!(format!("{too_much:#}").contains("only 5 credits can be removed"), "{too_much:#}");
    assert_eq!(app.balance("ada").await, (5, 0));

    let shown = admin(&app, &["user", "ADA@example.test"]).await.unwrap();
    for part in ["ada@example.test", "5 (0 held)", "remove-background", "ticket 7", "an outage"] {
        assert!(shown.text.contains(part), "no {part} in {}", shown.text);
    }
    assert_eq!(shown.json["ledger"].as_array().unwrap().len(), 4);
    let nobody = admin(&app, &["user", "eve"]).await.unwrap_err();
    assert_eq!(nobody.to_string(), "no account matches");
    sqlx::query("update users set email = 'ada@example.test'").execute(&app.pool).await.unwrap();
    app.balance("bob").await;
    sqlx::query("update users set email = 'ada@example.test'").execute(&app.pool).await.unwrap();
    let several =
        admin(&app, &["grant", "ada@example.test", "5", "--note", "x"]).await.unwrap_err();
    assert!(several.to_string().starts_with("several accounts"), "{several}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_silent_redis_delays_the_deletion_of_an_account_only_once(pool: PgPool) {
    let app = TestApp::start(pool).await;
    app.upload("ada").await;
    let runs = "insert into jobs (id, owner_id, image_id, tool, tier, cost)
                select gen_random_uuid(), owner_id, id, 'remove-background', 'free', 0
                from images, generate_series(1, 20)";
    sqlx::query(runs).execute(&app.pool).await.unwrap();
    app.redis().freeze();
    let started = Instant::now();
    let deleted = app.delete("/api/user").by(&app.token("ada")).send().await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text());
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_grant_whose_answer_was_lost_can_be_repeated(pool: PgPool) {
    let app = TestApp::start(pool).await;
    app.balance("ada").await;
    app.hang_up_at_commits_of("ledger").await;
    let grant = ["grant", "ada", "30", "--note", "an outage"];
    let lost = admin(&app, &grant).await.unwrap_err().to_string();
    sqlx::raw_sql("drop trigger hangs_up on ledger").execute(&app.pool).await.unwrap();
    let (says, reference) = lost.split_once(" --reference ").unwrap();
    assert_eq!(says, "the balance may have changed; repeat the command with");
    let repeated = [&grant[..], &["--reference", reference]].concat();
    for is_new in [true, false] {
        assert_eq!(admin(&app, &repeated).await.unwrap().json["isNew"], is_new);
    }
    assert_eq!(app.balance("ada").await, (50, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn accounts_survive_another_url_of_the_identity_provider(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    app.balance("ada").await;
    admin(&app, &["grant", "ada", "30", "--note", "an outage"]).await.unwrap();
    let url = app.issuer.url.as_str();
    let moved = admin(&app, &["issuer", url, "https://old.test"]).await.unwrap();
    assert!(moved.is_good && moved.json["changed"] == 1, "{}", moved.text);
    // Signs in before the operator thinks of it.
    assert_eq!(app.balance("ada").await, (20, 0));

    let back = ["issuer", "https://old.test", url];
    let refused = admin(&app, &back).await.unwrap();
    assert!(!refused.is_good && refused.text.contains("20 credits"), "{}", refused.text);
    assert_eq!(app.balance("ada").await, (20, 0));
    // Somebody who is new keeps their account.
    app.balance("eve").await;
    admin(&app, &["grant", "eve", "7", "--note", "a gift"]).await.unwrap();
    let moved = admin(&app, &["issuer", "https://old.test", url, "--set-aside"]).await.unwrap();
    assert!(moved.is_good && moved.text.contains("Set aside"), "{}", moved.text);
    assert_eq!((app.balance("ada").await, app.balance("eve").await), ((50, 0), (27, 0)));

    let nobody = admin(&app, &back).await.unwrap();
    assert!(!nobody.is_good && nobody.text.starts_with("No account has"), "{}", nobody.text);
    for wrong in [["issuer", "deleted", url], ["issuer", url, "deleted"], ["issuer", url, url]] {
        admin(&app, &wrong).await.unwrap_err();
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_operator_lists_retries_and_ends_jobs(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let ada = app.token("ada");
    let image = app.upload("ada").await;
    let run = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    app.post(&run).by(&ada).asynchronously().send().await;
    let job = app.claim().await.unwrap().id;
    let failure = Failure { code: "worker_crashed".into(), detail: "The worker crashed.".into() };
    app.fail(job, &failure).await;
    let id = job.to_string();

    let dead = admin(&app, &["jobs", "failed"]).await.unwrap();
    assert!(dead.text.contains(&id) && dead.text.contains("worker_crashed: The worker crashed."));
    assert_eq!(admin(&app, &["jobs", "dead", "--code", "x"]).await.unwrap().json, json!([]));
    let again = admin(&app, &["jobs", "retry", &id]).await.unwrap().json["job"]["id"].clone();
    assert_eq!(app.balance("ada").await, (20, 5));
    let twice = admin(&app, &["jobs", "retry", &id]).await.unwrap().json;
    assert_eq!((&twice["isNew"], &twice["job"]["id"]), (&json!(false), &again));
    let again = again.as_str().unwrap();
    admin(&app, &["jobs", "fail", again, "--reason", "We are moving"]).await.unwrap();
    assert_eq!(app.balance("ada").await, (20, 0));
    let ended = app.get(&format!("/api/jobs/{again}")).by(&ada).send().await.json();
    assert_eq!(ended["failure"], json!({"code": "ended_by_operator", "detail": "We are moving"}));
    let over = admin(&app, &["jobs", "fail", again, "--reason", "x"]).await.unwrap_err();
    assert_eq!(over.to_string(), "this job does not exist or has already ended");
    app.delete(&format!("/api/images/{image}")).by(&ada).send().await;
    let gone = admin(&app, &["jobs", "retry", &id]).await.unwrap_err();
    assert!(format!("{gone:#}").ends_with("its picture was deleted"), "{gone:#}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn many_failed_jobs_are_retried_without_those_that_nobody_needs(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let ada = app.token("ada");
    let fail = async |image: &str, code: &str| {
        let run = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
        app.post(&run).by(&ada).asynchronously().send().await;
        let job = app.claim().await.unwrap().id;
        app.fail(job, &Failure { code: code.into(), detail: "No.".into() }).await;
        job.to_string()
    };
    let (impatient, patient) = (app.upload("ada").await, app.upload("ada").await);
    let (expiring, ended, broken) =
        (app.upload("ada").await, app.upload("ada").await, app.upload("ada").await);
    let clicks = [fail(&impatient, "model_failed").await, fail(&impatient, "model_failed").await];
    let waits = fail(&patient, "model_failed").await;
    let unseen = fail(&expiring, "model_failed").await;
    fail(&ended, "ended_by_operator").await;
    fail(&broken, "image_unreadable").await;
    sqlx::query("update images set expires_at = now() + interval '1 hour' where id::text = $1")
        .bind(&expiring)
        .execute(&app.pool)
        .await
        .unwrap();

    let all = ["jobs", "retry", "--since", "1h"];
    let retried = admin(&app, &all).await.unwrap();
    let refused = &retried.json["refused"];
    assert_eq!(retried.json["queued"].as_array().unwrap().len(), 2, "{}", retried.text);
    let reason = |job: &str| {
        let found = refused.as_array().unwrap().iter().find(|one| one["job"] == job);
        found.map_or("", |one| one["reason"].as_str().unwrap())
    };
    assert!(reason(&clicks[0]).contains("only the last failure"), "{}", retried.text);
    assert!(reason(&unseen).contains("expires"), "{}", retried.text);
    assert_eq!(refused.as_array().unwrap().len(), 4, "{}", retried.text);
    assert_eq!((reason(&clicks[1]), reason(&waits)), ("", ""));
    assert_eq!(app.balance("ada").await, (20, 10));
    let again = admin(&app, &all).await.unwrap().json;
    assert_eq!((&again["queued"], &again["earlier"]), (&json!([]), &json!(2)));
    let named = admin(&app, &[&all[..], &["--code", "ended_by_operator"]].concat()).await;
    assert_eq!(named.unwrap().json["queued"].as_array().unwrap().len(), 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failed_job_whose_owner_ran_it_again_is_not_retried_with_others(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (ada, image) = (app.token("ada"), app.upload("ada").await);
    let run = format!("/api/rmbg-images/remove-bg-ai?imageId={image}");
    app.post(&run).by(&ada).asynchronously().send().await;
    let job = app.claim().await.unwrap().id;
    app.fail(job, &Failure { code: "model_failed".into(), detail: "No.".into() }).await;
    let all = ["jobs", "retry", "--since", "1h"];
    // Another factor is another run.
    let other = format!("/api/upscale/upscale-ai-2?imageId={image}");
    app.post(&other).by(&ada).asynchronously().send().await;
    app.post(&run).by(&ada).asynchronously().send().await;
    let retried = admin(&app, &all).await.unwrap();
    assert_eq!(retried.json["queued"], json!([]), "{}", retried.text);
    assert!(retried.text.contains("its owner has run it again"), "{}", retried.text);
    // One job is retried, because the operator names it.
    assert!(admin(&app, &["jobs", "retry", &job.to_string()]).await.unwrap().is_good);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_operator_lists_the_workers(pool: PgPool) {
    let app = TestApp::start(pool).await;
    assert!(admin(&app, &["nodes"]).await.unwrap().text.starts_with("No worker"));
    sqlx::query(
        r"insert into workers (id, name, device, models, slots, version, seen_at, stopped_at)
           values (gen_random_uuid(), 'gpu-1', 'cuda', $1, 4, '0.1.0', now(), null),
                  (gen_random_uuid(), 'gpu-2', 'cpu', '[]', 1, '0.1.0', now() - interval '5 minutes', null),
                  (gen_random_uuid(), 'gpu-3', 'cpu', '[]', 1, '0.1.0', now(), now())",
    )
    .bind(json!([{"tool": "upscale", "tier": "paid", "model": "x4plus", "sha256": "0"}]))
    .execute(&app.pool)
    .await
    .unwrap();
    let nodes = admin(&app, &["workers"]).await.unwrap();
    let states: Vec<_> = nodes.json.as_array().unwrap().iter().map(|node| &node["state"]).collect();
    assert_eq!(states, ["live", "silent", "stopped"]);
    let lines: Vec<_> = nodes.text.lines().collect();
    assert!(lines[1].contains("gpu-1") && lines[1].contains("cuda") && lines[1].contains("x4plus"));
    assert!(lines[2].contains("gpu-2") && lines[2].contains("silent"));
    assert!(lines[3].contains("gpu-3") && lines[3].contains("stopped"));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deletions_are_repeated_only_from_another_database_with_the_secret_of_the_api(
    pool: PgPool,
) {
    let app = TestApp::start(pool).await;
    let own = app.pool.connect_options().to_url_lossy();
    for (lost, secret, reason) in [
        (own.as_str(), "a secret of the tests", "it must name the one from before"),
        (own.as_str(), "short", "RETOUCH_URL_SECRET must have at least 16 bytes"),
        (
            "nonsense",
            "a secret of the tests",
            "connecting to RETOUCH_LOST_DATABASE_URL: not a valid Postgres URL",
        ),
    ] {
        let lost = format!("--lost-database-url={lost}");
        let refused = admin(&app, &["deletions", &lost, "--url-secret", secret]).await.unwrap_err();
        assert!(with_causes(refused.as_ref()).contains(reason), "{refused:#}");
    }
}

/// Runs the real program.
fn program(app: &TestApp, words: &[&str]) -> Output {
    let database = app.pool.connect_options().to_url_lossy();
    Command::new(env!("CARGO_BIN_EXE_retouch-api"))
        .arg("admin")
        .args(words)
        .env("DATABASE_URL", database.as_str())
        .env("S3_ENDPOINT", app.bucket.config.s3_endpoint.clone().unwrap())
        .env("S3_BUCKET", "test")
        .env("S3_ACCESS_KEY_ID", "test")
        .env("S3_SECRET_ACCESS_KEY", "test-secret")
        .output()
        .unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_audit_exits_with_1_if_it_finds_a_problem(pool: PgPool) {
    let app = Arc::new(TestApp::start(pool).await);
    let (image, _) = run_a_tool(&app, "ada").await;
    let good = program(&app, &["audit"]);
    let said = String::from_utf8_lossy(&good.stdout).into_owned();
    assert_eq!(
        (good.status.code(), said.trim()),
        (Some(0), "No problems found in the books and 5 objects.")
    );
    assert!(String::from_utf8_lossy(&good.stderr).contains("Audited"), "the audit is logged");

    let key = retouch_core::storage::image_key(image.parse().unwrap());
    app.bucket.storage.delete(&key).await.unwrap();
    let bad = program(&app, &["audit", "--json"]);
    assert_eq!(bad.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&bad.stdout).unwrap();
    assert_eq!(said["findings"], json!([{"finding": "missing_object", "key": key}]));
    let books = admin(&app, &["books"]).await.unwrap();
    assert_eq!((books.text.as_str(), books.is_good), ("No problems found in the books.", true));
    let unknown = program(&app, &["user", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&unknown.stderr).trim(), "retouch-api: no account matches");
}
