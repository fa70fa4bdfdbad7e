//! The identity provider's keys: when they are fetched, that nobody can make us fetch them more often, and that a
//! provider in trouble locks nobody out who was let in before.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use retouch_standins::issuer::{Issuer, Key, Mood};
use retouch_standins::testing::eventually;
use serde_json::json;
use sqlx::PgPool;

use crate::app::{AUDIENCE, TestApp};

const INVALID: &str = "Authentication token is not valid";
const UNAVAILABLE: &str = "Sign-in is not available at the moment. Try again shortly";

async fn status(app: &TestApp, token: &str) -> StatusCode {
    app.get("/api/user/get").by(token).send().await.status
}

/// A token of Ada, signed with the second key.
fn by_the_second_key(app: &TestApp) -> String {
    app.issuer.sign(Key::Second, &app.issuer.claims("ada", AUDIENCE))
}

/// `token` with another key id: its signature is a true one of something else.
fn with_key_id(token: &str, id: &str) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    let header = json!({"alg": "RS256", "typ": "at+jwt", "kid": id}).to_string();
    format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header))
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_are_fetched_once_and_ten_thousand_unknown_ids_fetch_none(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let token = app.token("ada");
    let answers = futures::future::join_all((0..30).map(|_| status(&app, &token))).await;
    assert!(answers.iter().all(|status| *status == StatusCode::OK));
    assert_eq!((app.issuer.fetches(), app.issuer.asked()), (1, 2));
    let unknown = async |from: u32, count: u32| {
        for batch in (from..from + count).collect::<Vec<_>>().chunks(100) {
            let refused = batch.iter().map(|n| {
                let token = with_key_id(&token, &format!("made-up-{n}"));
                let app = &app;
                async move { status(app, &token).await }
            });
            let refused = futures::future::join_all(refused).await;
            assert!(refused.iter().all(|status| *status == StatusCode::UNAUTHORIZED));
        }
    };
    unknown(0, 10_000).await;
    assert_eq!(app.issuer.fetches(), 1, "ten seconds have not passed");
    for round in 1..4 {
        app.clock.advance(TimeDelta::seconds(10));
        unknown(round * 100, 100).await;
        assert_eq!(app.issuer.fetches(), 1 + round as usize);
    }
    assert_eq!(status(&app, &token).await, StatusCode::OK);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_new_key_is_taken_within_ten_seconds_and_the_old_one_while_it_is_published(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (old, new) = (app.token("ada"), by_the_second_key(&app));
    assert_eq!(status(&app, &old).await, StatusCode::OK);
    app.get("/api/user/get").by(&new).send().await.is_problem(401, INVALID);
    app.issuer.rotate();
    app.clock.advance(TimeDelta::seconds(10));
    assert_eq!((status(&app, &new).await, app.issuer.fetches()), (StatusCode::OK, 2));
    assert_eq!((status(&app, &old).await, app.issuer.fetches()), (StatusCode::OK, 2));
    app.issuer.retire_the_first();
    app.clock.advance(TimeDelta::hours(1));
    app.get("/api/user/get").by(&old).send().await.is_problem(401, INVALID);
    assert_eq!((status(&app, &new).await, app.issuer.fetches()), (StatusCode::OK, 3));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_are_kept_when_a_later_fetch_fails(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let evil = Issuer::start().await;
    let (good, unknown) = (app.token("ada"), by_the_second_key(&app));
    assert_eq!(status(&app, &good).await, StatusCode::OK);
    let moods = [
        Mood::Broken,
        Mood::Nonsense,
        Mood::NoKeys,
        Mood::SomebodyElses,
        Mood::Endless,
        Mood::Elsewhere(evil.url.clone()),
    ];
    for mood in moods {
        app.issuer.set_mood(mood.clone());
        app.clock.advance(TimeDelta::hours(1));
        let before = app.issuer.asked();
        assert_eq!(status(&app, &good).await, StatusCode::OK, "{mood:?}");
        assert!(app.issuer.asked() > before, "{mood:?}: the provider was asked");
        app.get("/api/user/get").by(&unknown).send().await.is_problem(401, INVALID);
    }
    assert_eq!(evil.asked(), 0, "a redirect is not followed");
    app.issuer.set_mood(Mood::Well);
    app.issuer.rotate();
    app.clock.advance(TimeDelta::seconds(10));
    assert_eq!(status(&app, &unknown).await, StatusCode::OK, "all is well again");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_provider_that_hangs_locks_nobody_out_whose_key_is_known(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let token = app.token("ada");
    assert_eq!(status(&app, &token).await, StatusCode::OK);
    app.issuer.set_mood(Mood::Silent);
    app.clock.advance(TimeDelta::hours(1));
    let began = Instant::now();
    let answers = futures::future::join_all((0..20).map(|_| status(&app, &token))).await;
    assert!(answers.iter().all(|status| *status == StatusCode::OK));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_provider_that_is_not_there_yet_is_asked_again_until_it_is(pool: PgPool) {
    for mood in [Mood::Broken, Mood::NoKeys, Mood::Endless, Mood::SomebodyElses] {
        let app = TestApp::start(pool.clone()).await;
        app.issuer.set_mood(mood.clone());
        let token = app.token("ada");
        for _ in 0..3 {
            let answer = app.get("/api/user/get").by(&token).send().await;
            answer.is_problem(503, UNAVAILABLE);
            assert_eq!(answer.header("retry-after"), "10");
        }
        let asked = app.issuer.asked();
        assert!(asked <= 2, "{mood:?}: asked {asked} times at once");
        assert_eq!(app.get("/readyz").send().await.json()["identityKeys"], false);
        app.issuer.set_mood(Mood::Well);
        app.get("/api/user/get").by(&token).send().await.is_problem(503, UNAVAILABLE);
        app.clock.advance(TimeDelta::seconds(10));
        assert_eq!(status(&app, &token).await, StatusCode::OK, "{mood:?}");
        assert_eq!(app.get("/readyz").send().await.json()["identityKeys"], true);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn whoever_hangs_up_does_not_keep_the_others_from_the_keys(pool: PgPool) {
    let app = TestApp::start(pool).await;
    app.issuer.set_mood(Mood::Slow(Duration::from_millis(200)));
    let token = app.token("ada");
    let hung_up = tokio::time::timeout(Duration::from_millis(50), status(&app, &token)).await;
    assert!(hung_up.is_err(), "the provider was too quick for this test");
    eventually(Duration::from_secs(5), "the keys", || async {
        app.app.authenticator.is_ready().await.then_some(())
    })
    .await;
    assert_eq!((status(&app, &token).await, app.issuer.fetches()), (StatusCode::OK, 1));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_of_an_unknown_kind_hides_no_other(pool: PgPool) {
    let app = TestApp::start(pool).await;
    app.issuer.set_mood(Mood::UnknownKindsToo);
    assert_eq!(status(&app, &app.token("ada")).await, StatusCode::OK);
    let symmetric = with_key_id(&app.token("ada"), "shared");
    app.get("/api/user/get").by(&symmetric).send().await.is_problem(401, INVALID);
}
