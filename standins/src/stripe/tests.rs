//! The stand-in as a client, a browser and a webhook see it: over HTTP.

use std::sync::Mutex;

use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use reqwest::Response;

use super::create::tests::body;
use super::*;
use crate::testing::eventually;

fn http() -> reqwest::Client {
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().no_proxy();
    client.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Calls the API with the right key.
async fn call(stripe: &StripeStandIn, path: &str, body: Option<String>) -> Response {
    let address = format!("{}{path}", stripe.url);
    let request = match body {
        Some(body) => http().post(address).body(body),
        None => http().get(address),
    };
    request.bearer_auth(&stripe.secret_key).send().await.unwrap()
}

async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

async fn create(stripe: &StripeStandIn, more: &str) -> Value {
    let response = call(stripe, "/v1/checkout/sessions", Some(body(more))).await;
    assert_eq!(response.status(), 200);
    json_of(response).await
}

async fn new_session(stripe: &StripeStandIn) -> String {
    create(stripe, "&cancel_url=http://ui.test/pricing").await["id"].as_str().unwrap().to_owned()
}

async fn press(stripe: &StripeStandIn, session: &str, fields: &str) -> Response {
    let address = format!("{}/pay/{session}", stripe.url);
    http().post(address).body(fields.to_owned()).send().await.unwrap()
}

fn location(response: &Response) -> String {
    assert_eq!(response.status(), 303);
    response.headers()["location"].to_str().unwrap().to_owned()
}

fn kinds(stripe: &StripeStandIn) -> Vec<String> {
    stripe.events().iter().map(|(body, _)| kind(body)).collect()
}

fn kind(body: &str) -> String {
    parsed(body)["type"].as_str().unwrap().to_owned()
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

/// A webhook that stores the received messages, after refusing the first few requests.
struct Webhook(Arc<Mutex<Received>>);

struct Received {
    refuse: usize,
    accepted: Vec<(String, String)>,
}

impl Webhook {
    /// Starts a webhook and a stand-in that sends events to it.
    async fn start(refuse: usize) -> (Self, StripeStandIn) {
        let webhook = Self(Arc::new(Mutex::new(Received { refuse, accepted: Vec::new() })));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/hook", listener.local_addr().unwrap());
        let received = webhook.0.clone();
        let hook = post(move |headers: HeaderMap, body: String| async move {
            let mut received = received.lock().unwrap();
            if received.refuse > 0 {
                received.refuse -= 1;
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            let signature = headers["stripe-signature"].to_str().unwrap().to_owned();
            received.accepted.push((body, signature));
            StatusCode::OK
        });
        let app = axum::Router::new().route("/hook", hook);
        tokio::spawn(async move { axum::serve(listener, app).await });
        (webhook, StripeStandIn::start_with(Some(address)).await)
    }

    fn accepted(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().accepted.clone()
    }
}

#[tokio::test]
async fn the_api_requires_the_key() {
    let stripe = StripeStandIn::start().await;
    let address = format!("{}/v1/checkout/sessions", stripe.url);
    for key in ["sk_test_other", "", "pk_test_1"] {
        let response = http().post(&address).bearer_auth(key).body(body("")).send().await.unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(json_of(response).await["error"]["type"], "invalid_request_error");
    }
    assert_eq!(http().post(&address).body(body("")).send().await.unwrap().status(), 401);
    assert_eq!(call(&stripe, "/v1/customers", None).await.status(), 404);
    assert!(stripe.sessions().is_empty());
}

#[tokio::test]
async fn a_session_can_be_bought_from_end_to_end() {
    let (webhook, stripe) = Webhook::start(0).await;
    let created = create(&stripe, "&client_reference_id=u1&metadata[pack]=3").await;
    let id = created["id"].as_str().unwrap();
    let address = created["url"].as_str().unwrap();
    let page = http().get(address).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("No money moves here") && page.contains("$2.00"));

    let response = press(&stripe, id, "action=pay&email=a@b.c").await;
    assert_eq!(location(&response), format!("http://ui.test/r?s={id}"));
    // The webhook received the event before the redirect.
    let (body, signature) = webhook.accepted().pop().unwrap();
    let event = parsed(&body);
    assert_eq!(event["type"], "checkout.session.completed");
    assert_eq!(event["data"]["object"]["payment_status"], "paid");
    assert_eq!(event["data"]["object"]["client_reference_id"], "u1");
    assert_eq!(event["data"]["object"]["metadata"], json!({"pack": "3"}));
    let time: i64 = signature[2..].split_once(',').unwrap().0.parse().unwrap();
    assert_eq!(signature, events::sign(&stripe.webhook_secret, &body, time));

    let session = json_of(call(&stripe, &format!("/v1/checkout/sessions/{id}"), None).await).await;
    assert_eq!(session, event["data"]["object"]);
}

#[tokio::test]
async fn a_repeated_request_creates_one_session() {
    let stripe = StripeStandIn::start().await;
    let address = format!("{}/v1/checkout/sessions", stripe.url);
    let send = |key: &str, body: String| {
        let request = http().post(&address).bearer_auth(&stripe.secret_key);
        request.header("idempotency-key", key).body(body).send()
    };
    let refused = send("order-1", body("&color=red")).await.unwrap();
    assert_eq!(refused.status(), 400, "a refused request does not use up its key");
    let first = json_of(send("order-1", body("")).await.unwrap()).await;
    assert_eq!(json_of(send("order-1", body("")).await.unwrap()).await, first);

    let other = send("order-1", body("&client_reference_id=u2")).await.unwrap();
    assert_eq!(other.status(), 400);
    assert_eq!(json_of(other).await["error"]["type"], "idempotency_error");
    assert_ne!(json_of(send("order-2", body("")).await.unwrap()).await["id"], first["id"]);
    assert_eq!(stripe.sessions().len(), 2);
}

#[tokio::test]
async fn every_button_leads_somewhere() {
    let stripe = StripeStandIn::start().await;
    let id = new_session(&stripe).await;
    assert_eq!(location(&press(&stripe, &id, "action=back").await), "http://ui.test/pricing");
    let declined = press(&stripe, &id, "action=decline").await;
    assert_eq!(location(&declined), format!("/pay/{id}?declined"));
    assert_eq!(press(&stripe, &id, "action=pay&email=nobody").await.status(), 400);
    assert_eq!(press(&stripe, &id, "action=dance").await.status(), 400);
    assert_eq!(press(&stripe, "cs_test_unknown", "action=pay").await.status(), 404);
    assert!(kinds(&stripe).is_empty());
    let later = press(&stripe, &id, "action=pay_later&email=a@b.c").await;
    assert_eq!(location(&later), format!("http://ui.test/r?s={id}"));
    for fields in [
        "action=succeed",
        "action=refund&amount=50",
        "action=inquire",
        "action=escalate",
        "action=lose",
    ] {
        assert_eq!(location(&press(&stripe, &id, fields).await), format!("/pay/{id}"), "{fields}");
    }
    assert_eq!(
        kinds(&stripe),
        [
            "checkout.session.completed",
            "checkout.session.async_payment_succeeded",
            "charge.refunded",
            "charge.dispute.created",
            "charge.dispute.updated",
            "charge.dispute.funds_withdrawn",
            "charge.dispute.closed",
        ]
    );
    let bodies: Vec<_> = stripe.events().iter().map(|(body, _)| parsed(body)).collect();
    assert_eq!(bodies[0]["data"]["object"]["payment_status"], "unpaid");
    assert_eq!(bodies[1]["data"]["object"]["payment_status"], "paid");
    assert_eq!(bodies[2]["data"]["object"]["amount_refunded"], 50);
    assert_eq!(bodies[3]["data"]["object"]["amount"], 150);
    assert_eq!(bodies[3]["data"]["object"]["status"], "warning_needs_response");
    assert_eq!(bodies[5]["data"]["object"]["status"], "needs_response");
    assert_eq!(bodies[6]["data"]["object"]["status"], "lost");
}

#[tokio::test]
async fn a_session_expires_from_the_page_and_through_the_api() {
    let stripe = StripeStandIn::start().await;
    let (first, second) = (new_session(&stripe).await, new_session(&stripe).await);
    assert_eq!(location(&press(&stripe, &first, "action=expire").await), format!("/pay/{first}"));
    assert_eq!(press(&stripe, &first, "action=pay&email=a@b.c").await.status(), 400);
    let expire = async |id: &str| {
        let path = format!("/v1/checkout/sessions/{id}/expire");
        call(&stripe, &path, Some(String::new())).await
    };
    assert_eq!(expire(&first).await.status(), 400);
    let expired = json_of(expire(&second).await).await;
    assert_eq!((&expired["status"], &expired["url"]), (&json!("expired"), &Value::Null));
    assert_eq!(kinds(&stripe), ["checkout.session.expired"; 2]);
}

#[tokio::test]
async fn an_event_is_sent_again_until_the_webhook_accepts_it() {
    let (webhook, stripe) = Webhook::start(1).await;
    stripe.pay(&new_session(&stripe).await).await;
    assert!(webhook.accepted().is_empty());
    let accepted = || async { webhook.accepted().pop() };
    eventually(Duration::from_secs(10), "an event", accepted).await;
    assert_eq!(webhook.accepted().len(), 1);
}

#[tokio::test]
async fn requests_to_create_a_session_fail_on_request() {
    let stripe = StripeStandIn::start().await;
    let send = || call(&stripe, "/v1/checkout/sessions", Some(body("")));
    stripe.fail_next(2);
    assert_eq!(send().await.status(), 500);
    assert_eq!(send().await.status(), 500);
    assert!(stripe.sessions().is_empty());
    assert_eq!(send().await.status(), 200);
}

fn engine_with_session(settings: &Settings, clock: &Clock) -> (Arc<Engine>, String) {
    let (engine, _) = Engine::open(settings.clone(), clock.clone()).unwrap();
    let created = engine.change(|store, now| {
        let session = super::create::create(&form::Form::parse(body("").as_bytes())?, now)?;
        let id = session.id.clone();
        store.sessions.insert(id.clone(), session);
        Ok((id, None))
    });
    (engine, created.unwrap().0)
}

fn settings() -> Settings {
    Settings {
        secret_key: "sk_test_1".into(),
        webhook_secret: "whsec_1".into(),
        public_url: "http://stripe.test".into(),
        webhook: Some("http://127.0.0.1:9/hook".into()),
        data: None,
    }
}

#[test]
fn an_overdue_session_expires_and_publishes_an_event() {
    let now = Clock::system().now();
    let clock = Clock::fixed(now);
    let (engine, id) = engine_with_session(&settings(), &clock);
    let status = || engine.read(|store| store.session(&id).unwrap().status);
    let second = now + Duration::from_secs(1) - now;
    clock.advance((now + Duration::from_hours(24) - now) - second);
    assert_eq!(status(), session::Status::Open);
    clock.advance(second);
    assert_eq!(status(), session::Status::Expired);
    let (body, _) = engine.signed_events(None).pop().unwrap();
    assert_eq!(kind(&body), "checkout.session.expired");
}

#[test]
fn sessions_and_undelivered_events_survive_a_restart() {
    let folder = tempfile::TempDir::new().unwrap();
    let settings = Settings { data: Some(folder.path().into()), ..settings() };
    let (engine, id) = engine_with_session(&settings, &Clock::system());
    engine.act(&id, Action::Pay, Some("a@b.c")).unwrap();
    drop(engine);

    let (engine, mut deliveries) = Engine::open(settings, Clock::system()).unwrap();
    assert!(engine.read(|store| store.session(&id).unwrap().is_paid()));
    let event = deliveries.try_recv().unwrap().event;
    let (body, _) = engine.signed(&event).unwrap();
    assert_eq!(kind(&body), "checkout.session.completed");
}
