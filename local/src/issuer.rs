//! An identity provider for tests: publishes keys and signs whatever it is asked to, true or not.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A key pair of the provider; made for these tests, it protects nothing.
const KEY: &str = include_str!("issuer/test-key.pem");
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

    /// How often the keys were fetched.
    pub fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    /// What `/userinfo` answers; null is 401.
    pub fn set_userinfo(&self, answer: Value) {
        *self.shared.userinfo.lock().expect("no panic") = answer;
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
