//! The life of an order: messages in any number and order grant its credits once.

mod reversals;

use futures::future::join_all;
use retouch_core::audit::{self, Finding};
use retouch_core::credits::{Adjustment, PACKS};
use retouch_core::orders::{
    self, Message, Order, OrderStatus, Outcome, Payment, PaymentEvent, PaymentStatus, PlaceError,
    Reversal, ReversalEvent,
};
use retouch_core::{UserId, accounts, credits};
use retouch_standins::testing::{ISSUER, sign_in, user, wait_for_locks};
use sqlx::PgPool;

/// Places an order of 55 credits for $5 and records a checkout page.
async fn ordered(pool: &PgPool, buyer: UserId) -> Order {
    let order = orders::place(pool, buyer, &PACKS[1], None).await.unwrap();
    let session = format!("cs_{}", order.id);
    orders::attach_session(pool, &order, &session, "https://pay.test/").await.unwrap();
    orders::owned(pool, buyer, order.id).await.unwrap().unwrap()
}

fn payment(order: &Order, status: PaymentStatus) -> Payment {
    Payment {
        session: order.session.clone().unwrap(),
        order: Some(order.id),
        buyer: Some(order.user),
        status,
        amount_cents: Some(order.amount_cents),
        currency: Some(order.currency.clone()),
        payment_intent: Some(intent(order)),
        email: Some("ada@example.test".into()),
    }
}

fn intent(order: &Order) -> String {
    format!("pi_{}", order.id)
}

fn message(id: &str, event: PaymentEvent) -> Message {
    Message { id: id.into(), kind: "test".into(), payload: "{}".into(), event }
}

async fn receive(pool: &PgPool, id: &str, event: PaymentEvent) -> Outcome {
    orders::receive(pool, &message(id, event)).await.unwrap()
}

fn reversal(order: &Order, event: ReversalEvent) -> PaymentEvent {
    PaymentEvent::Reversal(Reversal { payment_intent: intent(order), event })
}

fn refunded(order: &Order, total_cents: i64) -> PaymentEvent {
    let of_cents = Some(order.amount_cents);
    reversal(order, ReversalEvent::Refunded { total_cents, of_cents })
}

async fn credits_of(pool: &PgPool, name: &str) -> i32 {
    assert_eq!(credits::audit(pool).await.unwrap(), []);
    sign_in(pool, ISSUER, name).await.credits
}

async fn summary(pool: &PgPool, order: &Order) -> (OrderStatus, bool, i32) {
    let order = orders::owned(pool, order.user, order.id).await.unwrap().unwrap();
    (order.status, order.fulfilled_at.is_some(), order.credits_taken_back)
}

/// Returns the checkout sessions that are due for a check.
async fn due_for_check(pool: &PgPool) -> Vec<String> {
    let due = orders::due_for_check(pool, 10).await.unwrap();
    due.into_iter().map(|due| due.session).collect()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_grants_credits_once_despite_repeated_messages(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    assert_eq!(
        receive(&pool, "evt_1", PaymentEvent::Payment(payment(&order, PaymentStatus::Paid))).await,
        Outcome::Granted
    );
    assert_eq!(
        receive(&pool, "evt_1", PaymentEvent::Payment(payment(&order, PaymentStatus::Paid))).await,
        Outcome::Repeated
    );
    assert_eq!(
        receive(&pool, "evt_2", PaymentEvent::Payment(payment(&order, PaymentStatus::Paid))).await,
        Outcome::AlreadyGranted
    );
    let again = orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
    assert_eq!(again, Outcome::AlreadyGranted);
    // Older messages change nothing.
    for late in
        [PaymentStatus::Open, PaymentStatus::Unpaid, PaymentStatus::Failed, PaymentStatus::Expired]
    {
        orders::settle(&pool, &payment(&order, late)).await.unwrap();
    }
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 0));
    assert_eq!(credits_of(&pool, "ada").await, 75);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unpaid_or_mismatching_payment_grants_nothing(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let cases = [
        (PaymentStatus::Open, OrderStatus::Open),
        (PaymentStatus::Unpaid, OrderStatus::Unpaid),
        (PaymentStatus::Failed, OrderStatus::Failed),
        (PaymentStatus::Expired, OrderStatus::Expired),
    ];
    for (reported, status) in cases {
        let order = order_again(&pool, ada).await;
        orders::settle(&pool, &payment(&order, reported)).await.unwrap();
        assert_eq!(summary(&pool, &order).await, (status, false, 0));
    }
    let order = order_again(&pool, ada).await;
    for wrong in [
        Payment { amount_cents: Some(1), ..payment(&order, PaymentStatus::Paid) },
        Payment { currency: Some("jpy".into()), ..payment(&order, PaymentStatus::Paid) },
        Payment { amount_cents: None, ..payment(&order, PaymentStatus::Paid) },
    ] {
        assert_eq!(orders::settle(&pool, &wrong).await.unwrap(), Outcome::Mismatch);
    }
    let elsewhere = Payment { session: "cs_other".into(), ..payment(&order, PaymentStatus::Paid) };
    assert_eq!(orders::settle(&pool, &elsewhere).await.unwrap(), Outcome::OrderMissing);
    assert_eq!(credits_of(&pool, "ada").await, 20);
    // A payment that takes days, or that arrives after its checkout page closed, still counts.
    for early in [PaymentStatus::Unpaid, PaymentStatus::Expired, PaymentStatus::Failed] {
        let order = order_again(&pool, ada).await;
        orders::settle(&pool, &payment(&order, early)).await.unwrap();
        let paid = orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
        assert_eq!(paid, Outcome::Granted);
    }
    assert_eq!(credits_of(&pool, "ada").await, 20 + 3 * 55);
}

/// Places another order of the same pack, as a later click does.
async fn order_again(pool: &PgPool, buyer: UserId) -> Order {
    sqlx::query("update orders set created_at = created_at - interval '1 minute'")
        .execute(pool)
        .await
        .unwrap();
    ordered(pool, buyer).await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_finds_its_order_even_if_its_checkout_page_was_not_recorded(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[0], None).await.unwrap();
    let order = Order { session: Some("cs_unrecorded".into()), ..order };
    assert_eq!(
        orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap(),
        Outcome::Granted
    );
    let found = orders::for_session(&pool, ada, "cs_unrecorded").await.unwrap().unwrap();
    assert_eq!(found.id, order.id);
    assert_eq!(credits_of(&pool, "ada").await, 40);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_double_click_and_a_repeated_key_are_one_order(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let clicks = (0..10).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move { orders::place(&pool, ada, &PACKS[0], None).await.unwrap().id })
    });
    let mut ids = Vec::new();
    for click in clicks.collect::<Vec<_>>() {
        ids.push(click.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let other = orders::place(&pool, ada, &PACKS[1], None).await.unwrap();
    assert_ne!(other.id, ids[0], "another pack is another order");
    let keyed = orders::place(&pool, ada, &PACKS[0], Some("key")).await.unwrap();
    assert_ne!(keyed.id, ids[0]);
    assert_eq!(orders::place(&pool, ada, &PACKS[0], Some("key")).await.unwrap().id, keyed.id);
    let reused = orders::place(&pool, ada, &PACKS[2], Some("key")).await;
    assert!(matches!(reused, Err(PlaceError::IdempotencyKeyReused)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn somebody_who_leaves_many_orders_open_gets_the_latest_again(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let place = async |n: usize| {
        orders::place(&pool, ada, &PACKS[0], Some(&format!("key {n}"))).await.unwrap().id
    };
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(place(n).await);
    }
    assert_eq!(place(20).await, ids[19]);
    assert_eq!(place(3).await, ids[3], "a repeat is still a repeat");
    let other = orders::place(&pool, ada, &PACKS[1], Some("other pack")).await.unwrap();
    assert!(!ids.contains(&other.id));
    orders::refuse(&pool, ids[19]).await.unwrap();
    assert!(!ids.contains(&place(21).await), "one of the twenty is no longer open");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_order_that_the_provider_had_refused_is_open_again_with_its_page(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let place = || orders::place(&pool, ada, &PACKS[1], Some("key"));
    let order = place().await.unwrap();
    orders::refuse(&pool, order.id).await.unwrap();
    let again = place().await.unwrap();
    assert_eq!((again.id, again.status), (order.id, OrderStatus::Failed));
    orders::attach_session(&pool, &again, "cs_again", "https://pay.test/").await.unwrap();
    assert_eq!(summary(&pool, &order).await.0, OrderStatus::Open);
    sqlx::query("update orders set next_check_at = now() - interval '1 second'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(due_for_check(&pool).await, ["cs_again"]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_order_that_expired_without_a_page_can_be_paid_for_a_day_when_it_gets_one(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[1], Some("key")).await.unwrap();
    let age = "update orders set created_at = created_at - interval '80 hours'";
    sqlx::query(age).execute(&pool).await.unwrap();
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 1);
    let again = orders::place(&pool, ada, &PACKS[1], Some("key")).await.unwrap();
    assert_eq!((again.id, again.status), (order.id, OrderStatus::Expired));
    orders::attach_session(&pool, &again, "cs_late", "https://pay.test/").await.unwrap();
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 0);
    assert_eq!(summary(&pool, &order).await.0, OrderStatus::Open);
    // Another call changes nothing, for example that of a second tab.
    sqlx::query(age).execute(&pool).await.unwrap();
    orders::attach_session(&pool, &again, "cs_later", "https://pay.test/").await.unwrap();
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_first_of_two_checkout_pages_is_shown(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    let first = orders::owned(&pool, order.user, order.id).await.unwrap().unwrap();
    let shown = orders::attach_session(&pool, &order, "cs_second", "https://pay/2").await;
    assert_eq!(shown.unwrap(), first.checkout_url);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_message_without_an_order_keeps_its_text_for_a_month(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    let text = async |id: &str| -> String {
        let query = sqlx::query_scalar("select payload from payment_events where id = $1");
        query.bind(id).fetch_one(&pool).await.unwrap()
    };
    let elsewhere = Payment {
        order: None,
        session: "cs_elsewhere".into(),
        payment_intent: Some("pi_elsewhere".into()),
        ..payment(&order, PaymentStatus::Paid)
    };
    assert_eq!(receive(&pool, "unknown", PaymentEvent::Payment(elsewhere)).await, Outcome::Unknown);
    assert_eq!(receive(&pool, "ignored", PaymentEvent::Other).await, Outcome::Ignored);
    assert_eq!(receive(&pool, "waiting", refunded(&order, 500)).await, Outcome::Waiting);
    assert_eq!(orders::forget_texts(&pool, 30).await.unwrap(), 0);
    receive(&pool, "paid", PaymentEvent::Payment(payment(&order, PaymentStatus::Paid))).await;
    sqlx::query("update payment_events set received_at = now() - interval '31 days'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(orders::forget_texts(&pool, 30).await.unwrap(), 2);
    for (id, kept) in [("unknown", ""), ("ignored", ""), ("waiting", "{}"), ("paid", "{}")] {
        assert_eq!(text(id).await, kept, "{id}");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_after_account_deletion_is_recorded_and_grants_nothing(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    sqlx::query("update users set issuer = 'deleted', email = null, deleted_at = now()")
        .execute(&pool)
        .await
        .unwrap();
    let paid =
        receive(&pool, "evt_1", PaymentEvent::Payment(payment(&order, PaymentStatus::Paid))).await;
    assert_eq!(paid, Outcome::OwnerGone);
    let order = orders::owned(&pool, order.user, order.id).await.unwrap().unwrap();
    assert_eq!((order.status, order.fulfilled_at, order.email), (OrderStatus::Paid, None, None));
    let payload: String =
        sqlx::query_scalar("select payload from payment_events where id = 'evt_1'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(payload, "", "the message names the buyer");
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_operators_grant_for_a_mismatching_payment_resolves_it(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = ordered(&pool, ada).await;
    let mut other_price = payment(&order, PaymentStatus::Paid);
    other_price.amount_cents = Some(order.amount_cents - 100);
    assert_eq!(
        receive(&pool, "evt_1", PaymentEvent::Payment(other_price)).await,
        Outcome::Mismatch
    );
    assert_eq!(audit::books(&pool).await.unwrap(), [Finding::OrderMismatch { order: order.id }]);
    let grant = async |reference: &str| {
        let change = Adjustment { user: ada, amount: 10, reference, note: None };
        credits::adjust(&pool, &change).await.unwrap();
    };
    grant("birthday").await;
    assert_eq!(audit::books(&pool).await.unwrap().len(), 1);
    grant(&format!("order-{}", order.id)).await;
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    // Polling or another message may report the payment again, even with the amount of the order.
    let granted = credits_of(&pool, "ada").await;
    let paid = payment(&order, PaymentStatus::Paid);
    let wrong = Payment { amount_cents: Some(1), ..paid.clone() };
    assert_eq!(orders::settle(&pool, &paid).await.unwrap(), Outcome::AlreadyGranted);
    assert_eq!(orders::settle(&pool, &wrong).await.unwrap(), Outcome::AlreadyGranted);
    assert_eq!(credits_of(&pool, "ada").await, granted);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_operators_grant_for_an_order_that_was_granted_is_found_until_it_is_corrected(
    pool: PgPool,
) {
    let ada = user(&pool, "ada", 0).await;
    let order = ordered(&pool, ada).await;
    orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
    let adjust = async |amount: i32, reference: &str| {
        let change = Adjustment { user: ada, amount, reference, note: None };
        credits::adjust(&pool, &change).await.unwrap();
    };
    let reference = format!("order-{}", order.id);
    adjust(55, &reference).await;
    assert_eq!(
        audit::books(&pool).await.unwrap(),
        [Finding::OrderGrantedTwice { order: order.id }]
    );
    adjust(-55, &format!("{reference}-back")).await;
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_with_a_wrong_amount_is_not_polled_again_and_does_not_expire(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    let wrong = Payment { amount_cents: Some(463), ..payment(&order, PaymentStatus::Paid) };
    assert_eq!(orders::settle(&pool, &wrong).await.unwrap(), Outcome::Mismatch);
    let later = "update orders set created_at = now() - interval '73 hours',
                                   next_check_at = now() - interval '1 second'";
    sqlx::query(later).execute(&pool).await.unwrap();
    assert_eq!(due_for_check(&pool).await, Vec::<String>::new());
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 0);
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, false, 0));
}

/// Restores a backup from before the order.
async fn lose(pool: &PgPool, order: &Order) {
    sqlx::query("delete from orders where id = $1")
        .bind(order.id.uuid())
        .execute(pool)
        .await
        .unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_places_an_order_again_that_a_restore_has_lost(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    lose(&pool, &order).await;
    assert_eq!(receive(&pool, "evt_1", refunded(&order, 250)).await, Outcome::Waiting);
    let event = |status| PaymentEvent::Payment(payment(&order, status));
    assert_eq!(receive(&pool, "evt_2", event(PaymentStatus::Unpaid)).await, Outcome::Unknown);
    assert_eq!(receive(&pool, "evt_3", event(PaymentStatus::Paid)).await, Outcome::Granted);
    assert_eq!(receive(&pool, "evt_3", event(PaymentStatus::Paid)).await, Outcome::Repeated);
    assert_eq!(receive(&pool, "evt_4", event(PaymentStatus::Paid)).await, Outcome::AlreadyGranted);
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 27));
    assert_eq!(credits_of(&pool, "ada").await, 20 + 55 - 27);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_whose_order_cannot_be_placed_again_can_be_sent_again(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = ordered(&pool, ada).await;
    lose(&pool, &order).await;
    let paid = || payment(&order, PaymentStatus::Paid);
    for lost in [
        Payment { buyer: None, ..paid() },
        Payment { buyer: Some(UserId::new()), ..paid() },
        Payment { amount_cents: Some(501), ..paid() },
        Payment { currency: Some("eur".into()), ..paid() },
    ] {
        let outcome = receive(&pool, "evt_1", PaymentEvent::Payment(lost)).await;
        assert_eq!(outcome, Outcome::OrderMissing);
    }
    assert_eq!(credits_of(&pool, "ada").await, 20);
    sqlx::query(
        "insert into orders (id, user_id, pack, credits, amount_cents, currency) values ($1, $2, 2, 55, 500, 'usd')",
    )
    .bind(order.id.uuid())
    .bind(ada.uuid())
    .execute(&pool)
    .await
    .unwrap();
    assert_eq!(receive(&pool, "evt_1", PaymentEvent::Payment(paid())).await, Outcome::Granted);
    assert_eq!(credits_of(&pool, "ada").await, 75);
    let other_page = Payment { session: "cs_other".into(), ..paid() };
    let outcome = receive(&pool, "evt_2", PaymentEvent::Payment(other_page)).await;
    assert_eq!(outcome, Outcome::OrderMissing, "somebody paid twice");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn of_two_payments_at_once_on_two_pages_one_grants_and_the_other_is_reported(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[1], None).await.unwrap();
    let on = |page: &str| {
        let order = Order { session: Some(page.into()), ..order.clone() };
        Payment { payment_intent: Some(page.into()), ..payment(&order, PaymentStatus::Paid) }
    };
    // Both find the order, which has no page yet, before either can lock it.
    let mut connection = pool.acquire().await.unwrap();
    sqlx::raw_sql("begin; select from users for update").execute(&mut *connection).await.unwrap();
    let settle = |payment: Payment| {
        let pool = pool.clone();
        tokio::spawn(async move { orders::settle(&pool, &payment).await.unwrap() })
    };
    let settling = [settle(on("cs_1")), settle(on("cs_2"))];
    // Each waits for the account.
    wait_for_locks(&pool, 2).await;
    sqlx::raw_sql("commit").execute(&mut *connection).await.unwrap();
    let mut outcomes = join_all(settling).await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    outcomes.sort_by_key(|outcome| outcome.as_str());
    assert_eq!(outcomes, [Outcome::Granted, Outcome::OrderMissing]);
    assert_eq!(credits_of(&pool, "ada").await, 20 + 55);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_wrong_amount_found_by_polling_stays_a_finding(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    let more = Payment {
        amount_cents: Some(order.amount_cents + 1),
        ..payment(&order, PaymentStatus::Paid)
    };
    for _ in 0..2 {
        assert_eq!(orders::settle(&pool, &more).await.unwrap(), Outcome::Mismatch);
    }
    sqlx::query("update orders set created_at = now() - interval '73 hours'")
        .execute(&pool)
        .await
        .unwrap();
    orders::expire_abandoned(&pool).await.unwrap();
    assert_eq!(audit::books(&pool).await.unwrap(), [Finding::OrderMismatch { order: order.id }]);
    assert_eq!(receive(&pool, "evt_1", refunded(&order, 501)).await, Outcome::Reversed);
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Refunded, false, 0));
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_deleted_account_cannot_place_an_order(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    accounts::delete(&pool, ada, &[1; 32]).await.unwrap().unwrap();
    let refused = orders::place(&pool, ada, &PACKS[0], None).await;
    assert!(matches!(refused, Err(PlaceError::NoSuchUser)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn unpaid_orders_are_polled_and_then_expire(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = ordered(&pool, ada).await;
    let pageless = orders::place(&pool, ada, &PACKS[0], None).await.unwrap();
    assert_eq!(due_for_check(&pool).await, Vec::<String>::new());
    let age = |hours: i32| {
        sqlx::query("update orders set created_at = now() - make_interval(hours => $1), next_check_at = now() - interval '1 second'")
            .bind(hours)
            .execute(&pool)
    };
    age(1).await.unwrap();
    assert_eq!(due_for_check(&pool).await, [order.session.clone().unwrap()]);
    assert_eq!(due_for_check(&pool).await, Vec::<String>::new(), "polled a moment ago");
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 0);
    age(26).await.unwrap();
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 1);
    assert_eq!(summary(&pool, &pageless).await.0, OrderStatus::Expired);
    assert_eq!(summary(&pool, &order).await.0, OrderStatus::Open);
    age(73).await.unwrap();
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 1);
}

/// Reports 100 payments 100 times each, shuffled, 16 concurrently, by messages and by polling.
#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_hundred_payments_reported_a_hundred_times_each_are_a_hundred_grants(pool: PgPool) {
    use futures::StreamExt;
    use rand::seq::SliceRandom;

    let mut reports = Vec::new();
    for number in 0..100 {
        let buyer = user(&pool, &format!("buyer {number}"), 0).await;
        let order = ordered(&pool, buyer).await;
        for repeat in 0..100 {
            reports.push((order.clone(), repeat));
        }
    }
    let mut rng: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(7);
    reports.shuffle(&mut rng);
    let grants = futures::stream::iter(reports)
        .map(|(order, repeat)| {
            let pool = pool.clone();
            async move {
                let paid = payment(&order, PaymentStatus::Paid);
                let outcome = match repeat % 4 {
                    0 => orders::settle(&pool, &paid).await.unwrap(),
                    // A message that repeats, and another one with the same content.
                    1 => {
                        receive(&pool, &format!("evt_a_{}", order.id), PaymentEvent::Payment(paid))
                            .await
                    }
                    2 => {
                        receive(&pool, &format!("evt_b_{}", order.id), PaymentEvent::Payment(paid))
                            .await
                    }
                    _ => {
                        let early = payment(&order, PaymentStatus::Unpaid);
                        receive(
                            &pool,
                            &format!("evt_{repeat}_{}", order.id),
                            PaymentEvent::Payment(early),
                        )
                        .await
                    }
                };
                usize::from(outcome == Outcome::Granted)
            }
        })
        .buffer_unordered(16)
        .fold(0, |sum, granted| async move { sum + granted });
    assert_eq!(grants.await, 100);
    let (entries, sum): (i64, i64) =
        sqlx::query_as("select count(*), sum(amount) from ledger where kind = 'purchase'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!((entries, sum), (100, 5500));
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}
