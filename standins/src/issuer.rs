//! An identity provider for tests: publishes keys and signs whatever it is asked to, true or not.

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

/// A key pair of the provider; made for these tests, it protects nothing.
const KEY: &str = include_str!("issuer/test-key.pem");
/// The public half of it, which everybody may know.
pub const PUBLIC_KEY: &str = include_str!("issuer/test-key.pub.pem");
/// A second one, to rotate to or to forge with.
const OTHER_KEY: &str = include_str!("issuer/other-test-key.pem");

/// The provider. Clones are the same provider.
#[derive(Clone)]
pub struct Issuer {
    /// Its address, and what it writes into `iss`.
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    published: Mutex<Vec<Jwk>>,
    fetches: AtomicUsize,
    userinfo: Mutex<Value>,
    mood: Mutex<Mood>,
    asked: AtomicUsize,
}

/// How the provider answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// As it should.
    #[default]
    Well,
    /// 500, whatever is asked.
    Broken,
    /// 200, and no JSON.
    Nonsense,
    /// It publishes no key at all.
    NoKeys,
    /// Its keys, among others of kinds that nobody knows yet.
    UnknownKindsToo,
    /// As it should, with many megabytes of nothing behind it.
    Endless,
    /// As it should, after this time.
    Slow(Duration),
    /// It sends everybody elsewhere.
    Elsewhere(String),
    /// Its discovery document is another provider's.
    SomebodyElses,
    /// It takes a call and never answers.
    Silent,
}

/// One of the provider's key pairs.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    /// The one that is published from the start.
    First,
    /// One that is published only after [`Issuer::rotate`].
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
                fetches: AtomicUsize::new(0),
                userinfo: Mutex::new(Value::Null),
                mood: Mutex::default(),
                asked: AtomicUsize::new(0),
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
            .layer(middleware::from_fn_with_state(issuer.shared.clone(), in_this_mood))
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

    /// The claims of a good access token of `subject` for `audience`, good for an hour.
    pub fn claims(&self, subject: &str, audience: &str) -> Value {
        let now = jsonwebtoken::get_current_timestamp();
        json!({
            "iss": self.url, "sub": subject, "aud": audience, "iat": now, "exp": now + 3600,
            "email": format!("{subject}@example.test"), "scope": "openid email",
        })
    }

    /// Signs `claims` as an access token.
    pub fn sign(&self, key: Key, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(key.id().to_owned());
        header.typ = Some("at+jwt".into());
        jsonwebtoken::encode(&header, claims, &key.encoding()).expect("signed")
    }

    /// Signs `claims` with `header`, for tokens that should be refused.
    pub fn sign_as(&self, header: &Header, key: &EncodingKey, claims: &Value) -> String {
        jsonwebtoken::encode(header, claims, key).expect("signed")
    }

    /// A good access token of `subject`.
    pub fn token(&self, subject: &str, audience: &str) -> String {
        self.sign(Key::First, &self.claims(subject, audience))
    }

    /// Publishes the second key beside the first.
    pub fn rotate(&self) {
        *self.shared.published.lock().expect("no panic") =
            vec![Key::First.jwk(), Key::Second.jwk()];
    }

    /// Publishes the second key alone.
    pub fn retire_the_first(&self) {
        *self.shared.published.lock().expect("no panic") = vec![Key::Second.jwk()];
    }

    /// Makes the provider answer like this from now on.
    pub fn set_mood(&self, mood: Mood) {
        *self.shared.mood.lock().expect("no panic") = mood;
    }

    /// How often anything was asked for.
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// How often the keys were fetched.
    pub fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    /// What `/userinfo` answers; null is 401.
    pub fn set_userinfo(&self, answer: Value) {
        *self.shared.userinfo.lock().expect("no panic") = answer;
    }
}

async fn in_this_mood(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    shared.asked.fetch_add(1, Ordering::SeqCst);
    let mood = shared.mood.lock().expect("no panic").clone();
    let path = request.uri().path().to_owned();
    let json = [(header::CONTENT_TYPE, "application/json")];
    match mood {
        Mood::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Nonsense => (json, "<html>Welcome!").into_response(),
        Mood::Endless => {
            let answer = next.run(request).await.into_body();
            let answer = axum::body::to_bytes(answer, usize::MAX).await.expect("a body");
            (json, [&answer[..], &vec![b' '; 16 * 1024 * 1024]].concat()).into_response()
        }
        Mood::Slow(time) => {
            tokio::time::sleep(time).await;
            next.run(request).await
        }
        Mood::Elsewhere(url) => Redirect::temporary(&format!("{url}{path}")).into_response(),
        Mood::Silent => std::future::pending().await,
        Mood::SomebodyElses if path.starts_with("/.well-known") => {
            let theirs =
                json!({"issuer": "https://evil.test", "jwks_uri": "https://evil.test/jwks"});
            Json(theirs).into_response()
        }
        Mood::NoKeys if path == "/jwks" => Json(json!({"keys": []})).into_response(),
        Mood::UnknownKindsToo if path == "/jwks" => {
            let keys = shared.published.lock().expect("no panic").clone();
            let mut keys: Vec<Value> = keys.iter().map(|key| json!(key)).collect();
            keys.insert(
                0,
                json!({"kty": "AKP", "alg": "ML-DSA-65", "kid": "later", "pub": "AAAA"}),
            );
            keys.insert(0, json!({"kty": "oct", "kid": "shared", "k": "AAAA"}));
            Json(json!({"keys": keys})).into_response()
        }
        Mood::Well | Mood::SomebodyElses | Mood::NoKeys | Mood::UnknownKindsToo => {
            next.run(request).await
        }
    }
}

async fn jwks(State(shared): State<Arc<Shared>>) -> Json<JwkSet> {
    shared.fetches.fetch_add(1, Ordering::SeqCst);
    Json(JwkSet { keys: shared.published.lock().expect("no panic").clone() })
}

async fn userinfo(
    State(shared): State<Arc<Shared>>,
) -> Result<Json<Value>, axum::http::StatusCode> {
    let answer = shared.userinfo.lock().expect("no panic").clone();
    if answer.is_null() { Err(axum::http::StatusCode::UNAUTHORIZED) } else { Ok(Json(answer)) }
}
