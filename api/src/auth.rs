//! Finds out who a caller is: verifies bearer tokens with the public keys of the identity provider, recognizes people who
//! deleted their account, and tells visitors apart.
//!
//! The algorithm comes from the key, never from the token (RFC 8725, §3.1). Tokens must be access tokens, not ID
//! tokens, and must be issued for this API.

pub mod deleted_users;
mod fetch;
mod identity;
mod keys;
mod verified;
pub mod visitors;

use chrono::DateTime;
use jsonwebtoken::Validation;
use retouch_core::Clock;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::config::IdentityConfig;
use crate::error::ApiError;
use fetch::fetch;
use keys::{Keys, Provider};
use verified::Fingerprint;

pub use identity::Identity;

const MISSING: &str = "Authentication token is missing.";
const INVALID: &str = "Authentication token is invalid.";
const EXPIRED: &str = "Authentication token has expired.";
/// The tolerated clock difference, in seconds.
const LEEWAY_SECS: u64 = 30;

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    aud: Audience,
    client_id: Option<String>,
    azp: Option<String>,
    /// Seconds since 1970, like `iat`; the standard allows fractions.
    exp: f64,
    iat: Option<f64>,
    token_use: Option<String>,
    typ: Option<String>,
    nonce: Option<Value>,
    at_hash: Option<Value>,
    c_hash: Option<Value>,
    email: Option<String>,
}

/// The `aud` claim: a string or a list.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Audience {
    #[default]
    Missing,
    One(String),
    Many(Vec<String>),
}

impl Audience {
    fn contains(&self, name: &str) -> bool {
        match self {
            Self::Missing => false,
            Self::One(audience) => audience == name,
            Self::Many(audiences) => audiences.iter().any(|audience| audience == name),
        }
    }
}

/// Verifies bearer tokens.
pub struct Authenticator {
    issuer: String,
    client_id: String,
    audience: Option<String>,
    keys: Keys,
    http: reqwest::Client,
    clock: Clock,
}

impl Authenticator {
    /// Creates the authenticator. Does not contact the provider yet.
    pub fn new(config: &IdentityConfig, clock: Clock) -> anyhow::Result<Self> {
        let http = fetch::client()?;
        let provider = Provider { issuer: config.oidc_issuer.clone(), http: http.clone() };
        Ok(Self {
            issuer: config.oidc_issuer.clone(),
            client_id: config.oidc_client_id.clone(),
            audience: config.oidc_audience.clone().filter(|audience| !audience.is_empty()),
            keys: Keys::new(provider, clock.clone()),
            http,
            clock,
        })
    }

    /// Verifies the value of an `Authorization` header and returns the identity it proves.
    pub async fn check(&self, authorization: Option<&str>) -> Result<Identity, ApiError> {
        let token = bearer(authorization).ok_or(ApiError::Unauthorized(MISSING))?;
        let header =
            jsonwebtoken::decode_header(token).map_err(|_| ApiError::Unauthorized(INVALID))?;
        // `crit` names extensions that must be understood (RFC 7515, §4.1.11). We know none.
        if header.crit.is_some() || !header.typ.as_deref().is_none_or(is_access_token_type) {
            return Err(ApiError::Unauthorized(INVALID));
        }
        let key = self.keys.find(header.kid.as_deref()).await?;
        let key = key.ok_or(ApiError::Unauthorized(INVALID))?;
        let (fingerprint, now): (Fingerprint, _) = (Sha256::digest(token).into(), self.clock.now());
        if let Some(identity) = key.verified.find(&fingerprint, now) {
            return Ok(identity);
        }
        let mut rules = Validation::new(key.algorithm);
        rules.leeway = LEEWAY_SECS;
        rules.validate_nbf = true;
        // Providers fill `aud` differently; `is_for_us` checks it.
        rules.validate_aud = false;
        rules.set_issuer(&[&self.issuer]);
        rules.set_required_spec_claims(&["exp", "iss", "sub"]);
        let claims = jsonwebtoken::decode::<Claims>(token, &key.decoding, &rules)
            .map_err(|error| {
                tracing::debug!(%error, "Rejected a token");
                match error.kind() {
                    jsonwebtoken::errors::ErrorKind::ExpiredSignature => {
                        ApiError::Unauthorized(EXPIRED)
                    }
                    _ => ApiError::Unauthorized(INVALID),
                }
            })?
            .claims;
        if !is_storable(&claims.sub) || !claims.is_access_token() || !self.is_for_us(&claims) {
            return Err(ApiError::Unauthorized(INVALID));
        }
        let identity = Identity {
            issuer: self.issuer.clone(),
            subject: claims.sub,
            email: claims.email.filter(|email| is_storable(email)),
            token_issued_at: claims.iat.and_then(|secs| DateTime::from_timestamp(secs as i64, 0)),
        };
        if let Some(expires) = DateTime::from_timestamp(claims.exp as i64, 0) {
            key.verified.insert(fingerprint, &identity, now, expires);
        }
        Ok(identity)
    }

    fn is_for_us(&self, claims: &Claims) -> bool {
        match &self.audience {
            Some(audience) => claims.aud.contains(audience),
            None => {
                claims.client_id.as_deref() == Some(&self.client_id)
                    || claims.azp.as_deref() == Some(&self.client_id)
                    || claims.aud.contains(&self.client_id)
            }
        }
    }

    /// Fetches the email address from the provider's userinfo endpoint. `None` if the provider does not return it;
    /// some reject tokens that were issued for another API.
    pub async fn email(&self, authorization: &str, identity: &Identity) -> Option<String> {
        #[derive(Deserialize)]
        struct UserInfo {
            sub: String,
            email: Option<String>,
        }
        let address = self.keys.userinfo_endpoint().await?;
        let request = self.http.get(address).header("authorization", authorization);
        let info: UserInfo = fetch(request).await.ok()?;
        // The subject must match (OpenID Connect Core, §5.3.2).
        info.email.filter(|email| info.sub == identity.subject && is_storable(email))
    }

    /// Returns true once the provider's keys are loaded.
    pub async fn is_ready(&self) -> bool {
        self.keys.are_loaded().await
    }
}

impl Claims {
    fn is_access_token(&self) -> bool {
        let is_id_token = self.nonce.is_some() || self.at_hash.is_some() || self.c_hash.is_some();
        // `token_use` is Cognito's claim.
        let use_fits = self.token_use.as_deref().is_none_or(|token_use| token_use == "access");
        // Keycloak also writes the type into the claims.
        let type_fits = self.typ.as_deref().is_none_or(|typ| typ.eq_ignore_ascii_case("bearer"));
        !is_id_token && use_fits && type_fits
    }
}

/// Returns true if the name is not empty and has no control characters. Postgres cannot store NUL.
fn is_storable(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(char::is_control)
}

fn is_access_token_type(typ: &str) -> bool {
    ["jwt", "at+jwt", "application/at+jwt"].iter().any(|known| typ.eq_ignore_ascii_case(known))
}

fn bearer(authorization: Option<&str>) -> Option<&str> {
    let (scheme, token) = authorization?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
