//! `/mcp`: the tools for programs that speak the Model Context Protocol (streamable HTTP), such as assistants.
//!
//! Every request stands alone, so any API process can answer it. Clients of 2026 cancel a call by closing its response;
//! older ones send a notification, which may reach another process. For those, `initialize` hands out an id that names
//! the client's calls, and Redis carries the cancellation. Nothing else is known of a session.

mod arguments;
mod caller;
mod copy;
mod pictures;
mod progress;
mod reply;
mod server;
mod tools;

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::{Deserialize, Serialize};
use url::Url;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::caller::SignedIn;
use crate::http::problem::Problem;
use crate::http::request::header_text;
use crate::state::App;
use caller::{ToolCaller, call_name};
use pictures::{MAX_MASK_BYTES, MAX_PICTURE_BYTES};
use server::Server;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";
/// Where clients look for [`ResourceMetadata`] (RFC 9728, §3.1): first with the path of the endpoint, then without.
pub const METADATA_PATH_OF_MCP: &str = "/.well-known/oauth-protected-resource/mcp";
/// See [`METADATA_PATH_OF_MCP`].
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Maximum size of a body: a picture and a mask in base64, and the rest of the message.
const MAX_BODY: usize = (MAX_PICTURE_BYTES + MAX_MASK_BYTES) / 3 * 4 + (64 << 10);
/// Maximum size of a message that is not a call and has no picture.
const MAX_SMALL_MESSAGE: usize = 64 << 10;
/// Maximum number of values in a message. The library reads all values before it handles one, and each may take a
/// kilobyte.
const MAX_VALUES: usize = 4096;

/// Answers a message of a client.
pub async fn answer(
    State(app): State<App>,
    caller: Result<SignedIn, ApiError>,
    request: Request,
) -> Response {
    let user = match caller {
        Ok(SignedIn(user)) => user,
        Err(error) => return refusal(&app, error),
    };
    let (mut parts, body) = request.into_parts();
    // If the upload stalled, `server/body_limit.rs` replaces this answer.
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return ApiError::FileTooLarge { max_bytes: MAX_BODY }.into_response();
    };
    // One of these precedes every value, and base64 has none of them.
    let separators = body.iter().filter(|byte| b"{[:,".contains(byte)).count();
    if separators > MAX_VALUES {
        return ApiError::BadRequest("The message has too many values.".into()).into_response();
    }
    let message = Message::read(&body);
    let session = session_id(&parts.headers);
    parts.extensions.insert(ToolCaller::new(user.clone(), session.clone()));
    let request = Request::from_parts(parts, Body::from(body));
    let mut response = service(&app).handle(request).await.map(Body::new);
    match message.method.as_deref() {
        Some("initialize") if response.status().is_success() => {
            let id = HeaderValue::from_str(&Uuid::now_v7().to_string());
            response.headers_mut().extend(id.ok().map(|id| (SESSION_ID, id)));
        }
        // The library has accepted the message, so it comes from an allowed place.
        Some("notifications/cancelled") if response.status() == StatusCode::ACCEPTED => {
            let (Some(id), Some(session)) = (message.params.request_id, session) else {
                return response;
            };
            let call = call_name(user.id, &session, &id);
            if let Err(error) = app.queue.request_cancellation(&call).await {
                tracing::warn!(%error, "Could not pass on the cancellation of a call");
                let detail = "The call cannot be canceled right now. Please try again shortly.";
                return ApiError::Unavailable { detail: detail.into(), retry_after_secs: 1 }
                    .into_response();
            }
        }
        _ => {}
    }
    response
}

/// The parts of a small message that concern cancellations, which the library ignores.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    method: Option<String>,
    params: Parameters,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Parameters {
    request_id: Option<serde_json::Value>,
}

impl Message {
    /// Reads a message; nothing of a large or malformed one.
    fn read(body: &[u8]) -> Self {
        if body.len() > MAX_SMALL_MESSAGE {
            return Self::default();
        }
        serde_json::from_slice(body).unwrap_or_default()
    }
}

/// Returns the id that `initialize` gave to the client. It proves nothing: it only tells the calls of an account apart.
fn session_id(headers: &HeaderMap) -> Option<String> {
    header_text(headers, SESSION_ID).filter(|id| !id.is_empty() && id.len() <= 128).map(Into::into)
}

fn service(app: &App) -> StreamableHttpService<Server, NeverSessionManager> {
    let mut config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(allowed_hosts(&app.public_url))
        .with_allowed_origins([origin_with_port(&app.public_url)]);
    config.legacy_session_mode = false;
    config.max_request_body_bytes = MAX_BODY;
    let server = Server::new(app.clone());
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

/// Returns the hosts at which clients may reach the endpoint: ours, and this machine.
fn allowed_hosts(public_url: &Url) -> Vec<String> {
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    public_url.host_str().map(str::to_owned).into_iter().chain(local).collect()
}

/// Returns the origin of the page, with its port even if that is the default one.
fn origin_with_port(public_url: &Url) -> String {
    let port = public_url.port_or_known_default().unwrap_or(443);
    format!("{}://{}:{port}", public_url.scheme(), public_url.host_str().unwrap_or_default())
}

/// Refuses a client that has not signed in, and says where it can (RFC 9728, §5.1).
fn refusal(app: &App, error: ApiError) -> Response {
    if matches!(error, ApiError::AccountDeleted) {
        // Clients answer any 401 with a sign-in, after which the account would be refused again.
        return Problem::response(StatusCode::FORBIDDEN, &error.to_string(), error.code());
    }
    let is_unauthorized = matches!(error, ApiError::Unauthorized(_));
    let mut response = error.into_response();
    if is_unauthorized
        && let Ok(address) = app.public_url.join(METADATA_PATH_OF_MCP)
        && let Ok(challenge) = format!("Bearer resource_metadata=\"{address}\"").parse()
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Tells clients who issues tokens for the endpoint (RFC 9728, §2).
#[derive(Serialize)]
pub struct ResourceMetadata {
    resource: String,
    resource_name: &'static str,
    authorization_servers: [String; 1],
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
}

/// Returns the metadata of the endpoint.
pub async fn resource_metadata(State(app): State<App>) -> Result<Json<ResourceMetadata>, ApiError> {
    let resource = app.public_url.join(PATH).map_err(anyhow::Error::from)?;
    Ok(Json(ResourceMetadata {
        resource: resource.into(),
        resource_name: "Retouch",
        authorization_servers: [app.identity.oidc_issuer.clone()],
        scopes_supported: app.identity.oidc_scope.split_whitespace().map(str::to_owned).collect(),
        bearer_methods_supported: ["header"],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_the_page_has_a_port() {
        for (public_url, origin) in [
            ("https://pictures.example", "https://pictures.example:443"),
            ("http://pictures.example/", "http://pictures.example:80"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            assert_eq!(origin_with_port(&public_url.parse().unwrap()), origin);
        }
    }
}
