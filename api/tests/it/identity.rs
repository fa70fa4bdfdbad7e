//! Token verification: only valid access tokens that the provider signed for this API are accepted.

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use retouch_standins::issuer::{Behavior, Issuer, Key, PUBLIC_KEY};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{AUDIENCE, TestApp};

const INVALID: &str = "Authentication token is invalid.";
/// The provider's published key, and one that it did not publish.
const KEY: &[u8] = include_bytes!("../../../standins/src/issuer/test-key.pem");
const OTHER_KEY: &[u8] = include_bytes!("../../../standins/src/issuer/other-test-key.pem");

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
async fn a_missing_token_has_its_own_error(pool: PgPool) {
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
async fn invalid_tokens_are_rejected(pool: PgPool) {
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
        ("expired", with("exp", json!(now - 120)), "Authentication token has expired."),
        ("not yet valid", with("nbf", json!(now + 300)), INVALID),
        ("no expiry", with("exp", Value::Null), INVALID),
        ("an id token", with("nonce", json!("n")), INVALID),
        ("another use", with("token_use", json!("id")), INVALID),
        ("no subject", with("sub", json!("")), INVALID),
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
async fn the_algorithm_comes_from_the_key_not_from_the_token(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let claims = app.issuer.claims("ada", AUDIENCE);
    assert_eq!(app.get("/api/user/get").by(&app.token("bob")).send().await.status, StatusCode::OK);
    let with = |algorithm| {
        let mut header = Header::new(algorithm);
        header.kid = Some("first".into());
        header
    };
    let mut forged = Vec::new();
    // The public key as the secret of a symmetric signature.
    let body: String = PUBLIC_KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(&body).unwrap();
    for secret in [PUBLIC_KEY.as_bytes(), PUBLIC_KEY.trim().as_bytes(), body.as_bytes(), &der] {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let key = EncodingKey::from_secret(secret);
            forged.push(app.issuer.sign_as(&with(algorithm), &key, &claims));
        }
    }
    // Valid signatures with an algorithm that the key is not published for.
    let own = EncodingKey::from_rsa_pem(KEY).unwrap();
    for algorithm in [Algorithm::RS384, Algorithm::RS512, Algorithm::PS256] {
        forged.push(app.issuer.sign_as(&with(algorithm), &own, &claims));
    }
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let unsigned = format!("{}.{}.", part(&json!({"alg": alg, "kid": "first"})), part(&claims));
        forged.push(format!("{unsigned}AAAA"));
        forged.push(unsigned);
    }
    for token in forged {
        app.get("/api/user/get").by(&token).send().await.is_problem(401, INVALID);
    }
    let good = app.issuer.sign_as(&with(Algorithm::RS256), &own, &claims);
    assert_eq!(app.get("/api/user/get").by(&good).send().await.status, StatusCode::OK);
    let public = DecodingKey::from_rsa_pem(PUBLIC_KEY.as_bytes()).unwrap();
    let mut rules = Validation::new(Algorithm::RS256);
    rules.validate_aud = false;
    jsonwebtoken::decode::<Value>(&good, &public, &rules).expect("the public half of that key");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn keys_in_the_token_header_are_ignored(pool: PgPool) {
    let app = TestApp::start(pool).await;
    assert_eq!(app.get("/api/user/get").by(&app.token("bob")).send().await.status, StatusCode::OK);
    let evil = Issuer::start().await;
    let key = EncodingKey::from_rsa_pem(OTHER_KEY).unwrap();
    let mut header = Header::new(Algorithm::RS256);
    header.kid = Some("first".into());
    header.jwk = Some(Jwk::from_encoding_key(&key, Algorithm::RS256).unwrap());
    header.jku = Some(format!("{}/jwks", evil.url));
    header.x5u = Some(format!("{}/jwks", evil.url));
    let token = app.issuer.sign_as(&header, &key, &app.issuer.claims("ada", AUDIENCE));
    app.get("/api/user/get").by(&token).send().await.is_problem(401, INVALID);
    assert_eq!(evil.request_count(), 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_token_with_critical_extensions_is_rejected(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let key = EncodingKey::from_rsa_pem(KEY).unwrap();
    let mut header = Header::new(Algorithm::RS256);
    header.kid = Some("first".into());
    let claims = app.issuer.claims("ada", AUDIENCE);
    let plain = app.issuer.sign_as(&header, &key, &claims);
    for critical in [vec![], vec!["exp".to_owned()], vec!["b64".to_owned(), "unknown".to_owned()]] {
        header.crit = Some(critical);
        let token = app.issuer.sign_as(&header, &key, &claims);
        app.get("/api/user/get").by(&token).send().await.is_problem(401, INVALID);
    }
    assert_eq!(app.get("/api/user/get").by(&plain).send().await.status, StatusCode::OK);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn id_tokens_are_rejected(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--oidc-audience=", "--oidc-client-id=our-client"]).await;
    // Otherwise valid: signed by the provider, for our client, not expired.
    let claims = app.issuer.claims("ada", "our-client");
    let own = EncodingKey::from_rsa_pem(KEY).unwrap();
    let token = |typ: Option<&str>, name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some("first".into());
        header.typ = typ.map(str::to_owned);
        app.issuer.sign_as(&header, &own, &claims)
    };
    let refused = [
        ("a nonce", token(Some("JWT"), "nonce", json!("n-0S6_WzA2Mj"))),
        ("the hash of an access token", token(Some("JWT"), "at_hash", json!("77QmUPtjPfzWtF2A"))),
        ("the hash of a code", token(Some("JWT"), "c_hash", json!("LDktKdoQak3Pk0cnXxCltA"))),
        ("Amazon Cognito's claim", token(None, "token_use", json!("id"))),
        ("Keycloak's claim", token(Some("JWT"), "typ", json!("ID"))),
        ("Keycloak's claim in refresh tokens", token(Some("JWT"), "typ", json!("Refresh"))),
        ("the type of the header", token(Some("id+jwt"), "x", json!(1))),
        ("the type of a logout token", token(Some("logout+jwt"), "x", json!(1))),
    ];
    for (what, token) in refused {
        let answer = app.get("/api/user/get").by(&token).send().await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
        answer.is_problem(401, INVALID);
    }
    for typ in [None, Some("JWT"), Some("at+jwt"), Some("application/at+jwt")] {
        let answer = app.get("/api/user/get").by(&token(typ, "x", json!(1))).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{typ:?}");
    }
}

/// The claims of real providers' access tokens, without those that all have.
fn shapes(client: &str, audience: &str) -> [(&'static str, Option<&'static str>, Value); 3] {
    [
        (
            "Amazon Cognito",
            None,
            json!({"client_id": client, "token_use": "access", "scope": "openid email", "version": 2,
                "username": "ada", "origin_jti": "0", "jti": "1", "auth_time": 1_772_359_200}),
        ),
        (
            "Keycloak",
            Some("JWT"),
            json!({"azp": client, "aud": [audience, "account"], "typ": "Bearer", "acr": "1", "sid": "2",
                "allowed-origins": ["*"], "realm_access": {"roles": ["offline_access"]},
                "scope": "openid email", "email_verified": true, "email": "ada@keycloak.test"}),
        ),
        (
            "the standard (RFC 9068)",
            Some("at+jwt"),
            json!({"client_id": client, "aud": audience, "scope": "openid email", "jti": "3"}),
        ),
    ]
}

fn in_shape(app: &TestApp, subject: &str, typ: Option<&str>, shape: &Value) -> String {
    let now = jsonwebtoken::get_current_timestamp();
    let mut claims = json!({"iss": app.issuer.url, "sub": subject, "iat": now, "exp": now + 3600});
    claims.as_object_mut().unwrap().extend(shape.as_object().unwrap().clone());
    let mut header = Header::new(Algorithm::RS256);
    header.kid = Some("first".into());
    header.typ = typ.map(str::to_owned);
    app.issuer.sign_as(&header, &EncodingKey::from_rsa_pem(KEY).unwrap(), &claims)
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_an_audience_the_token_must_name_our_client(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--oidc-audience=", "--oidc-client-id=our-client"]).await;
    let call = async |token: String| app.get("/api/user/get").by(&token).send().await;
    for (provider, typ, shape) in shapes("our-client", "some-api") {
        let answer = call(in_shape(&app, "ada", typ, &shape)).await;
        assert_eq!(answer.status, StatusCode::OK, "{provider}: {}", answer.text());
    }
    for (provider, typ, shape) in shapes("other-client", "some-api") {
        let answer = call(in_shape(&app, "ada", typ, &shape)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{provider}");
    }
    // Providers that name the client in `aud`, alone or in a list.
    for aud in [json!("our-client"), json!(["account", "our-client"])] {
        let answer = call(in_shape(&app, "ada", None, &json!({"aud": aud}))).await;
        assert_eq!(answer.status, StatusCode::OK, "{aud}");
    }
    for claims in [json!({}), json!({"aud": []}), json!({"aud": ["our-client2"], "azp": ""})] {
        call(in_shape(&app, "ada", None, &claims)).await.is_problem(401, INVALID);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn with_an_audience_the_token_must_name_it_whatever_the_client(pool: PgPool) {
    let app = TestApp::start(pool).await;
    for (provider, typ, shape) in shapes("another-client", AUDIENCE) {
        let token = in_shape(&app, "ada", typ, &shape);
        let answer = app.get("/api/user/get").by(&token).send().await;
        // Cognito's access tokens have no audience, so installations with Cognito configure none.
        let fits = provider != "Amazon Cognito";
        assert_eq!(answer.status == StatusCode::OK, fits, "{provider}: {}", answer.text());
    }
    for (provider, typ, shape) in shapes("retouch", "some-api") {
        let token = in_shape(&app, "ada", typ, &shape);
        let answer = app.get("/api/user/get").by(&token).send().await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{provider}");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn control_characters_are_rejected_in_subjects_and_dropped_from_emails(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let mut claims = app.issuer.claims("a\0da", AUDIENCE);
    let nobody = app.issuer.sign(Key::First, &claims);
    app.get("/api/user/get").by(&nobody).send().await.is_problem(401, INVALID);
    claims["sub"] = json!("ada");
    claims["email"] = json!("ada@example.test\r\n\0");
    let answer = app.get("/api/user/get").by(&app.issuer.sign(Key::First, &claims)).send().await;
    assert_eq!((answer.status, &answer.json()["email"]), (StatusCode::OK, &Value::Null));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_missing_email_comes_from_userinfo_about_the_same_subject(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let without_email = |subject: &str| {
        let mut claims = app.issuer.claims(subject, AUDIENCE);
        claims.as_object_mut().unwrap().remove("email");
        app.issuer.sign(Key::First, &claims)
    };
    let email = |answer: Value| answer["email"].clone();
    app.issuer.set_userinfo(json!({"sub": "ada", "email": "ada@real.test"}));
    assert_eq!(
        email(app.get("/api/user/get").by(&without_email("ada")).send().await.json()),
        "ada@real.test"
    );
    assert_eq!(
        email(app.get("/api/user/get").by(&without_email("eve")).send().await.json()),
        Value::Null
    );
    app.issuer.set_userinfo(Value::Null);
    let refused = app.get("/api/user/get").by(&without_email("bob")).send().await;
    assert_eq!((refused.status, email(refused.json())), (StatusCode::OK, Value::Null));

    let evil = Issuer::start().await;
    evil.set_userinfo(json!({"sub": "cid", "email": "cid@evil.test"}));
    app.issuer.set_userinfo(json!({"sub": "dan", "email": "dan@real.test"}));
    for (subject, behavior) in [
        ("cid", Behavior::Redirect(evil.url.clone())),
        ("dan", Behavior::Oversized),
        ("eri", Behavior::InvalidJson),
        ("fay", Behavior::ServerError),
    ] {
        app.issuer.set_behavior(behavior.clone());
        let answer = app.get("/api/user/get").by(&without_email(subject)).send().await;
        assert_eq!(
            (answer.status, email(answer.json())),
            (StatusCode::OK, Value::Null),
            "{behavior:?}"
        );
    }
    assert_eq!(evil.request_count(), 0, "no other server receives a token");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn additions_to_the_page_are_in_its_config_and_its_policy(pool: PgPool) {
    let plain = TestApp::start_with(pool.clone(), &[]).await;
    let nothing = serde_json::json!({
        "operatorName": null, "operatorAddress": null, "contactEmail": null, "adTag": null, "rating": null
    });
    assert_eq!(plain.get("/api/config").send().await.json()["site"], nothing);
    let settings = [
        "--operator-name=Pictures Ltd",
        r"--operator-address=1 High Street\nLeeds",
        "--contact-email=help@example.test",
        "--ad-tag-id=AW-1",
        "--ad-conversion=AW-1/x",
        "--rating-service=Stars",
        "--rating-url=https://stars.test/widget?of=us",
    ];
    let app = TestApp::start_with(pool, &settings).await;
    let answer = app.get("/api/config").send().await;
    let policy = answer.header("content-security-policy").to_owned();
    assert!(policy.contains("' https://www.googletagmanager.com; style-src"), "{policy}");
    assert!(policy.contains("https://stars.test; object-src"), "{policy}");
    let site = answer.json()["site"].clone();
    assert_eq!(site["operatorName"], "Pictures Ltd");
    assert_eq!(site["operatorAddress"], "1 High Street\nLeeds");
    assert_eq!(site["contactEmail"], "help@example.test");
    assert_eq!(site["adTag"], serde_json::json!({ "id": "AW-1", "conversion": "AW-1/x" }));
    assert_eq!(site["rating"]["url"], "https://stars.test/widget?of=us");
    let plain = plain.get("/api/config").send().await;
    assert!(!plain.header("content-security-policy").contains("google"));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_config_contains_limits_packs_and_sign_in_options(pool: PgPool) {
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
