//! The identity provider's public keys: cached, refreshed when they are old or a token names an unknown one, and kept
//! if a refresh fails.

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

use super::fetch::fetch;
use super::verified::VerifiedTokens;
use crate::error::ApiError;

/// How long keys count as fresh.
const FRESH_FOR: TimeDelta = TimeDelta::hours(1);
/// The minimum time between two fetches. Clients choose the key ids of their tokens and must not be able to trigger
/// a fetch with each request.
const MIN_FETCH_INTERVAL: TimeDelta = TimeDelta::seconds(10);
/// Maximum wait of a request with a known key for a refresh of old keys.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);

/// The source of the keys.
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
    pub verified: Arc<VerifiedTokens>,
}

#[derive(Default)]
struct Fetched {
    keys: Vec<Key>,
    userinfo_endpoint: Option<String>,
    at: Option<DateTime<Utc>>,
}

/// The key cache. Clones share it.
#[derive(Clone)]
pub(super) struct Keys(Arc<Cache>);

struct Cache {
    provider: Provider,
    clock: Clock,
    fetched: RwLock<Fetched>,
    /// The task that fetches holds the lock.
    last_fetch: Arc<Mutex<Option<LastFetch>>>,
}

/// The last attempt to fetch the keys.
#[derive(Clone, Copy)]
struct LastFetch {
    ended_at: DateTime<Utc>,
    has_failed: bool,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
}

/// The published keys, unparsed: an unknown or malformed key must not make the others unusable.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Keys {
    pub fn new(provider: Provider, clock: Clock) -> Self {
        let (fetched, last_fetch) = (RwLock::default(), Arc::default());
        Self(Arc::new(Cache { provider, clock, fetched, last_fetch }))
    }

    /// Returns the key with this id; without an id, the only key.
    pub async fn find(&self, id: Option<&str>) -> Result<Option<Key>, ApiError> {
        let (key, is_fresh) = self.cached(id).await;
        if key.is_none() {
            self.refresh(id).await;
        } else if is_fresh || self.0.last_fetch.try_lock().is_err() {
            return Ok(key);
        } else {
            // The timeout keeps a hanging provider from locking out users whose key is known.
            let _ = tokio::time::timeout(REFRESH_TIMEOUT, self.refresh(id)).await;
        }
        let (key, _) = self.cached(id).await;
        // While the provider is away, an unknown key may be a new one. A refusal would end the session on the page.
        if key.is_none() && self.0.last_fetch.lock().await.is_none_or(|fetch| fetch.has_failed) {
            return Err(ApiError::Unavailable {
                detail: "Sign-in is temporarily unavailable. Please try again shortly.".into(),
                retry_after_secs: MIN_FETCH_INTERVAL.num_seconds().unsigned_abs(),
            });
        }
        Ok(key)
    }

    pub async fn are_loaded(&self) -> bool {
        self.0.fetched.read().await.at.is_some()
    }

    pub async fn userinfo_endpoint(&self) -> Option<String> {
        self.0.fetched.read().await.userinfo_endpoint.clone()
    }

    /// Returns the cached key, and whether the cache is fresh.
    async fn cached(&self, id: Option<&str>) -> (Option<Key>, bool) {
        let fetched = self.0.fetched.read().await;
        let key = match id {
            Some(id) => fetched.keys.iter().find(|key| key.id.as_deref() == Some(id)),
            None if fetched.keys.len() == 1 => fetched.keys.first(),
            None => None,
        };
        (key.cloned(), fetched.at.is_some_and(|at| self.is_within(FRESH_FOR, at)))
    }

    /// Returns true if `time` is less than `span` away, in either direction: the clock may have been set back.
    fn is_within(&self, span: TimeDelta, time: DateTime<Utc>) -> bool {
        (self.0.clock.now() - time).abs() < span
    }

    async fn refresh(&self, id: Option<&str>) {
        let mut last_fetch = Arc::clone(&self.0.last_fetch).lock_owned().await;
        // Another request may have fetched the keys while this one waited for the lock.
        let (key, is_fresh) = self.cached(id).await;
        let is_too_soon =
            last_fetch.is_some_and(|fetch| self.is_within(MIN_FETCH_INTERVAL, fetch.ended_at));
        if (key.is_some() && is_fresh) || is_too_soon {
            return;
        }
        let cache = Arc::clone(&self.0);
        // A separate task: the fetch must finish even if this client disconnects, because other requests need it.
        let fetching = tokio::spawn(async move {
            let fetched = cache.provider.fetch(&cache.clock).await;
            let has_failed = fetched.is_err();
            match fetched {
                Ok(fetched) => *cache.fetched.write().await = fetched,
                Err(error) => {
                    tracing::warn!("Could not fetch the identity provider's keys: {error:#}");
                }
            }
            *last_fetch = Some(LastFetch { ended_at: cache.clock.now(), has_failed });
        });
        let _ = fetching.await;
    }
}

impl Provider {
    async fn fetch(&self, clock: &Clock) -> anyhow::Result<Fetched> {
        let address =
            format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let discovery: Discovery = fetch(self.http.get(address)).await?;
        anyhow::ensure!(
            discovery.issuer == self.issuer,
            "the provider's issuer is {:?}, but OIDC_ISSUER is {:?}",
            discovery.issuer,
            self.issuer
        );
        let set: KeySet = fetch(self.http.get(&discovery.jwks_uri)).await?;
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<Key> = keys.filter_map(|key| usable(&key)).collect();
        anyhow::ensure!(!keys.is_empty(), "the provider publishes no supported key");
        Ok(Fetched { keys, userinfo_endpoint: discovery.userinfo_endpoint, at: Some(clock.now()) })
    }
}

/// Returns the key if it is a public signing key of a supported kind.
fn usable(jwk: &Jwk) -> Option<Key> {
    if jwk.common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
        return None;
    }
    let stated = match jwk.common.key_algorithm {
        // Rejects keys for encryption, such as RSA-OAEP.
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
    Some(Key { id: jwk.common.key_id.clone(), decoding, algorithm, verified: Arc::default() })
}
