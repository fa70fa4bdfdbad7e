//! A stand-in for Stripe Checkout: the part of its API that Retouch uses, a payment page and signed webhooks. No money
//! moves.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Json;
use axum::routing::get;
use retouch_core::clock::Clock;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;

pub use self::events::EventKind;
pub use self::session::Outcome;
pub use self::settings::Settings;
pub use self::store::DisputeStatus;

use self::engine::Engine;
use self::error::StripeError;
use self::id::new_id;
use self::outbox::Delivery;
use self::page::wait_for_webhook;
use self::session::Action;

mod api;
mod create;
mod delivery;
mod engine;
mod error;
mod events;
mod form;
mod id;
mod objects;
mod outbox;
mod page;
mod session;
mod settings;
mod store;

/// How often to check for overdue sessions.
const TICK: Duration = Duration::from_millis(500);

pub async fn serve(listener: TcpListener, settings: Settings) -> anyhow::Result<()> {
    if let Some(folder) = &settings.data {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("creating {}", folder.display()))?;
    }
    let (engine, deliveries) = Engine::open(settings, Clock::system())?;
    run(listener, engine, deliveries).await
}

async fn run(
    listener: TcpListener,
    engine: Arc<Engine>,
    deliveries: UnboundedReceiver<Delivery>,
) -> anyhow::Result<()> {
    tokio::spawn(delivery::run(engine.clone(), deliveries));
    let ticking = engine.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(TICK).await;
            ticking.tick();
        }
    });
    let app = axum::Router::new()
        .merge(api::routes(&engine))
        .merge(page::routes())
        // `scripts/up` waits until this responds.
        .route("/stand-in", get(async || Json(json!({"stand_in": "Stripe"}))))
        .with_state(engine);
    axum::serve(listener, app).await.context("serving the Stripe stand-in")
}

/// A stand-in for one test, on a free port. Clones share it.
#[derive(Clone)]
pub struct StripeStandIn {
    /// The address, without a trailing slash.
    pub url: String,
    pub secret_key: String,
    pub webhook_secret: String,
    engine: Arc<Engine>,
}

impl StripeStandIn {
    /// Starts a stand-in that collects its events and sends them nowhere.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    async fn start_with(webhook: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let secret_key = new_id("sk_test");
        let webhook_secret = new_id("whsec");
        let settings = Settings {
            secret_key: secret_key.clone(),
            webhook_secret: webhook_secret.clone(),
            public_url: url.clone(),
            webhook,
            data: None,
        };
        let (engine, deliveries) = Engine::open(settings, Clock::system()).expect("an empty store");
        let served = engine.clone();
        // A separate thread, because the test's runtime may be blocked or gone when a request arrives.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener.into_std().expect("a listener"));
                run(listener.expect("a listener"), served, deliveries).await
            })
        });
        Self { url, secret_key, webhook_secret, engine }
    }

    /// The buyer pays by card. Like all actions, returns after the first attempt to deliver the event.
    pub async fn pay(&self, session: &str) {
        self.act(session, Action::Pay).await;
    }

    /// The buyer chooses a payment method that takes days.
    pub async fn pay_later(&self, session: &str) {
        self.act(session, Action::PayLater).await;
    }

    /// The delayed payment ends.
    pub async fn settle(&self, session: &str, outcome: Outcome) {
        self.act(session, Action::Settle(outcome)).await;
    }

    /// The card is declined: the session stays open, and there is no event.
    pub async fn decline(&self, session: &str) {
        self.act(session, Action::Decline).await;
    }

    pub async fn expire(&self, session: &str) {
        self.act(session, Action::Expire).await;
    }

    /// The merchant refunds `amount`, by default all that is left.
    pub async fn refund(&self, session: &str, amount: Option<i64>) {
        wait_for_webhook(allowed(self.engine.refund(session, amount))).await;
    }

    /// The buyer's bank disputes all that is left. Returns the id of the dispute.
    pub async fn dispute(&self, session: &str) -> String {
        self.open_dispute(session, DisputeStatus::NeedsResponse).await
    }

    /// The buyer's bank inquires about the payment. Returns the id of the inquiry.
    pub async fn inquire(&self, session: &str) -> String {
        self.open_dispute(session, DisputeStatus::WarningNeedsResponse).await
    }

    async fn open_dispute(&self, session: &str, status: DisputeStatus) -> String {
        let (dispute, first_attempt) = allowed(self.engine.open_dispute(session, None, status));
        wait_for_webhook(first_attempt).await;
        dispute.id
    }

    pub async fn move_dispute(&self, dispute: &str, next: DisputeStatus) {
        wait_for_webhook(allowed(self.engine.move_dispute(dispute, next))).await;
    }

    async fn act(&self, session: &str, action: Action) {
        let email = Some("buyer@example.test");
        wait_for_webhook(allowed(self.engine.act(session, action, email))).await;
    }

    /// Returns the bodies and current signatures of all events, oldest first.
    pub fn events(&self) -> Vec<(String, String)> {
        self.engine.signed_events(None)
    }

    /// Returns the bodies and current signatures of the events of one kind.
    pub fn events_of(&self, kind: EventKind) -> Vec<(String, String)> {
        self.engine.signed_events(Some(kind))
    }

    /// Returns the current `Stripe-Signature` of `body`.
    pub fn sign(&self, body: &str) -> String {
        self.sign_aged(body, 0)
    }

    /// Returns the `Stripe-Signature` that `body` had `age_secs` seconds ago.
    pub fn sign_aged(&self, body: &str, age_secs: i64) -> String {
        let now = Clock::system().now().timestamp();
        events::sign(&self.webhook_secret, body, now - age_secs)
    }

    /// Returns a session as the API renders it.
    pub fn session(&self, id: &str) -> Option<Value> {
        self.engine.read(|store| Some(objects::session(store.sessions.get(id)?, &self.url)))
    }

    /// Returns the ids of all sessions, oldest first.
    pub fn sessions(&self) -> Vec<String> {
        self.engine.read(|store| store.sessions.keys().cloned().collect())
    }

    /// Makes the next `count` requests to create a session fail with status 500.
    pub fn fail_next(&self, count: usize) {
        self.engine.fail_next(count);
    }
}

fn allowed<T>(result: Result<T, StripeError>) -> T {
    result.unwrap_or_else(|error| panic!("Stripe rejects this: {}", error.message()))
}

#[cfg(test)]
mod tests;
