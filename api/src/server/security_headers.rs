//! The security headers of every response: the content security policy, and who may frame, sniff or cache it.

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::state::App;

/// The origins that Google's advertising tag loads scripts from and sends requests to.
const AD_SCRIPTS: &str = "https://www.googletagmanager.com";
const AD_ENDPOINTS: &str = "https://www.googletagmanager.com https://www.google.com https://www.googleadservices.com \
                            https://googleads.g.doubleclick.net";

/// Allows the page its own scripts, and connections to this origin, the identity provider, the object store and
/// the operator's additions.
pub fn content_security_policy(app: &App, inline_scripts: &str) -> HeaderValue {
    let origin = |address: &str| {
        url::Url::parse(address).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    };
    let issuer = origin(&app.identity.oidc_issuer);
    let page_origins = app.identity.oidc_page_origins.join(" ");
    let storage = app.storage.public_endpoint().map(origin).unwrap_or_default();
    let rating = app.site.rating_url.as_ref().map(|url| origin(url.as_str())).unwrap_or_default();
    let (ad_scripts, ads) =
        if app.site.ad_tag_id.is_some() { (AD_SCRIPTS, AD_ENDPOINTS) } else { ("", "") };
    let policy = format!(
        "default-src 'self'; script-src 'self' {inline_scripts} {ad_scripts}; style-src 'self' 'unsafe-inline'; \
         img-src 'self' blob: data: {storage} {ads}; \
         connect-src 'self' blob: {issuer} {storage} {page_origins} {ads}; \
         frame-src {issuer} {rating}; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'self'"))
}

/// The policy for the API documentation, whose page needs an inline script.
const DOCS_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
);

/// A year, which browsers remember; only for this host, because others may not speak HTTPS.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// What the security headers depend on.
#[derive(Clone)]
pub struct Policy {
    /// The page's content security policy.
    pub content: HeaderValue,
    /// Whether browsers reach this installation over HTTPS. Then they must never use HTTP.
    pub is_https: bool,
}

/// Adds the security headers to a response.
pub async fn add(policy: Policy, request: Request, next: Next) -> Response {
    let docs = request.uri().path().starts_with("/api/docs");
    let path = request.uri().path();
    let private = (path.starts_with("/api/") || path.starts_with("/v1.0/")) && !docs;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("strict-origin-when-cross-origin"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    let content = if docs { DOCS_POLICY } else { policy.content };
    headers.insert(header::CONTENT_SECURITY_POLICY, content);
    if policy.is_https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    // Responses depend on the caller and change at any time, and a GET that spends credits must always reach the API.
    if private && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}
