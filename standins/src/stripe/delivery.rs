//! Delivers events to the webhook, with retries.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use super::engine::Engine;
use super::events::Fate;
use super::outbox::Delivery;

/// The delays between attempts: about two minutes in all.
const RETRY_DELAYS_SECS: [u64; 7] = [1, 2, 4, 8, 15, 30, 60];
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Delivers events until the queue closes.
pub async fn run(engine: Arc<Engine>, mut deliveries: UnboundedReceiver<Delivery>) {
    let client = client();
    while let Some(delivery) = deliveries.recv().await {
        tokio::spawn(deliver(engine.clone(), client.clone(), delivery));
    }
}

fn client() -> reqwest::Client {
    // Fails if another part of the process installed it already, which does no harm.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).no_proxy();
    let builder = builder.redirect(reqwest::redirect::Policy::none());
    builder
        .user_agent("Stripe/1.0 (+https://stripe.com/docs/webhooks)")
        .build()
        .expect("a client without certificate files")
}

async fn deliver(engine: Arc<Engine>, client: reqwest::Client, delivery: Delivery) {
    let Delivery { event, first_attempt } = delivery;
    let Some(webhook) = &engine.settings.webhook else {
        return engine.set_fate(&event, Fate::Dropped);
    };
    let mut first_attempt = Some(first_attempt);
    for delay in std::iter::once(0).chain(RETRY_DELAYS_SECS) {
        tokio::time::sleep(Duration::from_secs(delay)).await;
        let is_accepted = send(&engine, &client, &event, webhook).await;
        if is_accepted {
            engine.set_fate(&event, Fate::Delivered);
        }
        if let Some(first_attempt) = first_attempt.take() {
            first_attempt.send(()).ok();
        }
        if is_accepted {
            return;
        }
    }
    tracing::warn!(event.id = %event, "The webhook accepted none of the attempts to deliver an event");
    engine.set_fate(&event, Fate::Dropped);
}

async fn send(engine: &Engine, client: &reqwest::Client, event: &str, webhook: &str) -> bool {
    let Some((body, signature)) = engine.signed(event) else { return true };
    let request = client
        .post(webhook)
        .header("content-type", "application/json; charset=utf-8")
        .header("stripe-signature", signature)
        .body(body);
    match request.send().await {
        Ok(response) => {
            let status = response.status();
            tracing::info!(event.id = %event, http.status = status.as_u16(), "Sent an event");
            status.is_success()
        }
        Err(error) => {
            // The address may contain a password.
            let error = error.without_url();
            tracing::info!(event.id = %event, %error, "Could not send an event");
            false
        }
    }
}
