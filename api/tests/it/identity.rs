//! Who is let in: only tokens that the provider signed, for us, now.

use axum::http::StatusCode;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use retouch_local::issuer::Key;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{AUDIENCE, TestApp};

const INVALID: &str = "Authentication token is not valid";

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_first_call_creates_the_user_with_twenty_credits(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let token = app.token("ada");
    let first = app.get("/api/user/get").by(&token).send().await;
    assert_eq!(first.status, StatusCode::OK);
    let user = first.json();
    assert_eq!(user["credits"], 20);
    assert_eq!(user["email"], "ada@example.test");
    assert_eq!(app.get("/api/user/get").by(&token).send().await.json()["id"], user["id"]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_missing_token_is_said_to_be_missing(pool: PgPool) {
    let app = TestApp::start(pool).await;
    for path in
        ["/api/user/get", "/api/images", "/api/jobs", "/api/rmbg-images/remove-bg-ai?imageId=x"]
    {
        let answer = app.get(path).send().await;
        answer.is_problem(401, "Authentication token is missing.");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    for header in ["", "Bearer", "Bearer ", "Basic YTpi"] {
        let answer = app.get("/api/user/get").header("authorization", header).send().await;
        answer.is_problem(401, "Authentication token is missing.");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_token_that_is_not_for_us_or_not_true_is_refused(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let good = app.issuer.claims("ada", AUDIENCE);
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        app.issuer.sign(Key::First, &claims)
    };
    let now = jsonwebtoken::get_current_timestamp();
    let refused = [
        ("wrong audience", with("aud", json!("other-api")), INVALID),
        ("no audience", with("aud", Value::Null), INVALID),
        ("wrong issuer", with("iss", json!("https://evil.test")), INVALID),
        ("expired", with("exp", json!(now - 120)), "Authentication token has expired"),
        ("not yet valid", with("nbf", json!(now + 300)), INVALID),
        ("no expiry", with("exp", Value::Null), INVALID),
        ("an id token", with("nonce", json!("n")), INVALID),
        ("another use", with("token_use", json!("id")), INVALID),
        ("nobody", with("sub", json!("")), INVALID),
        ("an unpublished key", app.issuer.sign(Key::Second, &good), INVALID),
        ("no token at all", "abc".into(), INVALID),
        ("opaque", "a".repeat(43), INVALID),
    ];
    for (what, token, detail) in refused {
        let answer = app.get("/api/user/get").by(&token).send().await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
        answer.is_problem(401, detail);
    }
    let users: i64 =
        sqlx::query_scalar("select count(*) from users").fetch_one(&app.pool).await.unwrap();
    assert_eq!(users, 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_algorithm_comes_from_the_key_and_never_from_the_token(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let claims = app.issuer.claims("ada", AUDIENCE);
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("first".into());
    // The classic: the public key as the secret of a symmetric signature.
    let forged = app.issuer.sign_as(&header, &EncodingKey::from_secret(b"public key"), &claims);
    app.get("/api/user/get").by(&forged).send().await.is_problem(401, INVALID);
    let unsigned = {
        use base64::Engine;
        let part = |value: &Value| {
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string())
        };
        format!("{}.{}.", part(&json!({"alg": "none", "kid": "first"})), part(&claims))
    };
    app.get("/api/user/get").by(&unsigned).send().await.is_problem(401, INVALID);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_an_audience_the_token_must_name_our_client(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--oidc-audience=", "--oidc-client-id=our-client"]).await;
    let mut claims = app.issuer.claims("ada", "account");
    claims["email"] = Value::Null;
    let with = |name: &str, value: &str| {
        let mut claims = claims.clone();
        claims[name] = json!(value);
        app.issuer.sign(Key::First, &claims)
    };
    // Amazon Cognito, Keycloak, and a provider that writes the client into `aud`.
    for (name, ours) in [("client_id", "our-client"), ("azp", "our-client"), ("aud", "our-client")]
    {
        let answer = app.get("/api/user/get").by(&with(name, ours)).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{name}");
    }
    app.get("/api/user/get").by(&with("client_id", "other")).send().await.is_problem(401, INVALID);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_address_that_the_token_does_not_say_comes_from_the_provider_about_the_same_person(
    pool: PgPool,
) {
    let app = TestApp::start(pool).await;
    let quiet = |subject: &str| {
        let mut claims = app.issuer.claims(subject, AUDIENCE);
        claims.as_object_mut().unwrap().remove("email");
        app.issuer.sign(Key::First, &claims)
    };
    let email = |answer: Value| answer["email"].clone();
    app.issuer.set_userinfo(json!({"sub": "ada", "email": "ada@real.test"}));
    assert_eq!(
        email(app.get("/api/user/get").by(&quiet("ada")).send().await.json()),
        "ada@real.test"
    );
    assert_eq!(email(app.get("/api/user/get").by(&quiet("eve")).send().await.json()), Value::Null);
    app.issuer.set_userinfo(Value::Null);
    let refused = app.get("/api/user/get").by(&quiet("bob")).send().await;
    assert_eq!((refused.status, email(refused.json())), (StatusCode::OK, Value::Null));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_are_fetched_once_and_callers_cannot_make_us_fetch_more(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let answers = futures::future::join_all(
        (0..30).map(|_| app.get("/api/user/get").by(&app.token("ada")).send()),
    );
    assert!(answers.await.iter().all(|answer| answer.status == StatusCode::OK));
    assert_eq!(app.issuer.fetches(), 1);
    let claims = app.issuer.claims("ada", AUDIENCE);
    for n in 0..200 {
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(format!("made-up-{n}"));
        let forged = EncodingKey::from_rsa_pem(include_bytes!(
            "../../../local/src/issuer/other-test-key.pem"
        ));
        let token = app.issuer.sign_as(&header, &forged.unwrap(), &claims);
        app.get("/api/user/get").by(&token).send().await.is_problem(401, INVALID);
    }
    assert!(app.issuer.fetches() <= 2, "{} fetches", app.issuer.fetches());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_page_is_told_how_to_sign_in_and_what_there_is(pool: PgPool) {
    let app = TestApp::start_with(
        pool,
        &["--oidc-idp-hint-parameter=identity_provider", "--oidc-google-hint=Google"],
    )
    .await;
    let config = app.get("/api/config").send().await.json();
    assert_eq!(config["newUserCredits"], 20);
    assert_eq!(config["limits"]["maxDimension"], 6000);
    assert_eq!(config["limits"]["maxUpscaleDimension"], 1440);
    assert_eq!(config["limits"]["maxPromptLength"], 500);
    let packs: Vec<_> = config["packs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pack| (pack["credits"].clone(), pack["amount"].clone()))
        .collect();
    assert_eq!(
        packs,
        [(json!(20), json!(200)), (json!(55), json!(500)), (json!(180), json!(1500))]
    );
    assert_eq!(
        config["identity"]["providers"],
        json!({"google": "Google", "facebook": null, "password": ""})
    );
    assert_eq!(config["tools"][0]["costs"], json!([{"factor": null, "credits": 5}]));
    assert_eq!(config["tools"][0]["available"], false, "no worker has reported yet");
}
