//! The identity provider's keys: when they are fetched, that clients cannot trigger more fetches, and that users with
//! known keys stay signed in while the provider fails.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use retouch_standins::issuer::{Behavior, Issuer, Key};
use retouch_standins::testing::eventually;
use serde_json::json;
use sqlx::PgPool;

use crate::app::{AUDIENCE, TestApp};

const INVALID: &str = "Authentication token is invalid.";
const UNAVAILABLE: &str = "Sign-in is temporarily unavailable. Please try again shortly.";

async fn status(app: &TestApp, token: &str) -> StatusCode {
    app.get("/api/user/get").by(token).send().await.status
}

/// Returns a token of Ada, signed with the second key.
fn by_the_second_key(app: &TestApp) -> String {
    app.issuer.sign(Key::Second, &app.issuer.claims("ada", AUDIENCE))
}

/// Replaces the key id of a token, which invalidates its signature.
fn with_key_id(token: &str, id: &str) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    let header = json!({"alg": "RS256", "typ": "at+jwt", "kid": id}).to_string();
    format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header))
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_are_fetched_once_and_unknown_key_ids_do_not_trigger_more_fetches(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let token = app.token("ada");
    let answers = futures::future::join_all((0..30).map(|_| status(&app, &token))).await;
    assert!(answers.iter().all(|status| *status == StatusCode::OK));
    assert_eq!((app.issuer.key_fetches(), app.issuer.request_count()), (1, 2));
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
    assert_eq!(app.issuer.key_fetches(), 1, "ten seconds have not passed");
    for round in 1..4 {
        app.clock.advance(TimeDelta::seconds(10));
        unknown(round * 100, 100).await;
        assert_eq!(app.issuer.key_fetches(), 1 + round as usize);
    }
    assert_eq!(status(&app, &token).await, StatusCode::OK);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_new_key_is_accepted_within_ten_seconds_and_the_old_one_until_withdrawn(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (old, new) = (app.token("ada"), by_the_second_key(&app));
    assert_eq!(status(&app, &old).await, StatusCode::OK);
    app.get("/api/user/get").by(&new).send().await.is_problem(401, INVALID);
    app.issuer.publish_second_key();
    app.clock.advance(TimeDelta::seconds(10));
    assert_eq!((status(&app, &new).await, app.issuer.key_fetches()), (StatusCode::OK, 2));
    assert_eq!((status(&app, &old).await, app.issuer.key_fetches()), (StatusCode::OK, 2));
    app.issuer.withdraw_first_key();
    app.clock.advance(TimeDelta::hours(1));
    app.get("/api/user/get").by(&old).send().await.is_problem(401, INVALID);
    assert_eq!((status(&app, &new).await, app.issuer.key_fetches()), (StatusCode::OK, 3));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_stay_valid_when_a_refresh_fails(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let evil = Issuer::start().await;
    let (good, unknown) = (app.token("ada"), by_the_second_key(&app));
    assert_eq!(status(&app, &good).await, StatusCode::OK);
    let behaviors = [
        Behavior::ServerError,
        Behavior::InvalidJson,
        Behavior::NoKeys,
        Behavior::WrongIssuer,
        Behavior::Oversized,
        Behavior::Redirect(evil.url.clone()),
    ];
    for behavior in behaviors {
        app.issuer.set_behavior(behavior.clone());
        app.clock.advance(TimeDelta::hours(1));
        let before = app.issuer.request_count();
        assert_eq!(status(&app, &good).await, StatusCode::OK, "{behavior:?}");
        assert!(
            app.issuer.request_count() > before,
            "{behavior:?}: no request reached the provider"
        );
        // It may be new, and with a 401, the page would end the session.
        app.get("/api/user/get").by(&unknown).send().await.is_problem(503, UNAVAILABLE);
    }
    assert_eq!(evil.request_count(), 0, "redirects must not be followed");
    app.issuer.set_behavior(Behavior::Normal);
    app.issuer.publish_second_key();
    app.clock.advance(TimeDelta::seconds(10));
    assert_eq!(status(&app, &unknown).await, StatusCode::OK, "the provider works again");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_hanging_provider_does_not_lock_out_users_whose_key_is_known(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let token = app.token("ada");
    assert_eq!(status(&app, &token).await, StatusCode::OK);
    app.issuer.set_behavior(Behavior::Hang);
    app.clock.advance(TimeDelta::hours(1));
    let began = Instant::now();
    let answers = futures::future::join_all((0..20).map(|_| status(&app, &token))).await;
    assert!(answers.iter().all(|status| *status == StatusCode::OK));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unavailable_provider_is_retried_until_it_responds(pool: PgPool) {
    for behavior in
        [Behavior::ServerError, Behavior::NoKeys, Behavior::Oversized, Behavior::WrongIssuer]
    {
        let app = TestApp::start(pool.clone()).await;
        app.issuer.set_behavior(behavior.clone());
        let token = app.token("ada");
        for _ in 0..3 {
            let answer = app.get("/api/user/get").by(&token).send().await;
            answer.is_problem(503, UNAVAILABLE);
            assert_eq!(answer.header("retry-after"), "10");
        }
        let requests = app.issuer.request_count();
        assert!(requests <= 2, "{behavior:?}: {requests} requests");
        assert_eq!(app.get("/readyz").send().await.json()["identityKeys"], false);
        app.issuer.set_behavior(Behavior::Normal);
        app.get("/api/user/get").by(&token).send().await.is_problem(503, UNAVAILABLE);
        app.clock.advance(TimeDelta::seconds(10));
        assert_eq!(status(&app, &token).await, StatusCode::OK, "{behavior:?}");
        assert_eq!(app.get("/readyz").send().await.json()["identityKeys"], true);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_client_that_disconnects_does_not_abort_the_fetch(pool: PgPool) {
    let app = TestApp::start(pool).await;
    app.issuer.set_behavior(Behavior::Slow(Duration::from_millis(200)));
    let token = app.token("ada");
    let hung_up = tokio::time::timeout(Duration::from_millis(50), status(&app, &token)).await;
    assert!(hung_up.is_err(), "the provider responded too quickly for this test");
    eventually(Duration::from_secs(5), "the keys", || async {
        app.app.authenticator.is_ready().await.then_some(())
    })
    .await;
    assert_eq!((status(&app, &token).await, app.issuer.key_fetches()), (StatusCode::OK, 1));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_of_unknown_types_do_not_affect_the_others(pool: PgPool) {
    let app = TestApp::start(pool).await;
    app.issuer.set_behavior(Behavior::UnknownKeyTypes);
    assert_eq!(status(&app, &app.token("ada")).await, StatusCode::OK);
    let symmetric = with_key_id(&app.token("ada"), "shared");
    app.get("/api/user/get").by(&symmetric).send().await.is_problem(401, INVALID);
}
