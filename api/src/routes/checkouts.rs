//! `/api/checkouts`: the caller's orders.

use axum::Json;
use axum::extract::State;
use retouch_core::orders::{self, Order, OrderStatus};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::caller::TokenUser;
use crate::http::problem::Problem;
use crate::http::request::{Path, id};
use crate::state::App;

/// An order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Checkout)]
pub struct CheckoutView {
    pub id: Uuid,
    /// `paid` is success.
    pub status: OrderStatus,
    /// True if the credits are on the account.
    pub fulfilled: bool,
    /// Seconds since 1970.
    #[schema(example = 1_772_359_200)]
    pub created_at: i64,
    #[schema(example = 20)]
    pub credits: i32,
    /// The email address that the buyer entered to pay.
    pub email: Option<String>,
    /// The price, in the currency's smallest unit.
    #[schema(example = 200)]
    pub total_amount: Option<i64>,
    /// ISO 4217, lower case.
    #[schema(example = "usd")]
    pub currency: Option<String>,
    /// The credits that were taken back after a refund or a dispute.
    pub credits_taken_back: i32,
    /// The id of the payment page, for `session-status`.
    pub session_id: Option<String>,
}

impl From<Order> for CheckoutView {
    fn from(order: Order) -> Self {
        Self {
            id: order.id.uuid(),
            status: order.status,
            fulfilled: order.fulfilled_at.is_some(),
            created_at: order.created_at.timestamp(),
            credits: order.credits,
            email: order.email,
            total_amount: Some(order.amount_cents),
            currency: Some(order.currency),
            credits_taken_back: order.credits_taken_back,
            session_id: order.session,
        }
    }
}

/// A list of orders.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CheckoutList)]
pub struct CheckoutListView {
    pub sessions: Vec<CheckoutView>,
}

/// One order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CheckoutDetail)]
pub struct CheckoutDetailView {
    pub checkout: CheckoutView,
}

/// The caller's orders, newest first.
#[utoipa::path(get, path = "/api/checkouts/", tag = "checkouts",
    responses((status = 200, body = CheckoutListView), (status = 401, body = Problem), (status = 403, body = Problem)),
    security(("token" = [])))]
pub async fn list_checkouts(
    State(app): State<App>,
    TokenUser(user): TokenUser,
) -> Result<Json<CheckoutListView>, ApiError> {
    let orders = orders::list(&app.pool, user.id).await?;
    Ok(Json(CheckoutListView { sessions: orders.into_iter().map(CheckoutView::from).collect() }))
}

/// One order.
#[utoipa::path(get, path = "/api/checkouts/{checkoutId}", tag = "checkouts",
    params(("checkoutId" = String, Path)),
    responses((status = 200, body = CheckoutDetailView), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
    security(("token" = [])))]
pub async fn get_checkout(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    Path(order): Path<String>,
) -> Result<Json<CheckoutDetailView>, ApiError> {
    let order = orders::owned(&app.pool, user.id, id(&order, "Checkout")?).await?;
    let order = order.ok_or(ApiError::NotFound("Checkout"))?;
    Ok(Json(CheckoutDetailView { checkout: order.into() }))
}
