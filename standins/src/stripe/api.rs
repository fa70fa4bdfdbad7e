//! The part of Stripe's API that Retouch calls.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::create::create;
use super::engine::Engine;
use super::error::StripeError;
use super::events::EventData;
use super::form::Form;
use super::objects;
use super::session::Action;
use super::store::Store;

/// Returns the routes below `/v1`, which require the API key.
pub fn routes(engine: &Arc<Engine>) -> Router<Arc<Engine>> {
    Router::new()
        .route("/v1/checkout/sessions", post(create_session))
        .route("/v1/checkout/sessions/{id}", get(retrieve_session))
        .route("/v1/checkout/sessions/{id}/expire", post(expire_session))
        .route("/v1/{*rest}", axum::routing::any(unknown_route))
        .layer(axum::middleware::from_fn_with_state(engine.clone(), require_key))
}

async fn require_key(
    State(engine): State<Arc<Engine>>,
    request: Request,
    next: Next,
) -> Result<Response, StripeError> {
    let key = header(request.headers(), "authorization").and_then(|it| it.strip_prefix("Bearer "));
    if key != Some(engine.settings.secret_key.as_str()) {
        return Err(StripeError::wrong_key());
    }
    Ok(next.run(request).await)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn unknown_route(request: Request) -> StripeError {
    let (method, path) = (request.method(), request.uri().path());
    StripeError::unknown_route(&format!("{method}: {path}"))
}

async fn create_session(
    State(engine): State<Arc<Engine>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, StripeError> {
    if engine.take_failure() {
        return Err(StripeError::server_error());
    }
    once(&engine, &headers, "/v1/checkout/sessions", &body, |form, store, now| {
        let session = create(form, now)?;
        let object = objects::session(&session, &engine.settings.public_url);
        store.sessions.insert(session.id.clone(), session);
        Ok((object, None))
    })
}

async fn retrieve_session(
    State(engine): State<Arc<Engine>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, StripeError> {
    let public_url = &engine.settings.public_url;
    engine.read(|store| Ok(Json(objects::session(store.session(&id)?, public_url))))
}

async fn expire_session(
    State(engine): State<Arc<Engine>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, StripeError> {
    let path = format!("/v1/checkout/sessions/{id}/expire");
    once(&engine, &headers, &path, &body, |_, store, now| {
        let session = store.session_mut(&id)?;
        let kind = session.apply(Action::Expire, None, now)?;
        let object = objects::session(session, &engine.settings.public_url);
        let event = kind.map(|kind| EventData { kind, object: object.clone() });
        Ok((object, event))
    })
}

/// Performs a change once per idempotency key; a repeated request gets the first response. Does not wait for webhooks.
fn once(
    engine: &Engine,
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
    change: impl FnOnce(&Form, &mut Store, i64) -> Result<(Value, Option<EventData>), StripeError>,
) -> Result<Json<Value>, StripeError> {
    let form = Form::parse(body)?;
    let request = hex::encode(Sha256::digest(format!("{path}?{}", form.canonical())));
    let changed = engine.change(|store, now| {
        let Some(key) = header(headers, "idempotency-key") else {
            return change(&form, store, now);
        };
        if let Some(object) = store.answer(key, &request)? {
            return Ok((object, None));
        }
        let (object, event) = change(&form, store, now)?;
        store.remember(key, request, &object, now);
        Ok((object, event))
    });
    changed.map(|(object, _)| Json(object))
}
