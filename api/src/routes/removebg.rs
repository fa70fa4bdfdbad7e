//! `/v1.0`: the wire format of remove.bg, so that its clients work here with another base URL and key.
//!
//! Parameters that we do not support are rejected by name, never ignored. The API fetches no URLs.

mod cors;
mod form;
mod parameters;
mod refusal;

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use retouch_core::Clock;
use retouch_core::users::User;
use retouch_pixels::Limits;
use retouch_pixels::cutout::{self, CutoutOptions};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::http::caller::KeyUser;
use crate::http::request::{RequestPreferences, header_text};
use crate::limits::rate_limits::Allowance;
use crate::state::App;
use crate::usecases::removebg::{Removal, RemovalRequest, removebg};
use crate::usecases::upload_image;

pub use cors::preflight;
pub use form::RemovalForm;
pub use refusal::{Refusal, RefusalBody};

/// The cutout as JSON.
#[derive(Serialize, ToSchema)]
pub struct RemovalView {
    data: RemovalData,
}

/// See [`RemovalView`].
#[derive(Serialize, ToSchema)]
pub struct RemovalData {
    /// The file, base64-encoded.
    result_b64: String,
}

/// Removes the background of an image, for 5 credits, in the wire format of remove.bg.
///
/// The image and the cutout are deleted after an hour and appear in no list. A repeat with the same
/// `Idempotency-Key` and image returns the first cutout, in the requested shape, at no further cost. Without a key, the
/// same image with the same parameters does so for ten minutes, and joins a run that has not ended. If the client hangs
/// up and does not try again within three seconds, the run is canceled.
/// `X-Credits-Charged` is the price of the cutout; rejected requests, failed and canceled runs cost nothing.
#[utoipa::path(post, path = "/v1.0/removebg", tag = "remove.bg",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat return the first cutout")),
    request_body(content(
        (RemovalForm = "multipart/form-data"),
        (RemovalForm = "application/x-www-form-urlencoded"),
        (RemovalForm = "application/json"),
    )),
    responses(
        (status = 200, description = "The cutout, as JSON if `Accept` asks for it", content(
            (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"),
            (Vec<u8> = "application/zip"), (RemovalView = "application/json")), headers(
            ("X-Credits-Charged" = i32, description = "The credits that the cutout has cost"),
            ("X-Width" = u32, description = "The width of the cutout, in pixels"),
            ("X-Height" = u32, description = "The height of the cutout, in pixels"),
            ("X-Max-Width" = u32, description = "The width that it has in full size, in pixels"),
            ("X-Max-Height" = u32, description = "The height that it has in full size, in pixels"),
            ("X-RateLimit-Limit" = u32, description = "The requests allowed per minute"),
            ("X-RateLimit-Remaining" = u32, description = "The requests allowed now"),
            ("X-RateLimit-Reset" = i64, description = "When all are allowed again, in seconds since 1970"))),
        (status = 400, description = "The request or the image is invalid, or a parameter is not supported", body = RefusalBody),
        (status = 402, description = "Not enough credits", body = RefusalBody),
        (status = 403, description = "The key is missing or invalid", body = RefusalBody),
        (status = 408, description = "The upload took too long", body = RefusalBody),
        (status = 409, description = "The run was canceled", body = RefusalBody),
        (status = 413, description = "The file is too large", body = RefusalBody),
        (status = 422, description = "The Idempotency-Key was used for a different request, or its cutout is deleted", body = RefusalBody),
        (status = 429, description = "Rate limit exceeded", body = RefusalBody, headers(
            ("X-RateLimit-Limit" = u32, description = "The requests allowed per minute"),
            ("X-RateLimit-Remaining" = u32, description = "The requests allowed now"),
            ("X-RateLimit-Reset" = i64, description = "When all are allowed again, in seconds since 1970"))),
        (status = 500, description = "The run failed", body = RefusalBody),
        (status = 503, description = "The server is busy", body = RefusalBody)),
    security(("key" = [])))]
pub async fn remove(
    State(app): State<App>,
    caller: Result<KeyUser, ApiError>,
    preferences: Result<RequestPreferences, ApiError>,
    request: Request,
) -> Response {
    let user = match caller {
        Ok(KeyUser(user)) => user,
        Err(error) => return Refusal::from(error).into_response(),
    };
    let (mut response, allowance) = match app.rate_limits.users.runs.count(user.id).await {
        Ok(allowance) => {
            let response = run(&app, &user, preferences, request).await;
            (response.unwrap_or_else(IntoResponse::into_response), allowance)
        }
        Err(error) => (Refusal::from(ApiError::from(error)).into_response(), error.allowance),
    };
    add_rate_limit_headers(response.headers_mut(), &app.clock, allowance);
    response
}

async fn run(
    app: &App,
    user: &User,
    preferences: Result<RequestPreferences, ApiError>,
    request: Request,
) -> Result<Response, Refusal> {
    let idempotency_key = preferences?.idempotency_key;
    let wants_json = header_text(request.headers(), header::ACCEPT).is_some_and(prefers_json);
    let form = form::read(app, user.id, request).await?;
    let (file, options, metadata) = parameters::parse(form)?;
    check_size(app, &file, &options)?;
    let Removal { cutout, charged } =
        removebg(app, user, RemovalRequest { file, options, metadata, idempotency_key }).await?;
    let mut response = if wants_json {
        ([(header::CONTENT_TYPE, "application/json")], as_json(cutout.bytes)).into_response()
    } else {
        ([(header::CONTENT_TYPE, cutout.content_type)], cutout.bytes).into_response()
    };
    let headers = response.headers_mut();
    headers.insert("x-credits-charged", HeaderValue::from(charged));
    headers.insert("x-width", HeaderValue::from(cutout.width));
    headers.insert("x-height", HeaderValue::from(cutout.height));
    headers.insert("x-max-width", HeaderValue::from(cutout.full_width));
    headers.insert("x-max-height", HeaderValue::from(cutout.full_height));
    cors::allow_any_origin(headers);
    Ok(response)
}

/// Whether a client wants the cutout as JSON. One that also accepts pictures, or anything, gets the picture: axios
/// accepts `application/json, text/plain, */*` by default.
fn prefers_json(accept: &str) -> bool {
    let accept = accept.to_ascii_lowercase();
    accept.contains("application/json") && !accept.contains("image/") && !accept.contains("*/*")
}

/// Rejects a request whose cutout could not be rendered, before anything is charged.
fn check_size(app: &App, file: &Bytes, options: &CutoutOptions) -> Result<(), ApiError> {
    let limits = Limits { max_dimension: app.limits.max_dimension };
    // A file without a valid header is rejected later, for its own reason.
    let Ok((width, height)) = upload_image::size(file, &limits) else { return Ok(()) };
    let stored = u64::from(width) * u64::from(height) * 4;
    let has_memory = app.decoders.fits(stored + cutout::memory_bytes(width, height, options));
    if has_memory && cutout::fits_format(width, height, options) {
        return Ok(());
    }
    let detail = "The cutout would be too large. Use a smaller crop_margin, size or image.";
    Err(ApiError::Unprocessable(detail.into()))
}

/// Returns a [`RemovalView`] with this file. It is encoded while it is sent, so that only a piece at a time is in memory
/// as text.
fn as_json(file: Bytes) -> Body {
    /// A multiple of 3, so that only the last piece is padded.
    const PIECE: usize = 48 << 10;
    let pieces = (0..file.len())
        .step_by(PIECE)
        .map(move |start| STANDARD.encode(&file[start..file.len().min(start + PIECE)]));
    let (head, tail) = ("{\"data\":{\"result_b64\":\"".to_owned(), "\"}}".to_owned());
    let text = std::iter::once(head).chain(pieces).chain(std::iter::once(tail));
    Body::from_stream(stream::iter(text.map(Ok::<_, Infallible>)))
}

/// The balance of the key's owner, in the wire format of remove.bg.
#[derive(Serialize, ToSchema)]
pub struct AccountView {
    data: AccountData,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountData {
    attributes: AccountAttributes,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountAttributes {
    credits: AccountCredits,
    api: AccountApi,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountCredits {
    /// The credits that are not held for unfinished runs.
    #[schema(example = 120)]
    total: i32,
    /// Always 0: there are no subscriptions.
    #[schema(example = 0)]
    subscription: i32,
    /// The same as `total`: all credits are bought in packs or granted.
    #[schema(example = 120)]
    payg: i32,
    /// Always 0: there are no enterprise contracts.
    #[schema(example = 0)]
    enterprise: i32,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountApi {
    /// Always 0: every call costs credits.
    #[schema(example = 0)]
    free_calls: i32,
    /// The supported values of `size`.
    #[schema(example = "all")]
    sizes: &'static str,
}

/// Returns the balance of the key's owner, in the wire format of remove.bg.
#[utoipa::path(get, path = "/v1.0/account", tag = "remove.bg",
    responses((status = 200, body = AccountView), (status = 403, description = "The key is missing or invalid", body = RefusalBody)),
    security(("key" = [])))]
pub async fn account(caller: Result<KeyUser, ApiError>) -> Result<Response, Refusal> {
    let KeyUser(user) = caller?;
    let left = user.credits - user.reserved;
    let credits = AccountCredits { total: left, subscription: 0, payg: left, enterprise: 0 };
    let api = AccountApi { free_calls: 0, sizes: "all" };
    let attributes = AccountAttributes { credits, api };
    let mut response = Json(AccountView { data: AccountData { attributes } }).into_response();
    cors::allow_any_origin(response.headers_mut());
    Ok(response)
}

fn add_rate_limit_headers(headers: &mut HeaderMap, clock: &Clock, allowance: Allowance) {
    let full_at = clock.now().timestamp() + allowance.full_after.as_secs() as i64;
    headers.insert("x-ratelimit-limit", HeaderValue::from(allowance.limit));
    headers.insert("x-ratelimit-remaining", HeaderValue::from(allowance.remaining));
    headers.insert("x-ratelimit-reset", HeaderValue::from(full_at));
}
