//! How events reach the webhook: at once and again until it takes them, or as badly as the switches say.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::desk::Desk;
use super::events::{Fate, sign};

/// The pauses between tries; about two minutes in all.
const PAUSES_SECS: [u64; 7] = [1, 2, 4, 8, 15, 30, 60];
/// How long events are gathered before they are sent in the wrong order.
const GATHERING: Duration = Duration::from_millis(500);
/// A webhook that takes longer has not taken the event.
const PATIENCE: Duration = Duration::from_secs(10);

/// What goes wrong on the way to the webhook; nothing by default.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delivery {
    /// How many copies of every event are sent, all at once.
    #[arg(long, default_value_t = 1)]
    pub copies: usize,
    /// Gather events for half a second and send the newest first.
    #[arg(long)]
    pub reordered: bool,
    /// Send events this much later, in milliseconds; the buyer is back before.
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
    /// Send nothing at all.
    #[arg(long)]
    pub missing: bool,
    /// Sign with another secret.
    #[arg(long)]
    pub wrong_signature: bool,
    /// Date signatures back by this much, in seconds.
    #[arg(long, default_value_t = 0)]
    pub signature_age_secs: i64,
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            copies: 1,
            reordered: false,
            delay_ms: 0,
            missing: false,
            wrong_signature: false,
            signature_age_secs: 0,
        }
    }
}

impl Delivery {
    /// The signature of `body` at `now`, as right or wrong as the switches want it.
    pub fn sign(&self, secret: &str, body: &str, now: i64) -> String {
        let time = now - self.signature_age_secs;
        if self.wrong_signature {
            sign(&format!("{secret}-but-another"), body, time)
        } else {
            sign(secret, body, time)
        }
    }
}

/// An event on its way.
#[derive(Debug)]
pub struct Parcel {
    /// The event's id.
    pub event: String,
    /// Told after the first try. Dropped where nobody should wait for that.
    pub first_try: oneshot::Sender<()>,
}

/// Delivers whatever comes out of `outbox`, for ever.
pub async fn run(desk: Arc<Desk>, mut outbox: UnboundedReceiver<Parcel>) {
    let client = client();
    while let Some(parcel) = outbox.recv().await {
        if !desk.delivery().reordered {
            tokio::spawn(carry(desk.clone(), client.clone(), parcel));
            continue;
        }
        let mut gathered = vec![parcel.event];
        tokio::time::sleep(GATHERING).await;
        while let Ok(parcel) = outbox.try_recv() {
            gathered.push(parcel.event);
        }
        for event in gathered.into_iter().rev() {
            let (first_try, tried) = oneshot::channel();
            tokio::spawn(carry(desk.clone(), client.clone(), Parcel { event, first_try }));
            // The next one must not overtake it; whether it was taken does not matter.
            tried.await.ok();
        }
    }
}

fn client() -> reqwest::Client {
    // Whoever was first has chosen the same one.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = reqwest::Client::builder().timeout(PATIENCE).no_proxy();
    let builder = builder.redirect(reqwest::redirect::Policy::none());
    builder
        .user_agent("Stripe/1.0 (+https://stripe.com/docs/webhooks)")
        .build()
        .expect("a client without files")
}

async fn carry(desk: Arc<Desk>, client: reqwest::Client, parcel: Parcel) {
    let Parcel { event, first_try } = parcel;
    let delivery = desk.delivery();
    let webhooks = desk.webhooks();
    let copies = webhooks.iter().flat_map(|address| std::iter::repeat_n(address, delivery.copies));
    let mut left: Vec<String> = copies.cloned().collect();
    if delivery.missing || left.is_empty() {
        return desk.set_fate(&event, Fate::Dropped);
    }
    let mut first_try = Some(first_try);
    if delivery.delay_ms > 0 {
        first_try = None;
        tokio::time::sleep(Duration::from_millis(delivery.delay_ms)).await;
    }
    for pause in std::iter::once(0).chain(PAUSES_SECS) {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        left = send_all(&desk, &client, &event, left).await;
        if left.is_empty() {
            desk.set_fate(&event, Fate::Delivered);
        }
        if let Some(first_try) = first_try.take() {
            first_try.send(()).ok();
        }
        if left.is_empty() {
            return;
        }
    }
    tracing::warn!(event.id = %event, "Gave an event up that no webhook took");
    desk.set_fate(&event, Fate::Dropped);
}

/// Sends one copy to each address at once; answers with the addresses that did not take theirs.
async fn send_all(
    desk: &Arc<Desk>,
    client: &reqwest::Client,
    event: &str,
    addresses: Vec<String>,
) -> Vec<String> {
    let mut sending = JoinSet::new();
    for address in addresses {
        let (desk, client, event) = (desk.clone(), client.clone(), event.to_owned());
        sending.spawn(async move {
            let is_taken = send(&desk, &client, &event, &address).await;
            desk.count_webhook(is_taken);
            (!is_taken).then_some(address)
        });
    }
    sending.join_all().await.into_iter().flatten().collect()
}

async fn send(desk: &Desk, client: &reqwest::Client, event: &str, address: &str) -> bool {
    let Some((body, signature)) = desk.signed(event) else { return true };
    let request = client
        .post(address)
        .header("content-type", "application/json; charset=utf-8")
        .header("stripe-signature", signature)
        .body(body);
    match request.send().await {
        Ok(answer) => {
            let status = answer.status();
            tracing::info!(event.id = %event, http.status = status.as_u16(), "Sent an event");
            status.is_success()
        }
        Err(error) => {
            // The address may carry a password.
            let error = error.without_url();
            tracing::info!(event.id = %event, %error, "Could not send an event");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_right_unless_a_switch_says_otherwise() {
        let right = Delivery::default().sign("whsec_a", "{}", 1_700_000_000);
        assert_eq!(right, sign("whsec_a", "{}", 1_700_000_000));
        let wrong = Delivery { wrong_signature: true, ..Delivery::default() };
        assert_ne!(wrong.sign("whsec_a", "{}", 1_700_000_000), right);
        let old = Delivery { signature_age_secs: 600, ..Delivery::default() };
        let expected = sign("whsec_a", "{}", 1_699_999_400);
        assert_eq!(old.sign("whsec_a", "{}", 1_700_000_000), expected);
    }

    #[test]
    fn a_switch_that_is_not_named_is_off_and_an_unknown_one_is_refused() {
        let only_copies: Delivery = serde_json::from_str(r#"{"copies": 3}"#).unwrap();
        assert_eq!(only_copies, Delivery { copies: 3, ..Delivery::default() });
        assert!(serde_json::from_str::<Delivery>(r#"{"duplicates": 3}"#).is_err());
    }
}
