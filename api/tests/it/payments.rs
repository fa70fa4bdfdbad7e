//! Buying packs, with a stand-in for the payment provider.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use retouch_api::usecases::settle_payment::check_pending_payments;
use retouch_core::{accounts, credits, orders};
use retouch_standins::stripe::{DisputeStatus, EventKind, Outcome, StripeStandIn};
use retouch_standins::testing::{eventually, sign_in, waits_for_a_lock};
use serde_json::{Value, json};
use sqlx::{Acquire, PgPool};

use crate::app::{Answer, TestApp};

const FAILED: &str = "Failed to redirect to payment, please try again later";

async fn buy(app: &TestApp, name: &str, pack: u8) -> Answer {
    let path = format!("/api/payments/create-checkout-session-{pack}");
    app.post(&path).by(&app.token(name)).send().await
}

/// Opens a payment page and returns its session.
async fn begin(app: &TestApp, stripe: &StripeStandIn, name: &str, pack: u8) -> String {
    let answer = buy(app, name, pack).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let url = answer.json()["url"].as_str().unwrap().to_owned();
    let session = stripe.sessions().into_iter().find(|id| url.contains(id.as_str()));
    session.unwrap_or_else(|| panic!("{url} is not a page of the provider"))
}

async fn status_of(app: &TestApp, name: &str, session: &str) -> Answer {
    let path = format!("/api/payments/session-status/{session}");
    app.get(&path).by(&app.token(name)).send().await
}

async fn orders(app: &TestApp, name: &str) -> Vec<Value> {
    let answer = app.get("/api/checkouts/").by(&app.token(name)).send().await;
    answer.json()["sessions"].as_array().unwrap().clone()
}

/// Returns the same message in live mode.
fn live(body: &str) -> String {
    let mut event: Value = serde_json::from_str(body).unwrap();
    event["livemode"] = json!(true);
    event.to_string()
}

/// Delivers a message like the provider.
async fn deliver(app: &TestApp, (body, signature): &(String, String)) -> Answer {
    let post = app.post("/api/payments/webhook").header("stripe-signature", signature);
    post.header("content-type", "application/json").raw(body.clone().into_bytes()).send().await
}

async fn deliver_all(app: &TestApp, stripe: &StripeStandIn) {
    for event in stripe.events() {
        assert_eq!(deliver(app, &event).await.status, StatusCode::OK);
    }
}

async fn assert_books_balance(app: &TestApp) {
    assert_eq!(credits::audit(&app.pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_pack_can_be_bought_from_end_to_end(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    assert_eq!(app.get("/api/config").send().await.json()["features"]["payments"], true);
    let opened = buy(&app, "ada", 2).await;
    assert_eq!(opened.header("cache-control"), "no-store");
    let session = begin(&app, &stripe, "ada", 2).await;
    let asked = stripe.session(&session).unwrap();
    assert_eq!((&asked["amount_total"], &asked["currency"]), (&json!(500), &json!("usd")));
    assert_eq!(asked["customer_email"], "ada@example.test");
    assert_eq!(asked["adaptive_pricing"]["enabled"], false, "the order's currency is charged");
    assert_eq!(
        asked["success_url"],
        "https://retouch.test/return?session_id={CHECKOUT_SESSION_ID}"
    );
    assert_eq!(asked["cancel_url"], "https://retouch.test/pricing");
    let order = &orders(&app, "ada").await[0];
    assert_eq!(asked["metadata"]["order"], order["id"], "the provider gets the id of our order");
    let open = status_of(&app, "ada", &session).await.json();
    assert_eq!((&open["status"], &open["fulfilled"]), (&json!("open"), &json!(false)));
    assert!(open["url"].as_str().unwrap().starts_with(&stripe.url));

    stripe.pay(&session).await;
    deliver_all(&app, &stripe).await;
    let done = status_of(&app, "ada", &session).await.json();
    assert_eq!(
        done,
        json!({"status": "complete", "customer_email": "ada@example.test", "url": null,
               "checkout_id": order["id"], "credits": 55, "order_status": "paid", "fulfilled": true})
    );
    assert_eq!(app.balance("ada").await, (75, 0));
    let path = format!("/api/checkouts/{}", order["id"].as_str().unwrap());
    let detail = app.get(&path).by(&app.token("ada")).send().await.json();
    let detail = &detail["checkout"];
    assert_eq!((&detail["status"], &detail["fulfilled"]), (&json!("paid"), &json!(true)));
    assert_eq!((&detail["total_amount"], &detail["currency"]), (&json!(500), &json!("usd")));
    assert_eq!((&detail["credits"], &detail["email"]), (&json!(55), &json!("ada@example.test")));
    assert!(detail["created_at"].as_i64().unwrap() > 1_700_000_000);
    assert_eq!(orders(&app, "bob").await, Vec::<Value>::new());
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_export_has_what_the_provider_reported_about_the_users_orders(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    for name in ["ada", "bob"] {
        let session = begin(&app, &stripe, name, 1).await;
        stripe.pay(&session).await;
    }
    deliver_all(&app, &stripe).await;
    let export = app.get("/api/user/export").by(&app.token("ada")).send().await.json();
    let [message] = export["paymentMessages"].as_array().unwrap().as_slice() else {
        panic!("{export}");
    };
    assert_eq!(message["kind"], "checkout.session.completed");
    assert_eq!(message["orderId"], export["checkouts"][0]["id"]);
    assert!(message["text"].as_str().unwrap().contains("ada@example.test"), "{message}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn every_pack_has_its_price_and_credits(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    for (pack, cents, bought) in [(1, 200, 20), (2, 500, 55), (3, 1500, 180)] {
        let before = app.balance("ada").await.0;
        // With GET, as in the product specification.
        let path = format!("/api/payments/create-checkout-session-{pack}");
        let answer = app.get(&path).by(&app.token("ada")).send().await;
        assert_eq!(answer.status, StatusCode::OK);
        let session = stripe.sessions().pop().unwrap();
        assert_eq!(stripe.session(&session).unwrap()["amount_total"], cents);
        stripe.pay(&session).await;
        assert_eq!(status_of(&app, "ada", &session).await.json()["credits"], bought);
        assert_eq!(app.balance("ada").await.0, before + bought);
    }
    let none = app.post("/api/payments/create-checkout-session-4").by(&app.token("ada"));
    assert_eq!(none.send().await.status, StatusCode::NOT_FOUND);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_return_page_grants_the_credits_without_a_message(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 1).await;
    stripe.pay(&session).await;
    let answers =
        futures::future::join_all((0..20).map(|_| status_of(&app, "ada", &session))).await;
    assert!(answers.iter().all(|answer| answer.json()["status"] == "complete"));
    assert_eq!(app.balance("ada").await, (40, 0));
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (40, 0));
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn our_own_check_grants_the_credits_without_message_or_return(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 1).await;
    stripe.pay(&session).await;
    let payments = app.app.payments.as_ref().unwrap();
    check_pending_payments(&app.app, payments).await.unwrap();
    assert_eq!(app.balance("ada").await, (20, 0), "not due yet: the message may still arrive");
    sqlx::query("update orders set next_check_at = now()").execute(&app.pool).await.unwrap();
    check_pending_payments(&app.app, payments).await.unwrap();
    assert_eq!(app.balance("ada").await, (40, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_delayed_payment_grants_the_credits_when_it_succeeds(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let succeeds = begin(&app, &stripe, "ada", 1).await;
    let fails = begin(&app, &stripe, "ada", 2).await;
    for session in [&succeeds, &fails] {
        stripe.pay_later(session).await;
        let state = status_of(&app, "ada", session).await.json();
        assert_eq!(
            (&state["status"], &state["order_status"], &state["fulfilled"]),
            (&json!("complete"), &json!("unpaid"), &json!(false))
        );
    }
    assert_eq!(app.balance("ada").await, (20, 0));
    stripe.settle(&succeeds, Outcome::Succeeded).await;
    stripe.settle(&fails, Outcome::Failed).await;
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (40, 0));
    let statuses: Vec<_> =
        orders(&app, "ada").await.iter().map(|order| order["status"].clone()).collect();
    assert_eq!(statuses, ["failed", "paid"]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_declined_card_or_an_expired_page_grants_nothing(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 1).await;
    stripe.decline(&session).await;
    assert_eq!(status_of(&app, "ada", &session).await.json()["status"], "open");
    stripe.expire(&session).await;
    deliver_all(&app, &stripe).await;
    let state = status_of(&app, "ada", &session).await.json();
    assert_eq!((&state["status"], &state["url"]), (&json!("expired"), &Value::Null));
    assert_eq!(orders(&app, "ada").await[0]["status"], "expired");
    assert_eq!(app.balance("ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn refunds_and_disputes_take_credits_back(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 2).await;
    stripe.pay(&session).await;
    stripe.refund(&session, Some(250)).await;
    // The message about the refund arrives before the one about the payment.
    let mut events = stripe.events();
    events.reverse();
    for event in &events {
        deliver(&app, event).await;
    }
    assert_eq!(app.balance("ada").await, (20 + 55 - 27, 0));
    assert_eq!(orders(&app, "ada").await[0]["credits_taken_back"], 27);
    let dispute = stripe.dispute(&session).await;
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (20, 0));
    assert_eq!(orders(&app, "ada").await[0]["status"], "disputed");
    stripe.move_dispute(&dispute, DisputeStatus::Won).await;
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (48, 0));
    assert_eq!(orders(&app, "ada").await[0]["status"], "paid");
    let other = begin(&app, &stripe, "ada", 1).await;
    stripe.pay(&other).await;
    stripe.refund(&other, None).await;
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (48, 0));
    assert_eq!(orders(&app, "ada").await[0]["status"], "refunded");
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_refund_in_another_currency_takes_back_its_share(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 2).await;
    stripe.pay(&session).await;
    deliver_all(&app, &stripe).await;
    stripe.refund(&session, Some(250)).await;
    let (body, _) = stripe.events_of(EventKind::ChargeRefunded).pop().unwrap();
    for (refunded, taken) in [(232, 27), (463, 55)] {
        let mut event: Value = serde_json::from_str(&body).unwrap();
        event["id"] = json!(format!("evt_{refunded}"));
        event["data"]["object"]["currency"] = json!("eur");
        event["data"]["object"]["amount"] = json!(463);
        event["data"]["object"]["amount_refunded"] = json!(refunded);
        let body = event.to_string();
        let signature = stripe.sign(&body);
        assert_eq!(deliver(&app, &(body, signature)).await.status, StatusCode::OK);
        assert_eq!(app.balance("ada").await, (20 + 55 - taken, 0));
    }
    assert_eq!(orders(&app, "ada").await[0]["status"], "refunded");
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_dispute_of_a_part_takes_that_part(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 2).await;
    stripe.pay(&session).await;
    deliver_all(&app, &stripe).await;
    stripe.dispute(&session).await;
    let (body, _) = stripe.events_of(EventKind::DisputeCreated).pop().unwrap();
    let mut event: Value = serde_json::from_str(&body).unwrap();
    event["data"]["object"]["amount"] = json!(250);
    let body = event.to_string();
    let signature = stripe.sign(&body);
    assert_eq!(deliver(&app, &(body, signature)).await.status, StatusCode::OK);
    assert_eq!(app.balance("ada").await, (20 + 55 - 27, 0));
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn messages_sent_again_after_a_restore_grant_the_packs_bought_since_the_backup(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 2).await;
    stripe.pay(&session).await;
    sqlx::query("delete from orders").execute(&app.pool).await.unwrap();
    deliver_all(&app, &stripe).await;
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (75, 0));
    assert_eq!(orders(&app, "ada").await[0]["status"], "paid");
    assert_eq!(status_of(&app, "ada", &session).await.json()["fulfilled"], true);
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_inquiry_takes_credits_only_when_it_becomes_a_dispute(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let mut inquiries = Vec::new();
    for pack in [1, 2] {
        let session = begin(&app, &stripe, "ada", pack).await;
        stripe.pay(&session).await;
        inquiries.push(stripe.inquire(&session).await);
    }
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (20 + 20 + 55, 0), "no money was withdrawn");
    assert_eq!(orders(&app, "ada").await[0]["status"], "paid");
    stripe.move_dispute(&inquiries[0], DisputeStatus::WarningClosed).await;
    stripe.move_dispute(&inquiries[1], DisputeStatus::NeedsResponse).await;
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (20 + 20, 0));
    assert_eq!(orders(&app, "ada").await[0]["status"], "disputed");
    stripe.move_dispute(&inquiries[1], DisputeStatus::Won).await;
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (20 + 20 + 55, 0));
    let statuses: Vec<_> =
        orders(&app, "ada").await.iter().map(|order| order["status"].clone()).collect();
    assert_eq!(statuses, ["paid", "paid"]);
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_money_of_a_dispute_moves_the_credits_whichever_message_arrives(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 2).await;
    stripe.pay(&session).await;
    let dispute = stripe.inquire(&session).await;
    stripe.move_dispute(&dispute, DisputeStatus::NeedsResponse).await;
    let only = async |kind| {
        for event in stripe.events_of(kind) {
            assert_eq!(deliver(&app, &event).await.status, StatusCode::OK);
        }
    };
    only(EventKind::SessionCompleted).await;
    only(EventKind::FundsWithdrawn).await;
    assert_eq!(app.balance("ada").await, (20, 0));
    stripe.move_dispute(&dispute, DisputeStatus::Won).await;
    only(EventKind::FundsReinstated).await;
    // Late messages of the inquiry and the dispute change nothing.
    deliver_all(&app, &stripe).await;
    assert_eq!(app.balance("ada").await, (75, 0));
    assert_books_balance(&app).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_signed_message_with_nul_is_malformed_or_harmless(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 1).await;
    stripe.pay(&session).await;
    stripe.refund(&session, Some(100)).await;
    let with = |body: &str, path: &str| {
        let mut event: Value = serde_json::from_str(body).unwrap();
        *event.pointer_mut(path).unwrap() = json!("a\0b");
        let body = event.to_string();
        let signature = stripe.sign(&body);
        (body, signature)
    };
    let (paid, _) = stripe.events_of(EventKind::SessionCompleted).pop().unwrap();
    let (refunded, _) = stripe.events_of(EventKind::ChargeRefunded).pop().unwrap();
    for (body, path) in [
        (&paid, "/id"),
        (&paid, "/type"),
        (&paid, "/data/object/id"),
        (&paid, "/data/object/payment_intent"),
        (&refunded, "/data/object/payment_intent"),
    ] {
        let answer = deliver(&app, &with(body, path)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}: {}", answer.text());
    }
    // The payment counts, only the address is dropped.
    let answer = deliver(&app, &with(&paid, "/data/object/customer_details/email")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(app.balance("ada").await, (40, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn messages_without_a_valid_signature_are_rejected(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 1).await;
    stripe.pay(&session).await;
    let (body, good) = stripe.events_of(EventKind::SessionCompleted).pop().unwrap();
    let other = StripeStandIn::start().await;
    let mut forged = vec![
        (body.clone(), String::new()),
        (body.clone(), "t=1,v1=00".into()),
        (body.clone(), "nonsense".into()),
        (body.clone(), other.sign(&body)),
        (body.clone(), stripe.sign_aged(&body, 301)),
        (body.clone(), stripe.sign_aged(&body, -301)),
        (format!("{body} "), good.clone()),
        (String::new(), good.clone()),
    ];
    // With one bit flipped, at a hundred positions.
    for place in (0..body.len()).step_by(body.len() / 100) {
        let mut bytes = body.clone().into_bytes();
        bytes[place] ^= 1;
        if let Ok(changed) = String::from_utf8(bytes) {
            forged.push((changed, good.clone()));
        }
    }
    for event in &forged {
        let answer = deliver(&app, event).await;
        answer.is_problem(400, "This message is not signed by the payment provider.");
    }
    // Validly signed, but in live mode or malformed.
    for odd in [live(&body), "{}".into(), "[]".into()] {
        assert_eq!(
            deliver(&app, &(odd.clone(), stripe.sign(&odd))).await.status,
            StatusCode::BAD_REQUEST
        );
    }
    let (events,): (i64,) =
        sqlx::query_as("select count(*) from payment_events").fetch_one(&app.pool).await.unwrap();
    assert_eq!((events, app.balance("ada").await), (0, (20, 0)));
    // While a secret is being replaced, messages have two signatures, and one valid signature suffices.
    let (time, right) = good.split_once(',').unwrap();
    let both = (body.clone(), format!("{time},v1={},{right}", "0".repeat(64)));
    assert_eq!(deliver(&app, &both).await.status, StatusCode::OK);
    assert_eq!(app.balance("ada").await, (40, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn double_clicks_and_repeated_keys_return_the_same_page(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let clicks = futures::future::join_all((0..10).map(|_| buy(&app, "ada", 1))).await;
    let mut urls: Vec<_> = clicks.iter().map(|click| click.json()["url"].clone()).collect();
    urls.dedup();
    assert_eq!((urls.len(), stripe.sessions().len(), orders(&app, "ada").await.len()), (1, 1, 1));
    let keyed = |pack: u8| {
        let path = format!("/api/payments/create-checkout-session-{pack}");
        app.post(&path).by(&app.token("ada")).header("idempotency-key", "click").send()
    };
    let first = keyed(1).await.json();
    assert_ne!(first["url"], urls[0]);
    assert_eq!(keyed(1).await.json(), first);
    // A second page of one order could be paid, and would grant nothing.
    sqlx::query("update orders set created_at = now() - interval '4 days'")
        .execute(&app.pool)
        .await
        .unwrap();
    assert_eq!(retouch_core::orders::expire_abandoned(&app.pool).await.unwrap(), 2);
    assert_eq!(keyed(1).await.json(), first);
    keyed(2)
        .await
        .is_problem(422, "This Idempotency-Key was already used for a different request.");
    assert_eq!(stripe.sessions().len(), 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn failed_requests_to_the_provider_are_retried_then_reported(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    stripe.fail_next(2);
    begin(&app, &stripe, "ada", 1).await;
    stripe.fail_next(100);
    buy(&app, "ada", 2).await.is_problem(503, FAILED);
    stripe.fail_next(0);
    // The next click continues with the same order.
    begin(&app, &stripe, "ada", 2).await;
    assert_eq!((stripe.sessions().len(), orders(&app, "ada").await.len()), (2, 2));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_a_provider_key_nothing_is_sold(pool: PgPool) {
    let app = TestApp::start(pool).await;
    assert_eq!(app.get("/api/config").send().await.json()["features"]["payments"], false);
    buy(&app, "ada", 1).await.is_problem(503, FAILED);
    let message = ("{}".to_owned(), "t=1,v1=00".to_owned());
    deliver(&app, &message).await.is_problem(404, "Payment not found");
    let (placed,): (i64,) =
        sqlx::query_as("select count(*) from orders").fetch_one(&app.pool).await.unwrap();
    assert_eq!(placed, 0);
}

/// Delivers the messages of 100 sessions 100 times each, shuffled and 16 at a time, mixed with visits of the return page.
#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_hundred_sessions_replayed_a_hundred_times_are_a_hundred_grants(pool: PgPool) {
    use futures::StreamExt;

    let (app, stripe) = TestApp::start_selling(pool).await;
    let app = Arc::new(app);
    let mut sessions = Vec::new();
    for buyer in 0..100 {
        let session = begin(&app, &stripe, &format!("buyer-{buyer}"), 1).await;
        stripe.pay(&session).await;
        sessions.push((buyer, session));
    }
    let events = stripe.events();
    assert_eq!(events.len(), 100);
    // A step coprime to the total visits every index once, in a scrambled order.
    let total = events.len() * 100;
    let visits = (0..total).map(|visit| visit * 7919 % total);
    let answers = futures::stream::iter(visits)
        .map(|visit| {
            let (app, event) = (app.clone(), events[visit % 100].clone());
            let (buyer, session) = sessions[visit % 100].clone();
            async move {
                if visit / 100 % 10 == 3 {
                    status_of(&app, &format!("buyer-{buyer}"), &session).await.status
                } else {
                    deliver(&app, &event).await.status
                }
            }
        })
        .buffer_unordered(16)
        .all(|status| async move { status == StatusCode::OK });
    assert!(answers.await);
    let (grants, sum): (i64, i64) =
        sqlx::query_as("select count(*), sum(amount) from ledger where kind = 'purchase'")
            .fetch_one(&app.pool)
            .await
            .unwrap();
    assert_eq!((grants, sum), (100, 2000));
    assert_books_balance(&app).await;
}
#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn nobody_opens_payment_pages_without_end(pool: PgPool) {
    let (app, _stripe) = TestApp::start_selling(pool).await;
    let token = app.token("ada");
    let open = async |n: usize| {
        let post = app.post("/api/payments/create-checkout-session-1").by(&token);
        post.header("idempotency-key", &format!("key {n}")).send().await
    };
    let mut opened = 0;
    let refused = loop {
        let answer = open(opened).await;
        if answer.status != StatusCode::OK || opened > 90 {
            break answer;
        }
        opened += 1;
    };
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "after {opened}");
    assert!(refused.text().contains("You can start 30 purchases per minute."));
    assert_eq!(buy(&app, "bob", 1).await.status, StatusCode::OK);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_address_that_the_provider_refuses_prevents_no_purchase(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    // No valid local part, though identity providers may allow it.
    let session = begin(&app, &stripe, "ada lovelace", 1).await;
    assert_eq!(stripe.session(&session).unwrap()["customer_email"], Value::Null);
    assert_eq!(begin(&app, &stripe, "ada lovelace", 1).await, session, "a double click");
    stripe.pay(&session).await;
    assert_eq!(status_of(&app, "ada lovelace", &session).await.json()["fulfilled"], true);
}

/// Places an order whose payment page the provider does not know.
async fn lost_order(app: &TestApp) -> &'static str {
    let ada = sign_in(&app.pool, &app.issuer.url, "ada").await.id;
    let order = orders::place(&app.pool, ada, &credits::PACKS[0], None).await.unwrap();
    let url = "https://pay.test/1";
    orders::attach_session(&app.pool, &order, "cs_lost", url).await.unwrap();
    "cs_lost"
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_that_cannot_be_checked_says_so(pool: PgPool) {
    let (app, _stripe) = TestApp::start_selling(pool).await;
    let session = lost_order(&app).await;
    let text =
        "We could not check your payment. It is not lost: a paid order always gets its credits.";
    status_of(&app, "ada", session).await.is_problem(503, text);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn beyond_the_limit_the_status_of_a_payment_comes_from_our_order(pool: PgPool) {
    let (app, _stripe) = TestApp::start_selling(pool).await;
    let session = lost_order(&app).await;
    let mut asked = 0;
    let known = loop {
        let answer = status_of(&app, "ada", session).await;
        if answer.status == StatusCode::OK || asked > 90 {
            break answer;
        }
        asked += 1;
    };
    assert!((30..90).contains(&asked), "the provider was asked {asked} times");
    let known = known.json();
    assert_eq!((&known["status"], &known["fulfilled"]), (&json!("open"), &json!(false)));
    assert_eq!(known["url"], "https://pay.test/1");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_client_that_hangs_up_while_its_account_is_deleted_leaves_no_page_open(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let session = begin(&app, &stripe, "ada", 1).await;
    app.upload("ada").await;
    // The account ends, and then its pictures are erased, which waits for this lock.
    let mut connection = app.pool.acquire().await.unwrap();
    let mut busy = connection.begin().await.unwrap();
    sqlx::query("select from images for update").execute(&mut *busy).await.unwrap();
    let ada = app.token("ada");
    tokio::select! {
        answer = app.delete("/api/user").by(&ada).send() => panic!("{}", answer.text()),
        () = waits_for_a_lock(&app.pool) => {}
    }
    busy.commit().await.unwrap();
    eventually(Duration::from_secs(10), "the page is closed", async || {
        (stripe.session(&session).unwrap()["status"] == "expired").then_some(())
    })
    .await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn our_own_check_closes_a_page_that_a_deleted_account_left_open(pool: PgPool) {
    let (app, stripe) = TestApp::start_selling(pool).await;
    let (adas, bobs) = (begin(&app, &stripe, "ada", 1).await, begin(&app, &stripe, "bob", 1).await);
    let ada = sign_in(&app.pool, &app.issuer.url, "ada").await.id;
    // As if the process ended before it could close the page.
    accounts::delete(&app.pool, ada, &[1; 32]).await.unwrap().unwrap();
    sqlx::query("update orders set next_check_at = now()").execute(&app.pool).await.unwrap();
    check_pending_payments(&app.app, app.app.payments.as_ref().unwrap()).await.unwrap();
    let status = |session: &str| stripe.session(session).unwrap()["status"].clone();
    assert_eq!((status(&adas), status(&bobs)), (json!("expired"), json!("open")));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_check_asks_about_every_payment_that_is_due(pool: PgPool) {
    let (app, _stripe) = TestApp::start_selling(pool).await;
    let ada = sign_in(&app.pool, &app.issuer.url, "ada").await.id;
    for n in 0..45 {
        let key = format!("key {n}");
        let order = orders::place(&app.pool, ada, &credits::PACKS[0], Some(&key)).await.unwrap();
        let (session, url) = (format!("cs_{n}"), "https://pay.test/1");
        orders::attach_session(&app.pool, &order, &session, url).await.unwrap();
    }
    let due = "update orders set next_check_at = now() - interval '1 second'";
    sqlx::query(due).execute(&app.pool).await.unwrap();
    check_pending_payments(&app.app, app.app.payments.as_ref().unwrap()).await.unwrap();
    let left = "select count(*) from orders where next_check_at < now()";
    let left: i64 = sqlx::query_scalar(left).fetch_one(&app.pool).await.unwrap();
    assert_eq!(left, 0);
}
