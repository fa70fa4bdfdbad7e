//! The identity provider's published keys: cached, refreshed when they age or when a token names an
//! unknown one, and kept when the provider does not answer.

use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use tokio::sync::{Mutex, RwLock};
use tokio::time::Instant;

use crate::error::ApiError;

/// How long keys count as fresh.
const FRESH: Duration = Duration::from_hours(1);
/// The shortest time between two fetches: callers choose the key ids of their tokens, and must not choose
/// how often we fetch.
const PAUSE: Duration = Duration::from_secs(10);

/// Where the keys come from.
pub(super) struct Provider {
    pub issuer: String,
    pub http: reqwest::Client,
}

/// A key and the only algorithm it may be used with.
#[derive(Clone)]
pub(super) struct Key {
    id: Option<String>,
    pub decoding: DecodingKey,
    pub algorithm: Algorithm,
}

#[derive(Default)]
struct Known {
    keys: Vec<Key>,
    userinfo_endpoint: Option<String>,
    fetched: Option<Instant>,
}

/// The cache.
pub(super) struct Keys {
    provider: Provider,
    known: RwLock<Known>,
    /// When a fetch was last tried; holding the lock is being the one who fetches.
    tried: Mutex<Option<Instant>>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
}

impl Keys {
    pub fn new(provider: Provider) -> Self {
        Self { provider, known: RwLock::default(), tried: Mutex::default() }
    }

    /// The key called `id`; without an id, the only one there is.
    pub async fn find(&self, id: Option<&str>) -> Result<Option<Key>, ApiError> {
        let (found, fresh) = self.look(id).await;
        if found.is_some() && fresh {
            return Ok(found);
        }
        self.refresh(id).await;
        let (found, _) = self.look(id).await;
        if found.is_none() && !self.are_loaded().await {
            return Err(ApiError::Unavailable {
                detail: "Sign-in is not available at the moment. Try again shortly".into(),
                retry_after_secs: 10,
            });
        }
        Ok(found)
    }

    pub async fn are_loaded(&self) -> bool {
        self.known.read().await.fetched.is_some()
    }

    pub async fn userinfo_endpoint(&self) -> Option<String> {
        self.known.read().await.userinfo_endpoint.clone()
    }

    async fn look(&self, id: Option<&str>) -> (Option<Key>, bool) {
        let known = self.known.read().await;
        let found = match id {
            Some(id) => known.keys.iter().find(|key| key.id.as_deref() == Some(id)),
            None if known.keys.len() == 1 => known.keys.first(),
            None => None,
        };
        (found.cloned(), known.fetched.is_some_and(|fetched| fetched.elapsed() < FRESH))
    }

    async fn refresh(&self, id: Option<&str>) {
        let mut tried = self.tried.lock().await;
        // Whoever waited for the lock may find that another has just fetched what they need.
        let (found, fresh) = self.look(id).await;
        let too_soon = tried.is_some_and(|tried| tried.elapsed() < PAUSE);
        if (found.is_some() && fresh) || too_soon {
            return;
        }
        *tried = Some(Instant::now());
        match self.provider.fetch().await {
            Ok(known) => *self.known.write().await = known,
            Err(error) => tracing::warn!("Fetching the identity provider's keys: {error:#}"),
        }
    }
}

impl Provider {
    async fn fetch(&self) -> anyhow::Result<Known> {
        let address =
            format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let discovery: Discovery =
            self.http.get(address).send().await?.error_for_status()?.json().await?;
        anyhow::ensure!(
            discovery.issuer == self.issuer,
            "the provider calls itself {:?}, but OIDC_ISSUER is {:?}",
            discovery.issuer,
            self.issuer
        );
        let set: JwkSet =
            self.http.get(&discovery.jwks_uri).send().await?.error_for_status()?.json().await?;
        let keys: Vec<Key> = set.keys.iter().filter_map(usable).collect();
        anyhow::ensure!(!keys.is_empty(), "the provider publishes no key that we can use");
        Ok(Known {
            keys,
            userinfo_endpoint: discovery.userinfo_endpoint,
            fetched: Some(Instant::now()),
        })
    }
}

/// The key, if it is a public signing key of a kind we accept.
fn usable(jwk: &Jwk) -> Option<Key> {
    if jwk.common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
        return None;
    }
    let stated = jwk.common.key_algorithm.and_then(|stated| stated.to_string().parse().ok());
    let algorithm = match (&jwk.algorithm, stated) {
        (AlgorithmParameters::RSA(_), Some(Algorithm::PS256)) => Algorithm::PS256,
        (AlgorithmParameters::RSA(_), None | Some(Algorithm::RS256)) => Algorithm::RS256,
        (AlgorithmParameters::EllipticCurve(ec), _) if ec.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        (AlgorithmParameters::OctetKeyPair(_), _) => Algorithm::EdDSA,
        _ => return None,
    };
    let decoding = DecodingKey::from_jwk(jwk).ok()?;
    Some(Key { id: jwk.common.key_id.clone(), decoding, algorithm })
}
