//! `/api/payments`: buying packs of credits.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use retouch_core::users::User;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::caller::{InPerson, Path, Wishes, sent};
use super::checkouts::OrderStatusView;
use super::problem::Problem;
use super::run::no_store;
use crate::error::ApiError;
use crate::payments::SessionIs;
use crate::state::App;
use crate::usecases::buy_credits::buy_credits;
use crate::usecases::settle_payment::{Standing, payment_status, receive_message};

/// Where to pay.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CheckoutPage)]
pub struct CheckoutPageView {
    /// The payment provider's page; send the browser there.
    pub url: String,
}

/// How `create-checkout-session` refuses, for the `OpenAPI` document.
#[derive(utoipa::IntoResponses)]
pub enum CheckoutRefusals {
    /// The request is not understood.
    #[response(status = 400)]
    BadRequest(Problem),
    /// No token.
    #[response(status = 401)]
    Unauthorized(Problem),
    /// A program's key, where a person must sign in.
    #[response(status = 403)]
    InPersonOnly(Problem),
    /// The key was used for another pack.
    #[response(status = 422)]
    KeyReused(Problem),
    /// Payments are not configured here, or the payment provider does not answer.
    #[response(status = 503)]
    Unavailable(Problem),
}

/// Opens a page to pay for pack 1. A double click, or a repeat with the same `Idempotency-Key`, gets the same
/// page.
#[utoipa::path(post, path = "/api/payments/create-checkout-session-1", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutRefusals),
    security(("token" = [])))]
pub async fn buy_pack_1(
    State(app): State<App>,
    InPerson(user): InPerson,
    wishes: Wishes,
) -> Result<Response, ApiError> {
    open_page(&app, &user, 1, &wishes).await
}

/// The same as POST.
#[utoipa::path(get, path = "/api/payments/create-checkout-session-1", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutRefusals),
    security(("token" = [])))]
pub async fn get_pack_1(
    State(app): State<App>,
    InPerson(user): InPerson,
    wishes: Wishes,
) -> Result<Response, ApiError> {
    open_page(&app, &user, 1, &wishes).await
}

/// Opens a page to pay for pack 2. A double click, or a repeat with the same `Idempotency-Key`, gets the same
/// page.
#[utoipa::path(post, path = "/api/payments/create-checkout-session-2", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutRefusals),
    security(("token" = [])))]
pub async fn buy_pack_2(
    State(app): State<App>,
    InPerson(user): InPerson,
    wishes: Wishes,
) -> Result<Response, ApiError> {
    open_page(&app, &user, 2, &wishes).await
}

/// The same as POST.
#[utoipa::path(get, path = "/api/payments/create-checkout-session-2", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutRefusals),
    security(("token" = [])))]
pub async fn get_pack_2(
    State(app): State<App>,
    InPerson(user): InPerson,
    wishes: Wishes,
) -> Result<Response, ApiError> {
    open_page(&app, &user, 2, &wishes).await
}

/// Opens a page to pay for pack 3. A double click, or a repeat with the same `Idempotency-Key`, gets the same
/// page.
#[utoipa::path(post, path = "/api/payments/create-checkout-session-3", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutRefusals),
    security(("token" = [])))]
pub async fn buy_pack_3(
    State(app): State<App>,
    InPerson(user): InPerson,
    wishes: Wishes,
) -> Result<Response, ApiError> {
    open_page(&app, &user, 3, &wishes).await
}

/// The same as POST.
#[utoipa::path(get, path = "/api/payments/create-checkout-session-3", tag = "payments",
    params(CheckoutHeaders), responses((status = 200, body = CheckoutPageView), CheckoutRefusals),
    security(("token" = [])))]
pub async fn get_pack_3(
    State(app): State<App>,
    InPerson(user): InPerson,
    wishes: Wishes,
) -> Result<Response, ApiError> {
    open_page(&app, &user, 3, &wishes).await
}

async fn open_page(
    app: &App,
    user: &User,
    pack: u8,
    wishes: &Wishes,
) -> Result<Response, ApiError> {
    let url = buy_credits(app, user, pack, wishes.idempotency_key.as_deref()).await?;
    let mut response = Json(CheckoutPageView { url }).into_response();
    no_store(&mut response);
    Ok(response)
}

/// The header that `create-checkout-session` heeds, for the `OpenAPI` document.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes a header that an extractor reads")]
pub struct CheckoutHeaders {
    /// Makes a repeat return the first page.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
}

/// Whether a page can still be paid on.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SessionStatus)]
pub enum SessionStatusView {
    Open,
    Complete,
    Expired,
}

/// How a payment stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentStatus)]
pub struct PaymentStatusView {
    pub status: SessionStatusView,
    pub customer_email: Option<String>,
    /// Where to go on paying, while the status is `open`.
    pub url: Option<String>,
    /// The order that is paid.
    pub checkout_id: Uuid,
    pub credits: i32,
    pub order_status: OrderStatusView,
    /// Whether the credits are on the account.
    pub fulfilled: bool,
}

impl From<Standing> for PaymentStatusView {
    fn from(standing: Standing) -> Self {
        let status = match standing.is {
            SessionIs::Open => SessionStatusView::Open,
            SessionIs::Complete => SessionStatusView::Complete,
            SessionIs::Expired => SessionStatusView::Expired,
        };
        let order = standing.order;
        Self {
            status,
            customer_email: standing.email,
            url: standing.url,
            checkout_id: order.id.uuid(),
            credits: order.credits,
            order_status: order.status.into(),
            fulfilled: order.fulfilled_at.is_some(),
        }
    }
}

/// How the payment on this page stands. Credits that are paid for are granted on the way.
#[utoipa::path(get, path = "/api/payments/session-status/{sessionId}", tag = "payments",
    params(("sessionId" = String, Path)),
    responses((status = 200, body = PaymentStatusView), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)),
    security(("token" = [])))]
pub async fn session_status(
    State(app): State<App>,
    InPerson(user): InPerson,
    Path(session): Path<String>,
) -> Result<Response, ApiError> {
    let standing = payment_status(&app, user.id, &session).await?;
    let mut response = Json(PaymentStatusView::from(standing)).into_response();
    no_store(&mut response);
    Ok(response)
}

/// That a message was taken in.
#[derive(Debug, Serialize, ToSchema)]
pub struct Received {
    received: bool,
}

/// For the payment provider: news about payments, signed with the secret that is configured.
#[utoipa::path(post, path = "/api/payments/webhook", tag = "payments",
    params(("Stripe-Signature" = String, Header)),
    request_body(content = String, content_type = "application/json"),
    responses((status = 200, body = Received), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 413, body = Problem)))]
pub async fn webhook(
    State(app): State<App>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Json<Received>, ApiError> {
    let body = body.map_err(|error| ApiError::BadRequest(error.body_text()))?;
    let signature = sent(&headers, header::HeaderName::from_static("stripe-signature"));
    let now = app.clock.now();
    receive_message(&app, &body, signature.unwrap_or_default(), now).await?;
    Ok(Json(Received { received: true }))
}
