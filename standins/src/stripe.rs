//! A stand-in for Stripe Checkout: the part of its API that Retouch uses, a page to pay at, and signed webhooks.
//! It speaks the real protocol, moves no money, and can go wrong on request in the ways the real one does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

pub use self::books::DisputeStatus;
pub use self::delivery::Delivery;
pub use self::desk::{Calls, Failure};
pub use self::events::EventKind;
pub use self::sessions::Outcome;

use self::delivery::Parcel;
use self::desk::{Action, Desk};
use self::wire::Cause;

mod api;
mod books;
mod controls;
mod create;
mod delivery;
mod desk;
mod events;
mod form;
mod key;
mod money;
mod page;
mod refusal;
mod sessions;
mod wire;

/// How often we look whether a session has expired.
const TICK: Duration = Duration::from_millis(500);

/// What the stand-in is told when it starts.
#[derive(Clone)]
pub struct Settings {
    /// The key that the API must be called with, `sk_test_…`.
    pub secret_key: String,
    /// The secret that events are signed with, `whsec_…`.
    pub webhook_secret: String,
    /// Where the buyer's browser reaches us, without a slash at the end.
    pub public_url: String,
    /// Where events go; nowhere if empty.
    pub webhooks: Vec<String>,
    /// The folder of the file that keeps everything; in memory alone without one.
    pub data: Option<PathBuf>,
    /// What goes wrong on the way to the webhook.
    pub delivery: Delivery,
    /// How the first requests to create a session go wrong, and how many do.
    pub failing: Option<(Failure, usize)>,
}

/// Serves the stand-in at `listener` for ever.
pub async fn serve(listener: TcpListener, settings: Settings) -> anyhow::Result<()> {
    if let Some(folder) = &settings.data {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("creating {}", folder.display()))?;
    }
    let (desk, parcels) = Desk::open(settings)?;
    run(listener, desk, parcels).await
}

async fn run(
    listener: TcpListener,
    desk: Arc<Desk>,
    parcels: UnboundedReceiver<Parcel>,
) -> anyhow::Result<()> {
    tokio::spawn(delivery::run(desk.clone(), parcels));
    let clock = desk.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(TICK).await;
            clock.tick();
        }
    });
    let app = axum::Router::new()
        .merge(api::routes(&desk))
        .merge(page::routes())
        .merge(controls::routes())
        .with_state(desk);
    axum::serve(listener, app).await.context("serving the Stripe stand-in")
}

/// An id as Stripe's look: what it is of, then letters and digits. Later ones are greater.
fn new_id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::now_v7().simple())
}

/// A stand-in of a test's own, on a free port. Clones are the same one.
///
/// Events are only collected until [`Self::set_webhook`] names a place to send them to.
#[derive(Clone)]
pub struct StripeStandIn {
    /// Its address, without a slash at the end.
    pub url: String,
    /// The key that its API must be called with.
    pub secret_key: String,
    /// The secret that its events are signed with.
    pub webhook_secret: String,
    desk: Arc<Desk>,
}

impl StripeStandIn {
    /// Starts it.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let secret_key = new_id("sk_test");
        let webhook_secret = new_id("whsec");
        let settings = Settings {
            secret_key: secret_key.clone(),
            webhook_secret: webhook_secret.clone(),
            public_url: url.clone(),
            webhooks: Vec::new(),
            data: None,
            delivery: Delivery::default(),
            failing: None,
        };
        let (desk, parcels) = Desk::open(settings).expect("empty books");
        let served = desk.clone();
        // On a thread of its own: a test's runtime may be busy or gone when a request comes.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener.into_std().expect("a listener"));
                run(listener.expect("a listener"), served, parcels).await
            })
        });
        Self { url, secret_key, webhook_secret, desk }
    }

    /// Sends events to `url` from now on.
    pub fn set_webhook(&self, url: &str) {
        self.desk.set_webhooks(vec![url.to_owned()]);
    }

    /// The buyer pays by card. Returns after the first try to tell the webhook, as do all that follow.
    pub async fn pay(&self, session: &str) {
        self.act(session, Action::Pay).await;
    }

    /// The buyer chooses a method whose money comes later.
    pub async fn pay_later(&self, session: &str) {
        self.act(session, Action::PayLater).await;
    }

    /// The money that was to come later comes, or does not.
    pub async fn settle(&self, session: &str, outcome: Outcome) {
        self.act(session, Action::Settle(outcome)).await;
    }

    /// The card is declined: the session stays open, and there is no event.
    pub async fn fail(&self, session: &str) {
        self.act(session, Action::Fail).await;
    }

    /// The session expires.
    pub async fn expire(&self, session: &str) {
        self.act(session, Action::Expire).await;
    }

    /// Somebody at the merchant's gives back `amount`, or all that is left.
    pub async fn refund(&self, session: &str, amount: Option<i64>) {
        let (_, first_try) = allowed(self.desk.refund(session, amount));
        page::told(first_try).await;
    }

    /// The buyer's bank asks for all that is left; answers with the dispute's id.
    pub async fn dispute(&self, session: &str) -> String {
        let (dispute, first_try) = allowed(self.desk.open_dispute(session, None, None));
        page::told(first_try).await;
        dispute.id
    }

    /// It is decided who keeps the money.
    pub async fn close_dispute(&self, dispute: &str, end: DisputeStatus) {
        let (_, first_try) = allowed(self.desk.close_dispute(dispute, end));
        page::told(first_try).await;
    }

    async fn act(&self, session: &str, action: Action) {
        let email = Some("buyer@example.test");
        page::told(allowed(self.desk.act(session, action, email, &Cause::default()))).await;
    }

    /// The body of every event so far with a signature made now, oldest first.
    pub fn events(&self) -> Vec<(String, String)> {
        self.desk.signed_events(None)
    }

    /// Those of one kind.
    pub fn events_of(&self, kind: EventKind) -> Vec<(String, String)> {
        self.desk.signed_events(Some(kind))
    }

    /// The `Stripe-Signature` of `body`, made now.
    pub fn sign(&self, body: &str) -> String {
        self.sign_aged(body, 0)
    }

    /// The `Stripe-Signature` of `body`, made `secs` ago.
    pub fn sign_aged(&self, body: &str, secs: i64) -> String {
        let now = retouch_core::clock::Clock::system().now().timestamp();
        events::sign(&self.webhook_secret, body, now - secs)
    }

    /// The session as the API shows it.
    pub fn session(&self, id: &str) -> Option<Value> {
        self.desk.look(|books| Some(wire::session(books.sessions.get(id)?, &self.url)))
    }

    /// The ids of all sessions, oldest first.
    pub fn sessions(&self) -> Vec<String> {
        self.desk.look(|books| books.sessions.keys().cloned().collect())
    }

    /// Turns the switches of delivery.
    pub fn set_delivery(&self, delivery: Delivery) {
        self.desk.set_delivery(delivery);
    }

    /// Lets the next `count` requests to create a session fail.
    pub fn fail_next(&self, failure: Failure, count: usize) {
        self.desk.fail_next(failure, count);
    }

    /// Moves the clock of sessions on, so that they expire. Signatures keep to the real time.
    pub fn advance(&self, by: Duration) {
        self.desk.advance(by.as_secs() as i64);
    }

    /// How often what was called.
    pub fn calls(&self) -> Calls {
        self.desk.calls()
    }
}

fn allowed<T>(result: Result<T, refusal::Refusal>) -> T {
    result.unwrap_or_else(|refusal| {
        panic!("a test asked for what Stripe refuses: {}", refusal.message())
    })
}

#[cfg(test)]
mod tests;
