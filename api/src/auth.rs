//! Bearer tokens: who is asking, checked against the keys that the identity provider publishes.
//!
//! The algorithm comes from the key and never from the token (RFC 8725 §3.1); ID tokens are not accepted
//! in place of access tokens; a token must have been made for us.

mod ask;
mod keys;
mod seen;

use chrono::{DateTime, Utc};
use jsonwebtoken::Validation;
use retouch_core::Clock;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::config::IdentityConfig;
use crate::error::ApiError;
use ask::ask;
use keys::{Keys, Provider};
use seen::Fingerprint;

/// What is wrong with a token, in the words that a caller gets.
const MISSING: &str = "Authentication token is missing.";
const INVALID: &str = "Authentication token is not valid";
const EXPIRED: &str = "Authentication token has expired";
/// How far clocks may differ, in seconds.
const LEEWAY_SECS: u64 = 30;

/// Who a token speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider.
    pub issuer: String,
    /// What the provider calls them; never changes.
    pub subject: String,
    /// Their address, where the token says it.
    pub email: Option<String>,
    /// When the token was made, as far as it says.
    pub token_made_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    aud: Audience,
    client_id: Option<String>,
    azp: Option<String>,
    /// Seconds since 1970, as `iat`; the standard allows fractions.
    exp: f64,
    iat: Option<f64>,
    token_use: Option<String>,
    typ: Option<String>,
    nonce: Option<Value>,
    at_hash: Option<Value>,
    c_hash: Option<Value>,
    email: Option<String>,
}

/// `aud` may be one name or several.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Audience {
    #[default]
    Nobody,
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn names(&self, name: &str) -> bool {
        match self {
            Self::Nobody => false,
            Self::One(one) => one == name,
            Self::Several(several) => several.iter().any(|one| one == name),
        }
    }
}

/// Checks bearer tokens.
pub struct Authenticator {
    issuer: String,
    client_id: String,
    audience: Option<String>,
    keys: Keys,
    http: reqwest::Client,
    clock: Clock,
}

impl Authenticator {
    /// Prepares the checks; the provider need not be reachable yet.
    pub fn new(config: &IdentityConfig, clock: Clock) -> anyhow::Result<Self> {
        let http = ask::client()?;
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

    /// Who the value of an `Authorization` header speaks for.
    pub async fn check(&self, authorization: Option<&str>) -> Result<Identity, ApiError> {
        let token = bearer(authorization).ok_or(ApiError::Unauthorized(MISSING))?;
        let header =
            jsonwebtoken::decode_header(token).map_err(|_| ApiError::Unauthorized(INVALID))?;
        if !header.typ.as_deref().is_none_or(is_access_token_type) {
            return Err(ApiError::Unauthorized(INVALID));
        }
        let key = self.keys.find(header.kid.as_deref()).await?;
        let key = key.ok_or(ApiError::Unauthorized(INVALID))?;
        let (fingerprint, now): (Fingerprint, _) = (Sha256::digest(token).into(), self.clock.now());
        if let Some(identity) = key.seen.find(&fingerprint, now) {
            return Ok(identity);
        }
        let mut rules = Validation::new(key.algorithm);
        rules.leeway = LEEWAY_SECS;
        rules.validate_nbf = true;
        // Providers differ in what they write into `aud`; `is_for_us` knows how.
        rules.validate_aud = false;
        rules.set_issuer(&[&self.issuer]);
        rules.set_required_spec_claims(&["exp", "iss", "sub"]);
        let claims = jsonwebtoken::decode::<Claims>(token, &key.decoding, &rules)
            .map_err(|error| {
                tracing::debug!(%error, "Refused a token");
                match error.kind() {
                    jsonwebtoken::errors::ErrorKind::ExpiredSignature => {
                        ApiError::Unauthorized(EXPIRED)
                    }
                    _ => ApiError::Unauthorized(INVALID),
                }
            })?
            .claims;
        if !claims.name_somebody() || !claims.is_access_token() || !self.is_for_us(&claims) {
            return Err(ApiError::Unauthorized(INVALID));
        }
        let identity = Identity {
            issuer: self.issuer.clone(),
            subject: claims.sub,
            email: claims.email.filter(|email| is_plain(email)),
            token_made_at: claims.iat.and_then(|secs| DateTime::from_timestamp(secs as i64, 0)),
        };
        if let Some(expires) = DateTime::from_timestamp(claims.exp as i64, 0) {
            key.seen.remember(fingerprint, &identity, now, expires);
        }
        Ok(identity)
    }

    fn is_for_us(&self, claims: &Claims) -> bool {
        match &self.audience {
            Some(audience) => claims.aud.names(audience),
            None => {
                claims.client_id.as_deref() == Some(&self.client_id)
                    || claims.azp.as_deref() == Some(&self.client_id)
                    || claims.aud.names(&self.client_id)
            }
        }
    }

    /// Asks the provider for the address of whoever `authorization` speaks for. `None` when it will not
    /// say: tokens made for one API cannot always be used there.
    pub async fn email(&self, authorization: &str, identity: &Identity) -> Option<String> {
        #[derive(Deserialize)]
        struct UserInfo {
            sub: String,
            email: Option<String>,
        }
        let address = self.keys.userinfo_endpoint().await?;
        let request = self.http.get(address).header("authorization", authorization);
        let info: UserInfo = ask(request).await.ok()?;
        // An answer about somebody else must never be believed (OpenID Connect Core 5.3.2).
        info.email.filter(|email| info.sub == identity.subject && is_plain(email))
    }

    /// Whether the provider's keys are at hand.
    pub async fn is_ready(&self) -> bool {
        self.keys.are_loaded().await
    }
}

impl Claims {
    fn name_somebody(&self) -> bool {
        is_plain(&self.sub)
    }

    fn is_access_token(&self) -> bool {
        let is_id_token = self.nonce.is_some() || self.at_hash.is_some() || self.c_hash.is_some();
        let uses_fit = self.token_use.as_deref().is_none_or(|token_use| token_use == "access");
        // Keycloak says in the claims what others say in the header.
        let type_fits = self.typ.as_deref().is_none_or(|typ| typ.eq_ignore_ascii_case("bearer"));
        !is_id_token && uses_fit && type_fits
    }
}

/// Whether this is a name that can be kept: Postgres stores no NUL, and no name has line breaks.
fn is_plain(name: &str) -> bool {
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
