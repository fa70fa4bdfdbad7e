//! `/api/webhooks`: URLs that receive events about the caller's runs and credits.
//!
//! Managing them requires a token: a webhook outlives the API key of a program. Programs may read
//! webhooks, test them, and send deliveries again.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use retouch_core::webhooks::{
    self, DeliveryProblem, DeliveryState, DisabledReason, EventType, PastDelivery, Webhook,
};
use retouch_core::{UserId, WebhookId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::caller::{SignedIn, TokenUser};
use crate::http::problem::Problem;
use crate::http::request::{JsonBody, Path, Query, id};
use crate::state::App;
use crate::usecases::manage_webhooks::{
    Wish, change_webhook, create_webhook, owned_webhook, rotate_secret, send_again, send_test,
};

/// Deliveries per page.
const PAGE: i64 = 50;
/// The threshold of `credits.low` unless the caller sets one.
const DEFAULT_CREDITS_BELOW: i32 = 20;

/// A webhook, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
pub struct WebhookView {
    id: Uuid,
    #[schema(example = "https://example.com/hooks")]
    url: String,
    description: String,
    /// The events it receives.
    events: Vec<EventType>,
    /// `credits.low` is sent when a debit takes the balance below this.
    #[schema(example = 20)]
    credits_below: i32,
    enabled: bool,
    /// Why the webhook was turned off: `gone` if the receiver answered 410, `failing` if every attempt failed for five
    /// days. Null if its owner turned it off.
    disabled_reason: Option<DisabledReason>,
    /// The first failure since the last success.
    failing_since: Option<DateTime<Utc>>,
    /// When the previous secret stops signing deliveries.
    old_secret_until: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl From<Webhook> for WebhookView {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id.uuid(),
            url: webhook.url,
            description: webhook.description,
            events: webhook.events,
            credits_below: webhook.credits_below,
            enabled: webhook.is_enabled,
            disabled_reason: webhook.disabled_reason,
            failing_since: webhook.failing_since,
            old_secret_until: webhook.old_secret_until,
            created_at: webhook.created_at,
        }
    }
}

/// Webhooks, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookList)]
pub struct WebhookListView {
    webhooks: Vec<WebhookView>,
}

/// A webhook and its new secret. Only this response contains the secret.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookWithSecret)]
pub struct WebhookWithSecretView {
    #[serde(flatten)]
    view: WebhookView,
    /// Signs deliveries: `whsec_` and base64.
    secret: String,
}

impl WebhookWithSecretView {
    fn response(status: StatusCode, (webhook, secret): (Webhook, String)) -> Response {
        let view = Self { view: webhook.into(), secret };
        (status, Json(view)).into_response()
    }
}

/// A new webhook.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookRequest {
    /// An `https` address on a public network.
    #[schema(example = "https://example.com/hooks", max_length = 2000)]
    url: String,
    /// At most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    description: String,
    /// The events to send. `webhook.test` is always sent and cannot be chosen.
    #[schema(min_items = 1)]
    events: Vec<EventType>,
    /// `credits.low` is sent when a debit takes the balance below this; 20 by default.
    #[schema(minimum = 1, maximum = 1_000_000)]
    credits_below: Option<i32>,
}

/// Changes to a webhook. Missing fields stay unchanged.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookChange {
    /// An `https` address on a public network.
    #[schema(example = "https://example.com/hooks", max_length = 2000)]
    url: Option<String>,
    /// At most 200 characters.
    #[schema(max_length = 200)]
    description: Option<String>,
    /// The events to send. `webhook.test` is always sent and cannot be chosen.
    #[schema(min_items = 1)]
    events: Option<Vec<EventType>>,
    /// `credits.low` is sent when a debit takes the balance below this.
    #[schema(minimum = 1, maximum = 1_000_000)]
    credits_below: Option<i32>,
    /// Turning a webhook off ends its waiting deliveries.
    enabled: Option<bool>,
}

/// A delivery and its last attempt.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// The header `webhook-id`.
    id: Uuid,
    event: EventType,
    /// The job; null for events that are not about a job.
    job_id: Option<Uuid>,
    state: DeliveryState,
    attempts: i16,
    attempted_at: Option<DateTime<Utc>>,
    /// The status of the last response.
    response_status: Option<i16>,
    /// Why the last attempt failed.
    problem: Option<DeliveryProblem>,
    duration_ms: Option<i32>,
    /// When the next attempt starts; null unless the delivery is waiting.
    next_attempt_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl From<PastDelivery> for DeliveryView {
    fn from(delivery: PastDelivery) -> Self {
        Self {
            id: delivery.id.uuid(),
            event: delivery.event,
            job_id: delivery.job.map(retouch_core::JobId::uuid),
            state: delivery.state,
            attempts: delivery.attempts,
            attempted_at: delivery.attempted_at,
            response_status: delivery.status,
            problem: delivery.problem,
            duration_ms: delivery.duration_ms,
            next_attempt_at: delivery.next_at,
            created_at: delivery.created_at,
        }
    }
}

/// A page of deliveries, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = DeliveryList)]
pub struct DeliveryListView {
    deliveries: Vec<DeliveryView>,
    /// Where the next page starts; null on the last one.
    next: Option<Uuid>,
}

/// Selects a page.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeliveryQuery {
    /// Where the page starts: `next` of the previous page.
    before: Option<String>,
}

/// A test event that was queued.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestView {
    delivery_id: Uuid,
}

/// The caller's webhooks, without their secrets.
#[utoipa::path(get, path = "/api/webhooks", tag = "webhooks",
    responses((status = 200, body = WebhookListView), (status = 401, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_webhooks(
    State(app): State<App>,
    SignedIn(user): SignedIn,
) -> Result<Json<WebhookListView>, ApiError> {
    let webhooks = webhooks::list(&app.pool, user.id).await?;
    Ok(Json(WebhookListView { webhooks: webhooks.into_iter().map(WebhookView::from).collect() }))
}

/// Creates a webhook. Only this response contains the secret, which signs deliveries as the Standard Webhooks
/// specification describes. An account can have five webhooks.
#[utoipa::path(post, path = "/api/webhooks", tag = "webhooks", request_body = WebhookRequest,
    responses((status = 201, body = WebhookWithSecretView), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem), (status = 500, body = Problem)),
    security(("token" = [])))]
pub async fn post_webhook(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    JsonBody(request): JsonBody<WebhookRequest>,
) -> Result<Response, ApiError> {
    let wish = Wish {
        url: Some(request.url),
        description: Some(request.description),
        events: Some(request.events),
        credits_below: Some(request.credits_below.unwrap_or(DEFAULT_CREDITS_BELOW)),
        is_enabled: None,
    };
    let made = create_webhook(&app, user.id, wish).await?;
    Ok(WebhookWithSecretView::response(StatusCode::CREATED, made))
}

/// Changes a webhook, turns it on, or off.
#[utoipa::path(patch, path = "/api/webhooks/{webhookId}", tag = "webhooks", params(("webhookId" = String, Path)),
    request_body = WebhookChange,
    responses((status = 200, body = WebhookView), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem)),
    security(("token" = [])))]
pub async fn patch_webhook(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    Path(webhook): Path<String>,
    body: Result<JsonBody<WebhookChange>, ApiError>,
) -> Result<Json<WebhookView>, ApiError> {
    let webhook = owned(&app, user.id, &webhook).await?;
    let JsonBody(request) = body?;
    let wish = Wish {
        url: request.url,
        description: request.description,
        events: request.events,
        credits_below: request.credits_below,
        is_enabled: request.enabled,
    };
    Ok(Json(change_webhook(&app, user.id, webhook, wish).await?.into()))
}

/// Deletes a webhook and its deliveries.
#[utoipa::path(delete, path = "/api/webhooks/{webhookId}", tag = "webhooks", params(("webhookId" = String, Path)),
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem)),
    security(("token" = [])))]
pub async fn delete_webhook(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    Path(webhook): Path<String>,
) -> Result<StatusCode, ApiError> {
    if webhooks::delete(&app.pool, user.id, id(&webhook, "Webhook")?).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound("Webhook"))
    }
}

/// Replaces the secret of a webhook. For a day, deliveries carry signatures of this secret and the last one. A second
/// replacement within an hour, for example because the first response was lost, replaces only the secret of the first;
/// a later one ends the use of all secrets but the last.
#[utoipa::path(post, path = "/api/webhooks/{webhookId}/secret", tag = "webhooks",
    params(("webhookId" = String, Path)),
    responses((status = 200, body = WebhookWithSecretView), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
    security(("token" = [])))]
pub async fn rotate_webhook_secret(
    State(app): State<App>,
    TokenUser(user): TokenUser,
    Path(webhook): Path<String>,
) -> Result<Response, ApiError> {
    let rotated = rotate_secret(&app, user.id, id(&webhook, "Webhook")?).await?;
    Ok(WebhookWithSecretView::response(StatusCode::OK, rotated))
}

/// Sends a test event to a webhook, in a single attempt.
#[utoipa::path(post, path = "/api/webhooks/{webhookId}/test", tag = "webhooks",
    params(("webhookId" = String, Path)),
    responses((status = 202, body = TestView), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn test_webhook(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(webhook): Path<String>,
) -> Result<Response, ApiError> {
    let webhook = owned(&app, user.id, &webhook).await?;
    let delivery_id = send_test(&app, user.id, webhook).await?.uuid();
    Ok((StatusCode::ACCEPTED, Json(TestView { delivery_id })).into_response())
}

/// The deliveries of a webhook, newest first. Those of the last 14 days are kept, and at most about a thousand.
#[utoipa::path(get, path = "/api/webhooks/{webhookId}/deliveries", tag = "webhooks",
    params(("webhookId" = String, Path), DeliveryQuery),
    responses((status = 200, body = DeliveryListView), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 404, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn list_deliveries(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path(webhook): Path<String>,
    Query(query): Query<DeliveryQuery>,
) -> Result<Json<DeliveryListView>, ApiError> {
    let webhook = owned(&app, user.id, &webhook).await?;
    let before = query.before.map(|text| text.parse()).transpose();
    let before =
        before.map_err(|_| ApiError::BadRequest("before must be `next` of a page.".into()))?;
    // One row more than the page holds shows whether another page follows.
    let mut deliveries = webhooks::deliveries(&app.pool, webhook, before, PAGE + 1).await?;
    let has_more = deliveries.len() as i64 > PAGE;
    deliveries.truncate(PAGE as usize);
    let next = deliveries.last().map(|last| last.id.uuid()).filter(|_| has_more);
    let deliveries = deliveries.into_iter().map(DeliveryView::from).collect();
    Ok(Json(DeliveryListView { deliveries, next }))
}

/// Sends a delivery again, with the same `webhook-id`.
#[utoipa::path(post, path = "/api/webhooks/{webhookId}/deliveries/{deliveryId}/resend", tag = "webhooks",
    params(("webhookId" = String, Path), ("deliveryId" = String, Path)),
    responses((status = 202), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem)),
    security(("token" = []), ("key" = [])))]
pub async fn resend_delivery(
    State(app): State<App>,
    SignedIn(user): SignedIn,
    Path((webhook, delivery)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let webhook = owned(&app, user.id, &webhook).await?;
    send_again(&app, user.id, webhook, id(&delivery, "Delivery")?).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Returns the id in the path if `owner` has such a webhook.
async fn owned(app: &App, owner: UserId, text: &str) -> Result<WebhookId, ApiError> {
    Ok(owned_webhook(app, owner, id(text, "Webhook")?).await?.id)
}
