//! `/v1.0`: the wire format of remove.bg, so that its clients work here with another address and key.
//!
//! What is supported is done; what is not is refused by its name and never ignored. No address is ever
//! fetched.

mod form;
mod parameters;
mod refusal;

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use retouch_core::Clock;
use retouch_core::users::User;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Program, Wishes, sent};
use super::run::no_store;
use crate::error::ApiError;
use crate::rates::Allowance;
use crate::state::App;
use crate::usecases::removebg::{Delivered, Wanted, removebg};

/// How long somebody who is refused may go on sending.
const PATIENCE: Duration = Duration::from_secs(3);

pub use form::RemovalForm;
pub use refusal::{Refusal, RefusalBody};

/// The cut-out, when JSON is asked for.
#[derive(Serialize, ToSchema)]
pub struct RemovalView {
    /// Always there.
    data: RemovalData,
}

/// See [`RemovalView`].
#[derive(Serialize, ToSchema)]
pub struct RemovalData {
    /// The file, in base64.
    result_b64: String,
}

/// Removes the background of one picture, for 5 credits, in the wire format of remove.bg.
///
/// Neither the picture nor the cut-out is kept for longer than an hour, and neither is in any list. A
/// repeat with the same `Idempotency-Key` and picture is shaped from the first cut-out and costs nothing
/// more. `X-Credits-Charged` says what the cut-out cost; what is refused or fails costs nothing.
#[utoipa::path(post, path = "/v1.0/removebg", tag = "remove.bg",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat return the first cut-out")),
    request_body(content(
        (RemovalForm = "multipart/form-data"),
        (RemovalForm = "application/x-www-form-urlencoded"),
        (RemovalForm = "application/json"),
    )),
    responses(
        (status = 200, description = "The cut-out; JSON when `Accept` names it", content(
            (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"),
            (Vec<u8> = "application/zip"), (RemovalView = "application/json"))),
        (status = 400, description = "Not understood, not supported, or no picture", body = RefusalBody),
        (status = 402, description = "Not enough credits", body = RefusalBody),
        (status = 403, description = "No valid key", body = RefusalBody),
        (status = 408, description = "The upload took too long", body = RefusalBody),
        (status = 409, description = "The run was cancelled", body = RefusalBody),
        (status = 413, description = "The file is too large", body = RefusalBody),
        (status = 422, description = "The Idempotency-Key was used for something else", body = RefusalBody),
        (status = 429, description = "Too many calls", body = RefusalBody),
        (status = 500, description = "The run failed", body = RefusalBody),
        (status = 503, description = "Too much is waiting", body = RefusalBody)),
    security(("key" = [])))]
pub async fn remove(
    State(app): State<App>,
    caller: Result<Program, ApiError>,
    wishes: Result<Wishes, ApiError>,
    request: Request,
) -> Response {
    let user = match caller {
        Ok(Program(user)) => user,
        Err(error) => {
            hear_out(request.into_body()).await;
            return Refusal::from(error).into_response();
        }
    };
    let (mut response, allowance) = match app.rates.count_run(user.id) {
        Ok(allowance) => {
            let answer = answer(&app, &user, wishes, request).await;
            (answer.unwrap_or_else(IntoResponse::into_response), allowance)
        }
        Err(early) => {
            hear_out(request.into_body()).await;
            (Refusal::from(ApiError::from(early)).into_response(), early.allowance)
        }
    };
    say_what_is_left(response.headers_mut(), &app.clock, allowance);
    response
}

/// Lets a client finish what it is sending, for a moment: one that is cut off in the middle of a picture may
/// never read why.
async fn hear_out(body: Body) {
    let all = body.into_data_stream().for_each(|_| std::future::ready(()));
    let _ = tokio::time::timeout(PATIENCE, all).await;
}

async fn answer(
    app: &App,
    user: &User,
    wishes: Result<Wishes, ApiError>,
    request: Request,
) -> Result<Response, Refusal> {
    let idempotency_key = wishes?.idempotency_key;
    let in_json = sent(request.headers(), header::ACCEPT)
        .is_some_and(|kinds| kinds.to_ascii_lowercase().contains("application/json"));
    let form = form::read(request, app.limits.max_upload_bytes).await?;
    let (file, shape) = parameters::read(form)?;
    let Delivered { cutout, charged } =
        removebg(app, user, Wanted { file, shape, idempotency_key }).await?;
    let mut response = if in_json {
        let result_b64 = STANDARD.encode(&cutout.bytes);
        Json(RemovalView { data: RemovalData { result_b64 } }).into_response()
    } else {
        ([(header::CONTENT_TYPE, cutout.content_type)], cutout.bytes).into_response()
    };
    no_store(&mut response);
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("authorization, x-api-key, accept"));
    headers.insert("x-credits-charged", HeaderValue::from(charged));
    headers.insert("x-width", HeaderValue::from(cutout.width));
    headers.insert("x-height", HeaderValue::from(cutout.height));
    headers.insert("x-max-width", HeaderValue::from(cutout.full_width));
    headers.insert("x-max-height", HeaderValue::from(cutout.full_height));
    open_to_all(headers);
    Ok(response)
}

/// What a program's owner has left, in the wire format of remove.bg.
#[derive(Serialize, ToSchema)]
pub struct AccountView {
    /// Always there.
    data: AccountData,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountData {
    /// What there is to know.
    attributes: AccountAttributes,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountAttributes {
    /// What can be spent.
    credits: AccountCredits,
    /// What calls there are.
    api: AccountApi,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountCredits {
    /// All that is not held for runs under way.
    #[schema(example = 120)]
    total: i32,
    /// There are no subscriptions here.
    #[schema(example = 0)]
    subscription: i32,
    /// The same as `total`: all credits are bought in packs or given.
    #[schema(example = 120)]
    payg: i32,
    /// There are no such contracts here.
    #[schema(example = 0)]
    enterprise: i32,
}

/// See [`AccountView`].
#[derive(Serialize, ToSchema)]
pub struct AccountApi {
    /// There are none through this interface.
    #[schema(example = 0)]
    free_calls: i32,
    /// Which values of `size` may be asked for.
    #[schema(example = "all")]
    sizes: &'static str,
}

/// What the owner of the key has left, in the wire format of remove.bg.
#[utoipa::path(get, path = "/v1.0/account", tag = "remove.bg",
    responses((status = 200, body = AccountView), (status = 403, description = "No valid key", body = RefusalBody)),
    security(("key" = [])))]
pub async fn account(caller: Result<Program, ApiError>) -> Result<Response, Refusal> {
    let Program(user) = caller?;
    let left = user.credits - user.reserved;
    let credits = AccountCredits { total: left, subscription: 0, payg: left, enterprise: 0 };
    let api = AccountApi { free_calls: 0, sizes: "all" };
    let attributes = AccountAttributes { credits, api };
    let mut response = Json(AccountView { data: AccountData { attributes } }).into_response();
    no_store(&mut response);
    open_to_all(response.headers_mut());
    Ok(response)
}

/// The question of a browser whether a page of another origin may call here: it may, since only the key in
/// a header opens anything.
pub async fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    open_to_all(headers);
    let methods = HeaderValue::from_static("GET, POST, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed =
        HeaderValue::from_static("X-Api-Key, Authorization, Content-Type, Accept, Idempotency-Key");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

fn open_to_all(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
}

fn say_what_is_left(headers: &mut HeaderMap, clock: &Clock, allowance: Allowance) {
    let full_at = clock.now().timestamp() + allowance.full_after.as_secs() as i64;
    headers.insert("x-ratelimit-limit", HeaderValue::from(allowance.limit));
    headers.insert("x-ratelimit-remaining", HeaderValue::from(allowance.remaining));
    headers.insert("x-ratelimit-reset", HeaderValue::from(full_at));
}
