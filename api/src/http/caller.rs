//! Extractors for the caller: users, by token or API key, and the client's IP address.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use retouch_core::api_keys;
use retouch_core::users::User;

use super::request::header_text;
use crate::auth::visitors::is_private;
use crate::error::ApiError;
use crate::state::App;
use crate::usecases::sign_in::{sign_in, sign_in_by_key, start_again};

/// A user with a valid token or API key.
pub struct SignedIn(pub User);

impl FromRequestParts<App> for SignedIn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::from_headers(&parts.headers) {
            Credential::Key(key) => sign_in_by_key(app, key).await.map(Self),
            Credential::Token(token) => sign_in(app, token).await.map(Self),
        }
    }
}

/// A user with a valid token, for what API keys are not allowed to do.
pub struct TokenUser(pub User);

impl FromRequestParts<App> for TokenUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::from_headers(&parts.headers) {
            // Does not reveal whether the key is valid.
            Credential::Key(_) => Err(ApiError::TokenRequired),
            Credential::Token(token) => sign_in(app, token).await.map(Self),
        }
    }
}

/// The caller has a valid token. If they deleted their account, a new one has started.
pub struct Returned;

impl FromRequestParts<App> for Returned {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::from_headers(&parts.headers) {
            Credential::Key(_) => Err(ApiError::TokenRequired),
            Credential::Token(token) => start_again(app, token).await.map(|_| Self),
        }
    }
}

/// A user with a valid API key, for routes that only programs call.
pub struct KeyUser(pub User);

impl FromRequestParts<App> for KeyUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::from_headers(&parts.headers) {
            Credential::Key(key) => sign_in_by_key(app, key).await.map(Self),
            Credential::Token(_) => Err(ApiError::Unauthorized("The X-Api-Key header is missing.")),
        }
    }
}

/// A user, or `None` without a token or key. An invalid token or key is an error.
pub struct OptionalUser(pub Option<User>);

impl FromRequestParts<App> for OptionalUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Credential::from_headers(&parts.headers) {
            Credential::Token(None) => Ok(Self(None)),
            Credential::Token(token) => sign_in(app, token).await.map(|user| Self(Some(user))),
            Credential::Key(key) => sign_in_by_key(app, key).await.map(|user| Self(Some(user))),
        }
    }
}

enum Credential<'a> {
    /// An API key, from `X-Api-Key` or sent as a bearer token.
    Key(&'a str),
    /// The value of `Authorization`, if present.
    Token(Option<&'a str>),
}

impl<'a> Credential<'a> {
    fn from_headers(headers: &'a HeaderMap) -> Self {
        let authorization = header_text(headers, header::AUTHORIZATION);
        let bearer =
            authorization.and_then(|value| value.split_once(' ')).filter(|(scheme, key)| {
                scheme.eq_ignore_ascii_case("bearer")
                    && key.trim_start().starts_with(api_keys::PREFIX)
            });
        // A key that is not ASCII is an invalid key, not a missing one.
        let key = headers.get("x-api-key").map(|key| key.to_str().unwrap_or_default());
        match key.or(bearer.map(|(_, key)| key)) {
            Some(key) => Self::Key(key.trim()),
            None => Self::Token(authorization),
        }
    }
}

/// The client's IP address.
pub struct ClientAddress(pub IpAddr);

impl FromRequestParts<App> for ClientAddress {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let peer = peer(parts);
        let forwarded_for = parts.headers.get_all("x-forwarded-for").iter();
        // Clients can put anything before what the proxies append.
        let lines: Vec<_> =
            forwarded_for.map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
        let lines: Vec<_> = lines.iter().map(AsRef::as_ref).collect();
        Ok(Self(app.visitors.address(peer, &lines)))
    }
}

/// Whether the client is on this host or in a private network. A client behind a proxy that is not listed may be anywhere.
pub struct IsPrivate(pub bool);

impl FromRequestParts<App> for IsPrivate {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let ClientAddress(address) = ClientAddress::from_request_parts(parts, app).await?;
        let is_forwarded = parts.headers.contains_key("x-forwarded-for")
            || parts.headers.contains_key("forwarded");
        let by_stranger = is_forwarded && app.visitors.subscriber(peer(parts)).is_some();
        Ok(Self(is_private(address) && !by_stranger))
    }
}

/// Returns the address of the connection.
fn peer(parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::from([127, 0, 0, 1]), |info| info.0.ip())
}
