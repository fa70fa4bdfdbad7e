//! The identity provider's published keys: cached, refreshed when they age or when a token names an
//! unknown one, and kept when the provider does not answer.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::Client;
use retouch_core::Clock;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex, RwLock};

use super::ask::ask;
use super::seen::Seen;
use crate::error::ApiError;

/// How long keys count as fresh.
const FRESH: TimeDelta = TimeDelta::hours(1);
/// The shortest time between two fetches: callers choose the key ids of their tokens, and must not choose
/// how often we fetch.
const PAUSE: TimeDelta = TimeDelta::seconds(10);
/// How long the owner of a good token waits for newer keys, when those at hand have aged.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the keys come from.
pub(super) struct Provider {
    pub issuer: String,
    pub http: Client,
}

/// A key and the only algorithm it may be used with.
#[derive(Clone)]
pub(super) struct Key {
    id: Option<String>,
    pub decoding: DecodingKey,
    pub algorithm: Algorithm,
    pub seen: Arc<Seen>,
}

#[derive(Default)]
struct Known {
    keys: Vec<Key>,
    userinfo_endpoint: Option<String>,
    fetched: Option<DateTime<Utc>>,
}

/// The cache; clones are the same.
#[derive(Clone)]
pub(super) struct Keys(Arc<Cache>);

struct Cache {
    provider: Provider,
    clock: Clock,
    known: RwLock<Known>,
    /// When a fetch last ended; holding the lock is being the one who fetches.
    tried: Arc<Mutex<Option<DateTime<Utc>>>>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
}

/// What is published as keys. One that is none, or of a kind that is not known here, hides no other.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Keys {
    pub fn new(provider: Provider, clock: Clock) -> Self {
        Self(Arc::new(Cache { provider, clock, known: RwLock::default(), tried: Arc::default() }))
    }

    /// The key called `id`; without an id, the only one there is.
    pub async fn find(&self, id: Option<&str>) -> Result<Option<Key>, ApiError> {
        let (found, fresh) = self.look(id).await;
        if found.is_none() {
            self.refresh(id).await;
        } else if fresh || self.0.tried.try_lock().is_err() {
            return Ok(found);
        } else {
            // A provider that hangs must not lock out those whose key is known.
            let _ = tokio::time::timeout(PATIENCE, self.refresh(id)).await;
        }
        let (found, _) = self.look(id).await;
        if found.is_none() && !self.are_loaded().await {
            return Err(ApiError::Unavailable {
                detail: "Sign-in is not available at the moment. Try again shortly".into(),
                retry_after_secs: PAUSE.num_seconds().unsigned_abs(),
            });
        }
        Ok(found)
    }

    pub async fn are_loaded(&self) -> bool {
        self.0.known.read().await.fetched.is_some()
    }

    pub async fn userinfo_endpoint(&self) -> Option<String> {
        self.0.known.read().await.userinfo_endpoint.clone()
    }

    async fn look(&self, id: Option<&str>) -> (Option<Key>, bool) {
        let known = self.0.known.read().await;
        let found = match id {
            Some(id) => known.keys.iter().find(|key| key.id.as_deref() == Some(id)),
            None if known.keys.len() == 1 => known.keys.first(),
            None => None,
        };
        (found.cloned(), known.fetched.is_some_and(|fetched| self.is_within(FRESH, fetched)))
    }

    /// Whether `time` is no longer ago than `span`. A clock that was set back makes nothing last longer.
    fn is_within(&self, span: TimeDelta, time: DateTime<Utc>) -> bool {
        (self.0.clock.now() - time).abs() < span
    }

    async fn refresh(&self, id: Option<&str>) {
        let mut tried = Arc::clone(&self.0.tried).lock_owned().await;
        // Whoever waited for the lock may find that another has just fetched what they need.
        let (found, fresh) = self.look(id).await;
        let too_soon = tried.is_some_and(|tried| self.is_within(PAUSE, tried));
        if (found.is_some() && fresh) || too_soon {
            return;
        }
        let cache = Arc::clone(&self.0);
        // In a task of its own: a caller who hangs up must not keep everybody else from new keys.
        let fetching = tokio::spawn(async move {
            match cache.provider.fetch(&cache.clock).await {
                Ok(known) => *cache.known.write().await = known,
                Err(error) => tracing::warn!("Fetching the identity provider's keys: {error:#}"),
            }
            *tried = Some(cache.clock.now());
        });
        let _ = fetching.await;
    }
}

impl Provider {
    async fn fetch(&self, clock: &Clock) -> anyhow::Result<Known> {
        let address =
            format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let discovery: Discovery = ask(self.http.get(address)).await?;
        anyhow::ensure!(
            discovery.issuer == self.issuer,
            "the provider calls itself {:?}, but OIDC_ISSUER is {:?}",
            discovery.issuer,
            self.issuer
        );
        let set: KeySet = ask(self.http.get(&discovery.jwks_uri)).await?;
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<Key> = keys.filter_map(|key| usable(&key)).collect();
        anyhow::ensure!(!keys.is_empty(), "the provider publishes no key that we can use");
        Ok(Known {
            keys,
            userinfo_endpoint: discovery.userinfo_endpoint,
            fetched: Some(clock.now()),
        })
    }
}

/// The key, if it is a public signing key of a kind we accept.
fn usable(jwk: &Jwk) -> Option<Key> {
    if jwk.common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
        return None;
    }
    let stated = match jwk.common.key_algorithm {
        // An algorithm that signs nothing, such as RSA-OAEP, is no statement to overlook.
        Some(stated) => Some(stated.to_string().parse().ok()?),
        None => None,
    };
    let algorithm = match (&jwk.algorithm, stated) {
        (AlgorithmParameters::RSA(_), Some(Algorithm::PS256)) => Algorithm::PS256,
        (AlgorithmParameters::RSA(_), None | Some(Algorithm::RS256)) => Algorithm::RS256,
        (AlgorithmParameters::EllipticCurve(ec), None | Some(Algorithm::ES256))
            if ec.curve == EllipticCurve::P256 =>
        {
            Algorithm::ES256
        }
        (AlgorithmParameters::OctetKeyPair(_), None | Some(Algorithm::EdDSA)) => Algorithm::EdDSA,
        _ => return None,
    };
    let decoding = DecodingKey::from_jwk(jwk).ok()?;
    Some(Key { id: jwk.common.key_id.clone(), decoding, algorithm, seen: Arc::default() })
}
