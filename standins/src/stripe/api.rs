//! The routes of Stripe's API that Retouch, or a person with curl, may call.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::books::Books;
use super::create::{create, metadata};
use super::desk::{Desk, Failure, refund_news};
use super::events::{EventKind, News};
use super::form::Form;
use super::key;
use super::new_id;
use super::refusal::Refusal;
use super::sessions::{Payment, Session};
use super::wire::{self, Cause};

/// Everything below `/v1`, for whoever has the key.
pub fn routes(desk: &Arc<Desk>) -> Router<Arc<Desk>> {
    Router::new()
        .route("/v1/checkout/sessions", post(create_session).get(list_sessions))
        .route("/v1/checkout/sessions/{id}", get(retrieve_session))
        .route("/v1/checkout/sessions/{id}/expire", post(expire_session))
        .route("/v1/checkout/sessions/{id}/line_items", get(list_line_items))
        .route("/v1/payment_intents/{id}", get(retrieve_payment_intent))
        .route("/v1/charges/{id}", get(retrieve_charge))
        .route("/v1/refunds", post(create_refund))
        .route("/v1/{*rest}", axum::routing::any(unknown))
        .layer(axum::middleware::from_fn_with_state(desk.clone(), require_key))
}

async fn require_key(State(desk): State<Arc<Desk>>, mut request: Request, next: Next) -> Response {
    let request_id = new_id("req");
    let header = |headers: &HeaderMap, name| {
        headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let version = header(request.headers(), "stripe-version");
    let idempotency_key = header(request.headers(), "idempotency-key");
    let authorization = header(request.headers(), "authorization");
    let is_ours = authorization.is_some_and(|it| key::opens(&it, &desk.settings.secret_key));
    desk.count(|calls| {
        calls.stripe_version = version;
        calls.wrong_keys += usize::from(!is_ours);
    });
    let mut response = if !is_ours {
        Refusal::wrong_key().into_response()
    } else if idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > 255) {
        Refusal::invalid("An idempotency key has 1 to 255 characters.").into_response()
    } else {
        let cause = Cause { request: Some(request_id.clone()), idempotency_key };
        request.extensions_mut().insert(cause);
        next.run(request).await
    };
    if let Ok(value) = request_id.parse() {
        response.headers_mut().insert("request-id", value);
    }
    response
}

async fn unknown(request: Request) -> Refusal {
    let (method, path) = (request.method(), request.uri().path());
    Refusal::unknown_address(&format!("{method}: {path}"))
}

async fn create_session(
    State(desk): State<Arc<Desk>>,
    Extension(cause): Extension<Cause>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let failure = desk.begin_create();
    match failure {
        Some(Failure::ServerError) => return Err(Refusal::server_error()),
        Some(Failure::RateLimit) => return Err(Refusal::rate_limit()),
        Some(Failure::Hang) => std::future::pending().await,
        Some(Failure::Lost) | None => {}
    }
    let answer = once(&desk, &cause, "/v1/checkout/sessions", &body, |form, books, now| {
        let session = create(form, now)?;
        let object = expanded(&session, form, &desk);
        books.sessions.insert(session.id.clone(), session);
        Ok((object, None))
    });
    if failure == Some(Failure::Lost) {
        std::future::pending::<()>().await;
    }
    answer
}

async fn retrieve_session(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Refusal> {
    desk.count(|calls| calls.retrieves += 1);
    let form = query_form(query)?;
    desk.look(|books| Ok(Json(expanded(books.session(&id)?, &form, &desk))))
}

async fn list_sessions(
    State(desk): State<Arc<Desk>>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Refusal> {
    let form = query_form(query)?;
    let limit = form.integer("limit", "limit")?.unwrap_or(10).clamp(1, 100);
    let fits = |session: &&Session| {
        let payment = session.payment.as_ref();
        let intent = form.text("payment_intent");
        let status = serde_json::to_value(session.status).unwrap_or_default();
        intent.is_none_or(|intent| payment.is_some_and(|payment| payment.intent == intent))
            && form.text("status").is_none_or(|wanted| status == wanted)
            && form.text("starting_after").is_none_or(|after| session.id.as_str() < after)
    };
    desk.look(|books| {
        let mut found = books.sessions.values().rev().filter(fits);
        let page = found.by_ref().take(limit as usize);
        let page = page.map(|session| wire::session(session, &desk.settings.public_url));
        let page: Vec<_> = page.collect();
        Ok(Json(wire::list("/v1/checkout/sessions", &page, found.next().is_some())))
    })
}

async fn list_line_items(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    desk.look(|books| Ok(Json(wire::line_items(books.session(&id)?))))
}

async fn expire_session(
    State(desk): State<Arc<Desk>>,
    Extension(cause): Extension<Cause>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    desk.count(|calls| calls.expires += 1);
    let path = format!("/v1/checkout/sessions/{id}/expire");
    once(&desk, &cause, &path, &body, |_, books, _| {
        let session = books.session_mut(&id)?;
        let kind: EventKind = session.expire()?;
        let object = wire::session(session, &desk.settings.public_url);
        Ok((object.clone(), Some(News { kind, object })))
    })
}

async fn retrieve_payment_intent(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    payment_object(&desk, &id, wire::payment_intent)
}

async fn retrieve_charge(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    payment_object(&desk, &id, wire::charge)
}

fn payment_object(
    desk: &Desk,
    id: &str,
    object: fn(&Session, &Payment) -> Value,
) -> Result<Json<Value>, Refusal> {
    desk.look(|books| {
        let session = books.session_of_payment(id)?;
        let payment = session.payment.as_ref().expect("it was found by its payment");
        Ok(Json(object(session, payment)))
    })
}

async fn create_refund(
    State(desk): State<Arc<Desk>>,
    Extension(cause): Extension<Cause>,
    body: Bytes,
) -> Result<Response, Refusal> {
    desk.count(|calls| calls.refunds += 1);
    once(&desk, &cause, "/v1/refunds", &body, |form, books, now| {
        let payment = form.text("payment_intent").or_else(|| form.text("charge"));
        let payment = payment.ok_or_else(|| Refusal::missing("payment_intent"))?;
        let session = books.session_of_payment(payment)?.id.clone();
        let amount = form.integer("amount", "amount")?;
        let reason = form.text("reason").map(str::to_owned);
        let refund = books.refund(&session, amount, reason, metadata(form)?, now)?;
        let news = refund_news(books, &refund)?;
        let session = books.session(&session)?;
        let payment = session.payment.as_ref().expect("only what was paid goes back");
        Ok((wire::refund(session, payment, &refund), Some(news)))
    })
}

/// Does what `act` does, once for each idempotency key: a repeated request gets the first answer.
fn once(
    desk: &Desk,
    cause: &Cause,
    path: &str,
    body: &[u8],
    act: impl FnOnce(&Form, &mut Books, i64) -> Result<(Value, Option<News>), Refusal>,
) -> Result<Response, Refusal> {
    let form = Form::parse(body)?;
    let request = hex::encode(Sha256::digest(format!("{path}?{}", form.canonical())));
    let changed = desk.change(cause, |books, now| {
        let Some(key) = &cause.idempotency_key else {
            let (object, news) = act(&form, books, now)?;
            return Ok(((object, false), news));
        };
        if let Some(object) = books.answer(key, &request)? {
            return Ok(((object, true), None));
        }
        let (object, news) = act(&form, books, now)?;
        books.remember(key, request, &object, now);
        Ok(((object, false), news))
    });
    // The API does not wait for webhooks.
    let ((object, is_replay), _) = changed?;
    let mut response = Json(object).into_response();
    if is_replay {
        desk.count(|calls| calls.replays += 1);
        let headers = response.headers_mut();
        headers.insert("idempotent-replayed", axum::http::HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn expanded(session: &Session, form: &Form, desk: &Desk) -> Value {
    let mut object = wire::session(session, &desk.settings.public_url);
    for name in form.texts("expand").values() {
        match (name.as_str(), &session.payment) {
            ("line_items", _) => object[name] = wire::line_items(session),
            ("payment_intent", Some(payment)) => {
                object[name] = wire::payment_intent(session, payment);
            }
            _ => {}
        }
    }
    object
}

fn query_form(query: Option<String>) -> Result<Form, Refusal> {
    Form::parse(query.unwrap_or_default().as_bytes())
}
