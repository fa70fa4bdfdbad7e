//! What only a stand-in has: switches for what goes wrong, and the things that otherwise other people do.
//!
//! No key is asked for. Routes that need no unguessable id take JSON alone: a browser does not send that from
//! another site's page without asking, and is not answered.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::books::DisputeStatus;
use super::delivery::Delivery;
use super::desk::{Action, Desk, Failure};
use super::form::Form;
use super::page::told;
use super::refusal::Refusal;
use super::sessions::Outcome;
use super::wire::Cause;

/// Everything below `/stand-in`.
pub fn routes() -> Router<Arc<Desk>> {
    Router::new()
        .route("/stand-in", get(overview))
        .route("/stand-in/delivery", get(delivery).post(set_delivery))
        .route("/stand-in/failures", post(fail_next))
        .route("/stand-in/clock", post(advance))
        .route("/stand-in/sessions/{id}/settle", post(settle))
        .route("/stand-in/disputes", post(open_dispute))
        .route("/stand-in/disputes/{id}/close", post(close_dispute))
        .route("/stand-in/events/{id}/resend", post(resend))
}

/// Says nothing about anybody's purchases: whoever reaches this port may read it.
async fn overview(State(desk): State<Arc<Desk>>) -> Json<Value> {
    let (sessions, events) = desk.look(|books| (books.sessions.len(), books.events.len()));
    Json(json!({
        "stand_in": "Stripe", "sessions": sessions, "events": events,
        "calls": desk.calls(), "delivery": desk.delivery(),
    }))
}

async fn delivery(State(desk): State<Arc<Desk>>) -> Json<Delivery> {
    Json(desk.delivery())
}

/// What is not named is off.
async fn set_delivery(
    State(desk): State<Arc<Desk>>,
    Json(delivery): Json<Delivery>,
) -> Json<Delivery> {
    desk.set_delivery(delivery);
    Json(desk.delivery())
}

#[derive(Deserialize)]
struct FailNext {
    how: Failure,
    count: usize,
}

async fn fail_next(State(desk): State<Arc<Desk>>, Json(next): Json<FailNext>) -> Json<Value> {
    desk.fail_next(next.how, next.count);
    Json(json!({"how": next.how, "count": next.count}))
}

#[derive(Deserialize)]
struct Advance {
    secs: u32,
}

async fn advance(State(desk): State<Arc<Desk>>, Json(by): Json<Advance>) -> Json<Value> {
    desk.advance(by.secs.into());
    Json(json!({"advanced_secs": by.secs}))
}

async fn settle(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let form = fields(&headers, &body)?;
    let outcome = match form.text("outcome") {
        Some("succeeded") => Outcome::Succeeded,
        Some("failed") => Outcome::Failed,
        _ => {
            return Err(Refusal::invalid("`outcome` must be succeeded or failed.").about("outcome"));
        }
    };
    told(desk.act(&id, Action::Settle(outcome), None, &Cause::default())?).await;
    Ok(Json(json!({"session": id, "outcome": form.text("outcome")})))
}

async fn open_dispute(
    State(desk): State<Arc<Desk>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let form = fields(&headers, &body)?;
    let payment = form.text("payment_intent").or_else(|| form.text("charge"));
    let payment = payment.ok_or_else(|| Refusal::missing("payment_intent"))?;
    let session = desk.look(|books| books.session_of_payment(payment).map(|it| it.id.clone()))?;
    let amount = form.integer("amount", "amount")?;
    let (dispute, first_try) = desk.open_dispute(&session, amount, form.text("reason"))?;
    told(first_try).await;
    Ok(Json(json!({"id": dispute.id, "amount": dispute.amount, "status": dispute.status})))
}

async fn close_dispute(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let form = fields(&headers, &body)?;
    let end = match form.text("outcome") {
        Some("won") => DisputeStatus::Won,
        Some("lost") => DisputeStatus::Lost,
        _ => return Err(Refusal::invalid("`outcome` must be won or lost.").about("outcome")),
    };
    let (dispute, first_try) = desk.close_dispute(&id, end)?;
    told(first_try).await;
    Ok(Json(json!({"id": dispute.id, "amount": dispute.amount, "status": dispute.status})))
}

async fn resend(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    told(desk.resend(&id)?).await;
    Ok(Json(json!({"event": id})))
}

/// The fields of a form or of a JSON object.
fn fields(headers: &HeaderMap, body: &[u8]) -> Result<Form, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        return Form::parse(body);
    }
    let object = serde_json::from_slice(body);
    object.map(|object| Form::from_json(&object)).map_err(|_| Refusal::invalid("This is not JSON."))
}
