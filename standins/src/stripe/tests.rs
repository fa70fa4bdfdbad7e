//! The stand-in as a client, a browser and a webhook see it: over HTTP.

use std::sync::Mutex;

use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use reqwest::Response;
use serde_json::json;

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

async fn json_of(answer: Response) -> Value {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

async fn create(stripe: &StripeStandIn, more: &str) -> Value {
    let answer = call(stripe, "/v1/checkout/sessions", Some(body(more))).await;
    assert_eq!(answer.status(), 200);
    json_of(answer).await
}

async fn new_session(stripe: &StripeStandIn) -> String {
    create(stripe, "&cancel_url=http://ui.test/pricing").await["id"].as_str().unwrap().to_owned()
}

async fn press(stripe: &StripeStandIn, session: &str, fields: &str) -> Response {
    let address = format!("{}/pay/{session}", stripe.url);
    http().post(address).body(fields.to_owned()).send().await.unwrap()
}

fn way(answer: &Response) -> String {
    assert_eq!(answer.status(), 303);
    answer.headers()["location"].to_str().unwrap().to_owned()
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

/// A webhook that keeps what it is sent, and refuses the first few.
#[derive(Clone, Default)]
struct Webhook(Arc<Mutex<Received>>);

#[derive(Default)]
struct Received {
    refuse: usize,
    taken: Vec<(String, String)>,
}

impl Webhook {
    async fn start(stripe: &StripeStandIn, refuse: usize) -> Self {
        let webhook = Self(Arc::new(Mutex::new(Received { refuse, taken: Vec::new() })));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        stripe.set_webhook(&format!("http://{}/hook", listener.local_addr().unwrap()));
        let received = webhook.0.clone();
        let hook = post(move |headers: HeaderMap, body: String| async move {
            let mut received = received.lock().unwrap();
            if received.refuse > 0 {
                received.refuse -= 1;
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            let signature = headers["stripe-signature"].to_str().unwrap().to_owned();
            received.taken.push((body, signature));
            StatusCode::OK
        });
        let app = axum::Router::new().route("/hook", hook);
        tokio::spawn(async move { axum::serve(listener, app).await });
        webhook
    }

    fn taken(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().taken.clone()
    }

    async fn eventually(&self, count: usize) -> Vec<(String, String)> {
        let enough = || async { Some(self.taken()).filter(|taken| taken.len() >= count) };
        eventually(Duration::from_secs(10), "enough events", enough).await
    }
}

#[tokio::test]
async fn only_the_key_opens_the_api() {
    let stripe = StripeStandIn::start().await;
    let address = format!("{}/v1/checkout/sessions", stripe.url);
    for key in ["sk_test_other", "", "pk_test_1"] {
        let answer = http().post(&address).bearer_auth(key).body(body("")).send().await.unwrap();
        assert_eq!(answer.status(), 401);
        assert_eq!(json_of(answer).await["error"]["type"], "invalid_request_error");
    }
    assert_eq!(http().post(&address).body(body("")).send().await.unwrap().status(), 401);
    assert_eq!((stripe.calls().wrong_keys, stripe.calls().creates), (4, 0));
    assert!(stripe.sessions().is_empty());
}

#[tokio::test]
async fn a_session_can_be_bought_from_end_to_end() {
    let stripe = StripeStandIn::start().await;
    let webhook = Webhook::start(&stripe, 0).await;
    let made = create(&stripe, "&client_reference_id=u1&metadata[pack]=3").await;
    let id = made["id"].as_str().unwrap();
    let address = made["url"].as_str().unwrap();
    let page = http().get(address).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("No money moves here") && page.contains("$2.00"));

    let answer = press(&stripe, id, "action=pay&email=a@b.c").await;
    assert_eq!(way(&answer), format!("http://ui.test/r?s={id}"));
    // The webhook was told before the buyer was sent back.
    let (body, signature) = webhook.taken().pop().unwrap();
    let event = parsed(&body);
    assert_eq!(event["type"], "checkout.session.completed");
    assert_eq!(event["data"]["object"]["payment_status"], "paid");
    assert_eq!(event["data"]["object"]["client_reference_id"], "u1");
    assert_eq!(event["data"]["object"]["metadata"], json!({"pack": "3"}));
    assert_eq!(event["request"], json!({"id": null, "idempotency_key": null}));
    let time: i64 = signature[2..].split_once(',').unwrap().0.parse().unwrap();
    assert_eq!(signature, events::sign(&stripe.webhook_secret, &body, time));

    let session = json_of(call(&stripe, &format!("/v1/checkout/sessions/{id}"), None).await).await;
    assert_eq!(session, event["data"]["object"]);
    let intent = session["payment_intent"].as_str().unwrap();
    let payment =
        json_of(call(&stripe, &format!("/v1/payment_intents/{intent}"), None).await).await;
    assert_eq!(
        (&payment["status"], &payment["amount_received"]),
        (&json!("succeeded"), &json!(200))
    );
    let path = format!("/v1/checkout/sessions?payment_intent={intent}");
    let list = json_of(call(&stripe, &path, None).await).await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    let items =
        json_of(call(&stripe, &format!("/v1/checkout/sessions/{id}/line_items"), None).await);
    assert_eq!(items.await["data"][0]["description"], "20 credits");
}

#[tokio::test]
async fn a_repeated_request_makes_one_session() {
    let stripe = StripeStandIn::start().await;
    let address = format!("{}/v1/checkout/sessions", stripe.url);
    let send = |key: &str, body: String| {
        let request = http().post(&address).bearer_auth(&stripe.secret_key);
        request.header("idempotency-key", key).body(body).send()
    };
    let first = json_of(send("order-1", body("")).await.unwrap()).await;
    let again = send("order-1", body("")).await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(json_of(again).await, first);

    let other = send("order-1", body("&client_reference_id=u2")).await.unwrap();
    assert_eq!(other.status(), 400);
    assert_eq!(json_of(other).await["error"]["type"], "idempotency_error");
    assert_ne!(json_of(send("order-2", body("")).await.unwrap()).await["id"], first["id"]);
    assert_eq!(stripe.sessions().len(), 2);
    assert_eq!((stripe.calls().creates, stripe.calls().replays), (4, 1));
}

#[tokio::test]
async fn a_refused_request_does_not_use_up_its_key() {
    let stripe = StripeStandIn::start().await;
    let address = format!("{}/v1/checkout/sessions", stripe.url);
    for (body, status) in [(body("&colour=red"), 400), (body(""), 200)] {
        let request = http().post(&address).bearer_auth(&stripe.secret_key);
        let answer = request.header("idempotency-key", "order-1").body(body).send().await.unwrap();
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn every_button_leads_somewhere() {
    let stripe = StripeStandIn::start().await;
    let id = new_session(&stripe).await;
    assert_eq!(way(&press(&stripe, &id, "action=back").await), "http://ui.test/pricing");
    assert_eq!(way(&press(&stripe, &id, "action=fail").await), format!("/pay/{id}?declined"));
    assert_eq!(press(&stripe, &id, "action=pay&email=nobody").await.status(), 400);
    assert_eq!(press(&stripe, &id, "action=dance").await.status(), 400);
    assert_eq!(press(&stripe, "cs_test_unknown", "action=pay").await.status(), 404);
    assert!(kinds(&stripe).is_empty());
    let later = press(&stripe, &id, "action=pay_later&email=a@b.c").await;
    assert_eq!(way(&later), format!("http://ui.test/r?s={id}"));
    assert_eq!(way(&press(&stripe, &id, "action=succeed").await), format!("/pay/{id}"));
    way(&press(&stripe, &id, "action=refund&amount=50").await);
    way(&press(&stripe, &id, "action=dispute").await);
    way(&press(&stripe, &id, "action=lose").await);
    assert_eq!(
        kinds(&stripe),
        [
            "checkout.session.completed",
            "checkout.session.async_payment_succeeded",
            "charge.refunded",
            "charge.dispute.created",
            "charge.dispute.closed",
        ]
    );
    let bodies: Vec<_> = stripe.events().iter().map(|(body, _)| parsed(body)).collect();
    assert_eq!(bodies[0]["data"]["object"]["payment_status"], "unpaid");
    assert_eq!(bodies[1]["data"]["object"]["payment_status"], "paid");
    assert_eq!(bodies[2]["data"]["object"]["amount_refunded"], 50);
    assert_eq!(bodies[3]["data"]["object"]["amount"], 150);
    assert_eq!(bodies[4]["data"]["object"]["status"], "lost");
}

#[tokio::test]
async fn an_expired_session_is_over() {
    let stripe = StripeStandIn::start().await;
    let id = new_session(&stripe).await;
    assert_eq!(way(&press(&stripe, &id, "action=expire").await), format!("/pay/{id}"));
    assert_eq!(press(&stripe, &id, "action=pay&email=a@b.c").await.status(), 400);
    let path = format!("/v1/checkout/sessions/{id}/expire");
    assert_eq!(call(&stripe, &path, Some(String::new())).await.status(), 400);
    assert_eq!(stripe.session(&id).unwrap()["status"], "expired");
    assert_eq!(kinds(&stripe), ["checkout.session.expired"]);
}

#[tokio::test]
async fn a_session_expires_by_itself_and_says_so() {
    let stripe = StripeStandIn::start().await;
    let webhook = Webhook::start(&stripe, 0).await;
    let id = new_session(&stripe).await;
    stripe.advance(Duration::from_mins(24 * 60 - 1));
    assert_eq!(stripe.session(&id).unwrap()["status"], "open");
    stripe.advance(Duration::from_mins(1));
    let (body, _) = webhook.eventually(1).await.pop().unwrap();
    assert_eq!(kind(&body), "checkout.session.expired");
    assert_eq!(parsed(&body)["data"]["object"]["id"], id);
    assert_eq!(press(&stripe, &id, "action=pay&email=a@b.c").await.status(), 400);
}

#[tokio::test]
async fn the_api_expires_and_refunds() {
    let stripe = StripeStandIn::start().await;
    let first = new_session(&stripe).await;
    let path = format!("/v1/checkout/sessions/{first}/expire");
    let expired = json_of(call(&stripe, &path, Some(String::new())).await).await;
    assert_eq!((&expired["status"], &expired["url"]), (&json!("expired"), &Value::Null));

    let second = new_session(&stripe).await;
    stripe.pay(&second).await;
    let intent = stripe.session(&second).unwrap()["payment_intent"].as_str().unwrap().to_owned();
    let refund = format!("payment_intent={intent}&amount=150");
    let refunded = json_of(call(&stripe, "/v1/refunds", Some(refund.clone())).await).await;
    assert_eq!((&refunded["amount"], &refunded["status"]), (&json!(150), &json!("succeeded")));
    assert_eq!(call(&stripe, "/v1/refunds", Some(refund)).await.status(), 400);
    let (body, _) = stripe.events_of(EventKind::ChargeRefunded).pop().unwrap();
    let charge = &parsed(&body)["data"]["object"];
    assert_eq!((&charge["payment_intent"], &charge["refunded"]), (&json!(intent), &json!(false)));
    assert!(parsed(&body)["request"]["id"].as_str().unwrap().starts_with("req_"));
    let unknown = call(&stripe, "/v1/refunds", Some("payment_intent=pi_none".into())).await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(call(&stripe, "/v1/customers", None).await.status(), 404);
}

#[tokio::test]
async fn an_event_is_sent_again_until_it_is_taken() {
    let stripe = StripeStandIn::start().await;
    let webhook = Webhook::start(&stripe, 1).await;
    stripe.pay(&new_session(&stripe).await).await;
    assert!(webhook.taken().is_empty());
    assert_eq!(webhook.eventually(1).await.len(), 1);
    let calls = stripe.calls();
    assert_eq!((calls.webhooks_taken, calls.webhooks_refused), (1, 1));
}

#[tokio::test]
async fn copies_arrive_and_missing_events_do_not() {
    let stripe = StripeStandIn::start().await;
    let webhook = Webhook::start(&stripe, 0).await;
    stripe.set_delivery(Delivery { copies: 3, ..Delivery::default() });
    stripe.pay(&new_session(&stripe).await).await;
    let taken = webhook.taken();
    assert_eq!(taken.len(), 3);
    assert!(taken.iter().all(|(body, _)| *body == taken[0].0));

    stripe.set_delivery(Delivery { missing: true, ..Delivery::default() });
    stripe.pay(&new_session(&stripe).await).await;
    stripe.set_delivery(Delivery::default());
    stripe.pay(&new_session(&stripe).await).await;
    assert_eq!(webhook.taken().len(), 4);
    assert_eq!(stripe.events().len(), 3);
}

#[tokio::test]
async fn late_events_come_after_the_buyer_is_back() {
    let stripe = StripeStandIn::start().await;
    let webhook = Webhook::start(&stripe, 0).await;
    stripe.set_delivery(Delivery { delay_ms: 300, ..Delivery::default() });
    stripe.pay(&new_session(&stripe).await).await;
    assert!(webhook.taken().is_empty());
    assert_eq!(webhook.eventually(1).await.len(), 1);
}

#[tokio::test]
async fn reordered_events_arrive_newest_first() {
    let stripe = StripeStandIn::start().await;
    let webhook = Webhook::start(&stripe, 0).await;
    stripe.set_delivery(Delivery { reordered: true, ..Delivery::default() });
    let id = new_session(&stripe).await;
    let (later, settled) = tokio::join!(stripe.pay_later(&id), async {
        let settling = || async { stripe.session(&id).filter(|it| it["status"] == "complete") };
        eventually(Duration::from_secs(5), "a payment on its way", settling).await;
        stripe.settle(&id, Outcome::Failed).await;
    });
    let ((), ()) = (later, settled);
    let taken = webhook.eventually(2).await;
    let kinds: Vec<_> = taken.iter().map(|(body, _)| kind(body)).collect();
    assert_eq!(kinds, ["checkout.session.async_payment_failed", "checkout.session.completed"]);
}

#[tokio::test]
async fn wrong_and_old_signatures_are_sent_on_request() {
    let stripe = StripeStandIn::start().await;
    stripe.pay(&new_session(&stripe).await).await;
    let right = stripe.events().pop().unwrap();
    let time = |signature: &str| signature[2..12].parse::<i64>().unwrap();
    assert_eq!(right.1, events::sign(&stripe.webhook_secret, &right.0, time(&right.1)));

    stripe.set_delivery(Delivery { wrong_signature: true, ..Delivery::default() });
    let wrong = stripe.events().pop().unwrap();
    assert_eq!(wrong.0, right.0);
    assert_ne!(wrong.1, events::sign(&stripe.webhook_secret, &wrong.0, time(&wrong.1)));

    stripe.set_delivery(Delivery { signature_age_secs: 600, ..Delivery::default() });
    let old = stripe.events().pop().unwrap();
    assert!((600..605).contains(&(time(&stripe.sign("{}")) - time(&old.1))));
}

#[tokio::test]
async fn the_next_creates_fail_as_asked() {
    let stripe = StripeStandIn::start().await;
    let send = || call(&stripe, "/v1/checkout/sessions", Some(body("")));
    stripe.fail_next(Failure::ServerError, 2);
    assert_eq!(send().await.status(), 500);
    assert_eq!(send().await.status(), 500);
    stripe.fail_next(Failure::RateLimit, 1);
    assert_eq!(send().await.status(), 429);
    stripe.fail_next(Failure::Hang, 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), send()).await.is_err());
    assert!(stripe.sessions().is_empty());
    stripe.fail_next(Failure::Lost, 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), send()).await.is_err());
    assert_eq!(stripe.sessions().len(), 1);
    assert_eq!(send().await.status(), 200);
    assert_eq!(stripe.calls().creates, 6);
}

#[tokio::test]
async fn switches_are_turned_over_http_by_json_alone() {
    let stripe = StripeStandIn::start().await;
    let address = format!("{}/stand-in/delivery", stripe.url);
    let as_form = http().post(&address).body("copies=2").send().await.unwrap();
    assert_eq!(as_form.status(), 415);
    let request = http().post(&address).json(&json!({"copies": 2, "delay_ms": 50}));
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(stripe.desk.delivery(), Delivery { copies: 2, delay_ms: 50, ..Delivery::default() });

    let address = format!("{}/stand-in/failures", stripe.url);
    let request = http().post(&address).json(&json!({"how": "rate_limit", "count": 1}));
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(call(&stripe, "/v1/checkout/sessions", Some(body(""))).await.status(), 429);
}

#[tokio::test]
async fn payments_settle_and_disputes_open_and_close_over_http() {
    let stripe = StripeStandIn::start().await;
    let id = new_session(&stripe).await;
    stripe.pay_later(&id).await;
    let send = |path: String, fields: String| {
        http().post(format!("{}/stand-in/{path}", stripe.url)).body(fields).send()
    };
    let settled = send(format!("sessions/{id}/settle"), "outcome=succeeded".into()).await.unwrap();
    assert_eq!(settled.status(), 200);
    let intent = stripe.session(&id).unwrap()["payment_intent"].as_str().unwrap().to_owned();
    let opened = send("disputes".into(), format!("payment_intent={intent}")).await.unwrap();
    let dispute = json_of(opened).await["id"].as_str().unwrap().to_owned();
    let closed = send(format!("disputes/{dispute}/close"), "outcome=won".into()).await.unwrap();
    assert_eq!(json_of(closed).await["status"], "won");
    assert_eq!(kinds(&stripe).last().unwrap(), "charge.dispute.closed");
}

#[tokio::test]
async fn orders_and_unsent_events_survive_a_restart() {
    let folder = tempfile::TempDir::new().unwrap();
    let settings = Settings {
        secret_key: "sk_test_1".into(),
        webhook_secret: "whsec_1".into(),
        public_url: "http://stripe.test".into(),
        webhooks: vec!["http://127.0.0.1:9/hook".into()],
        data: Some(folder.path().into()),
        delivery: Delivery::default(),
        failing: None,
    };
    let (desk, first_parcels) = Desk::open(settings.clone()).unwrap();
    let made = desk.change(&Cause::default(), |books, now| {
        let session = super::create::create(&form::Form::parse(body("").as_bytes())?, now)?;
        let id = session.id.clone();
        books.sessions.insert(id.clone(), session);
        Ok((id, None))
    });
    let id = made.unwrap().0;
    desk.act(&id, Action::Pay, Some("a@b.c"), &Cause::default()).unwrap();
    drop((desk, first_parcels));

    let (desk, mut parcels) = Desk::open(settings).unwrap();
    assert!(desk.look(|books| books.session(&id).unwrap().is_paid()));
    let unsent = parcels.try_recv().unwrap().event;
    let (body, _) = desk.signed(&unsent).unwrap();
    assert_eq!(kind(&body), "checkout.session.completed");
}
