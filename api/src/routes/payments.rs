//! `/api/payments`: buying packs of credits.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, header};
use retouch_core::orders::OrderStatus;
use retouch_core::users::User;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::body::MAX_PLAIN_BODY;
use crate::http::caller::TokenUser;
use crate::http::problem::Problem;
use crate::http::request::{Path, RequestPreferences, header_text};
use crate::payments::SessionStatus;
use crate::state::App;
use crate::usecases::buy_credits::buy_credits;
use crate::usecases::settle_payment::{CheckoutState, checkout_state, receive_message};

/// The payment page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CheckoutPage)]
pub struct CheckoutPageView {
    /// The payment provider's page, to open in the browser.
    pub url: String,
}

/// The error responses of `create-checkout-session`, for the OpenAPI document.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "documents the responses of handlers")]
pub enum CheckoutErrors {
    /// The request is malformed.
    #[response(status = 400)]
    BadRequest(Problem),
    /// The token is missing or invalid.
    #[response(status = 401)]
    Unauthorized(Problem),
    /// API keys cannot buy credits.
    #[response(status = 403)]
    TokenRequired(Problem),
    /// The Idempotency-Key was used for another pack.
    #[response(status = 422)]
    KeyReused(Problem),
    /// The caller started too many purchases per minute.
    #[response(status = 429)]
    TooManyRequests(Problem),
    /// Payments are not configured, or the payment provider is unavailable.
    #[response(status = 503)]
    Unavailable(Problem),
}

/// Opens the payment page for pack 1. A double click, or a repeat with the same `Idempotency-Key`, returns the same
/// page.
#[utoipa::path(post, path = "/api/payments/create-checkout-session-1", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutErrors),
    security(("token" = [])))]
pub async fn buy_pack_1(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    preferences: RequestPreferences,
) -> Result<Json<CheckoutPageView>, ApiError> {
    open_page(&app, &user, 1, &preferences).await
}

/// Same as POST.
#[utoipa::path(get, path = "/api/payments/create-checkout-session-1", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutErrors),
    security(("token" = [])))]
pub async fn get_pack_1(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    preferences: RequestPreferences,
) -> Result<Json<CheckoutPageView>, ApiError> {
    open_page(&app, &user, 1, &preferences).await
}

/// Opens the payment page for pack 2. A double click, or a repeat with the same `Idempotency-Key`, returns the same
/// page.
#[utoipa::path(post, path = "/api/payments/create-checkout-session-2", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutErrors),
    security(("token" = [])))]
pub async fn buy_pack_2(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    preferences: RequestPreferences,
) -> Result<Json<CheckoutPageView>, ApiError> {
    open_page(&app, &user, 2, &preferences).await
}

/// Same as POST.
#[utoipa::path(get, path = "/api/payments/create-checkout-session-2", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutErrors),
    security(("token" = [])))]
pub async fn get_pack_2(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    preferences: RequestPreferences,
) -> Result<Json<CheckoutPageView>, ApiError> {
    open_page(&app, &user, 2, &preferences).await
}

/// Opens the payment page for pack 3. A double click, or a repeat with the same `Idempotency-Key`, returns the same
/// page.
#[utoipa::path(post, path = "/api/payments/create-checkout-session-3", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutErrors),
    security(("token" = [])))]
pub async fn buy_pack_3(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    preferences: RequestPreferences,
) -> Result<Json<CheckoutPageView>, ApiError> {
    open_page(&app, &user, 3, &preferences).await
}

/// Same as POST.
#[utoipa::path(get, path = "/api/payments/create-checkout-session-3", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutErrors),
    security(("token" = [])))]
pub async fn get_pack_3(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    preferences: RequestPreferences,
) -> Result<Json<CheckoutPageView>, ApiError> {
    open_page(&app, &user, 3, &preferences).await
}

async fn open_page(
    app: &App,
    user: &User,
    pack: u8,
    preferences: &RequestPreferences,
) -> Result<Json<CheckoutPageView>, ApiError> {
    let url = buy_credits(app, user, pack, preferences.idempotency_key.as_deref()).await?;
    Ok(Json(CheckoutPageView { url }))
}

/// The header of `create-checkout-session`, for the OpenAPI document.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "documents a header that an extractor reads")]
pub struct CheckoutHeaders {
    /// Makes a repeat return the first page.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
}

/// The status of a payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentStatus)]
pub struct PaymentStatusView {
    pub status: SessionStatus,
    pub customer_email: Option<String>,
    /// The payment page, while the status is `open`.
    pub url: Option<String>,
    /// The id of the order.
    pub checkout_id: Uuid,
    pub credits: i32,
    pub order_status: OrderStatus,
    /// True if the credits are on the account.
    pub fulfilled: bool,
}

impl From<CheckoutState> for PaymentStatusView {
    fn from(CheckoutState { status, email, url, order }: CheckoutState) -> Self {
        Self {
            status,
            customer_email: email,
            url,
            checkout_id: order.id.uuid(),
            credits: order.credits,
            order_status: order.status,
            fulfilled: order.fulfilled_at.is_some(),
        }
    }
}

/// The status of a payment. If it is paid, the call also grants the credits, unless that has happened already. Asks the
/// payment provider up to 30 times per minute; beyond that, the status is as old as the last answer.
#[utoipa::path(get, path = "/api/payments/session-status/{sessionId}", tag = "payments",
    params(("sessionId" = String, Path)),
    responses((status = 200, body = PaymentStatusView), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)),
    security(("token" = [])))]
pub async fn session_status(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    Path(session): Path<String>,
) -> Result<Json<PaymentStatusView>, ApiError> {
    let state = checkout_state(&app, user.id, &session).await?;
    Ok(Json(state.into()))
}

/// The acknowledgment of a message.
#[derive(Debug, Serialize, ToSchema)]
pub struct Received {
    received: bool,
}

/// Receives signed messages from the payment provider.
#[utoipa::path(post, path = "/api/payments/webhook", tag = "payments",
    params(("Stripe-Signature" = String, Header)),
    request_body(content = String, content_type = "application/json"),
    responses((status = 200, body = Received), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub async fn webhook(
    State(app): State<App>,
    headers: HeaderMap,
    mut request: Request,
) -> Result<Json<Received>, ApiError> {
    // Whatever its content type claims: anybody can make this process compute a signature.
    DefaultBodyLimit::max(MAX_PLAIN_BODY).apply(&mut request);
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|error| ApiError::BadRequest(error.body_text()))?;
    let signature = header_text(&headers, header::HeaderName::from_static("stripe-signature"));
    let now = app.clock.now();
    receive_message(&app, &body, signature.unwrap_or_default(), now).await?;
    Ok(Json(Received { received: true }))
}
