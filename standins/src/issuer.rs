//! An identity provider for tests: publishes keys, signs any claims, and misbehaves on request.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The first key pair. It exists for these tests only and protects nothing.
const KEY: &str = include_str!("issuer/test-key.pem");
/// The public half of the first key pair.
pub const PUBLIC_KEY: &str = include_str!("issuer/test-key.pub.pem");
/// The second key pair, for key rotation and forged tokens.
const OTHER_KEY: &str = include_str!("issuer/other-test-key.pem");

/// The provider. Clones share it.
#[derive(Clone)]
pub struct Issuer {
    /// The address, which is also the `iss` claim.
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    published: Mutex<Vec<Jwk>>,
    key_fetches: AtomicUsize,
    userinfo: Mutex<Value>,
    behavior: Mutex<Behavior>,
    requests: AtomicUsize,
}

/// How the provider responds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Behavior {
    /// Correctly.
    #[default]
    Normal,
    /// With status 500.
    ServerError,
    /// With status 200 and a body that is not JSON.
    InvalidJson,
    /// With an empty key set.
    NoKeys,
    /// With keys of unknown types before its own.
    UnknownKeyTypes,
    /// Correctly, followed by 16 MiB of spaces.
    Oversized,
    /// Correctly, after a delay.
    Slow(Duration),
    /// With redirects to this address.
    Redirect(String),
    /// With the discovery document of another issuer.
    WrongIssuer,
    /// Never.
    Hang,
}

/// A key pair of the provider.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    /// Published from the start.
    First,
    /// Published by [`Issuer::publish_second_key`].
    Second,
}

impl Key {
    fn pem(self) -> &'static str {
        match self {
            Self::First => KEY,
            Self::Second => OTHER_KEY,
        }
    }

    fn id(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }

    fn encoding(self) -> EncodingKey {
        EncodingKey::from_rsa_pem(self.pem().as_bytes()).expect("a valid key")
    }

    fn jwk(self) -> Jwk {
        let mut jwk =
            Jwk::from_encoding_key(&self.encoding(), Algorithm::RS256).expect("a public key");
        jwk.common.key_id = Some(self.id().to_owned());
        jwk
    }
}

impl Issuer {
    /// Starts the provider on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let issuer = Self {
            url: url.clone(),
            shared: Arc::new(Shared {
                published: Mutex::new(vec![Key::First.jwk()]),
                key_fetches: AtomicUsize::new(0),
                userinfo: Mutex::new(Value::Null),
                behavior: Mutex::default(),
                requests: AtomicUsize::new(0),
            }),
        };
        let discovery = json!({
            "issuer": url,
            "jwks_uri": format!("{url}/jwks"),
            "userinfo_endpoint": format!("{url}/userinfo"),
        });
        let app = axum::Router::new()
            .route("/.well-known/openid-configuration", get(move || async move { Json(discovery) }))
            .route("/jwks", get(jwks))
            .route("/userinfo", get(userinfo))
            .layer(middleware::from_fn_with_state(issuer.shared.clone(), misbehave))
            .with_state(issuer.shared.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener.into_std().expect("a listener"));
                axum::serve(listener.expect("a listener"), app).await
            })
        });
        issuer
    }

    /// Returns the claims of a valid access token, which expires in an hour.
    pub fn claims(&self, subject: &str, audience: &str) -> Value {
        let now = jsonwebtoken::get_current_timestamp();
        json!({
            "iss": self.url, "sub": subject, "aud": audience, "iat": now, "exp": now + 3600,
            "email": format!("{subject}@example.test"), "scope": "openid email",
        })
    }

    pub fn sign(&self, key: Key, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(key.id().to_owned());
        header.typ = Some("at+jwt".into());
        jsonwebtoken::encode(&header, claims, &key.encoding()).expect("signed")
    }

    /// Signs `claims` with any header and key, for tokens that must be rejected.
    pub fn sign_as(&self, header: &Header, key: &EncodingKey, claims: &Value) -> String {
        jsonwebtoken::encode(header, claims, key).expect("signed")
    }

    /// Returns a valid access token.
    pub fn token(&self, subject: &str, audience: &str) -> String {
        self.sign(Key::First, &self.claims(subject, audience))
    }

    pub fn publish_second_key(&self) {
        *self.shared.published.lock().expect("no panic") =
            vec![Key::First.jwk(), Key::Second.jwk()];
    }

    /// Publishes only the second key.
    pub fn withdraw_first_key(&self) {
        *self.shared.published.lock().expect("no panic") = vec![Key::Second.jwk()];
    }

    pub fn set_behavior(&self, behavior: Behavior) {
        *self.shared.behavior.lock().expect("no panic") = behavior;
    }

    pub fn request_count(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    pub fn key_fetches(&self) -> usize {
        self.shared.key_fetches.load(Ordering::SeqCst)
    }

    /// Sets the response of `/userinfo`; null makes it 401.
    pub fn set_userinfo(&self, userinfo: Value) {
        *self.shared.userinfo.lock().expect("no panic") = userinfo;
    }
}

async fn misbehave(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    shared.requests.fetch_add(1, Ordering::SeqCst);
    let behavior = shared.behavior.lock().expect("no panic").clone();
    let path = request.uri().path().to_owned();
    let json = [(header::CONTENT_TYPE, "application/json")];
    match behavior {
        Behavior::ServerError => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Behavior::InvalidJson => (json, "<html>Welcome!").into_response(),
        Behavior::Oversized => {
            let body = next.run(request).await.into_body();
            let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
            (json, [&body[..], &vec![b' '; 16 * 1024 * 1024]].concat()).into_response()
        }
        Behavior::Slow(delay) => {
            tokio::time::sleep(delay).await;
            next.run(request).await
        }
        Behavior::Redirect(url) => Redirect::temporary(&format!("{url}{path}")).into_response(),
        Behavior::Hang => std::future::pending().await,
        Behavior::WrongIssuer if path.starts_with("/.well-known") => {
            let discovery =
                json!({"issuer": "https://evil.test", "jwks_uri": "https://evil.test/jwks"});
            Json(discovery).into_response()
        }
        Behavior::NoKeys if path == "/jwks" => Json(json!({"keys": []})).into_response(),
        Behavior::UnknownKeyTypes if path == "/jwks" => {
            let keys = shared.published.lock().expect("no panic").clone();
            let mut keys: Vec<Value> = keys.iter().map(|key| json!(key)).collect();
            keys.insert(
                0,
                json!({"kty": "AKP", "alg": "ML-DSA-65", "kid": "later", "pub": "AAAA"}),
            );
            keys.insert(0, json!({"kty": "oct", "kid": "shared", "k": "AAAA"}));
            Json(json!({"keys": keys})).into_response()
        }
        Behavior::Normal | Behavior::WrongIssuer | Behavior::NoKeys | Behavior::UnknownKeyTypes => {
            next.run(request).await
        }
    }
}

async fn jwks(State(shared): State<Arc<Shared>>) -> Json<JwkSet> {
    shared.key_fetches.fetch_add(1, Ordering::SeqCst);
    Json(JwkSet { keys: shared.published.lock().expect("no panic").clone() })
}

async fn userinfo(State(shared): State<Arc<Shared>>) -> Result<Json<Value>, StatusCode> {
    let userinfo = shared.userinfo.lock().expect("no panic").clone();
    if userinfo.is_null() { Err(StatusCode::UNAUTHORIZED) } else { Ok(Json(userinfo)) }
}
