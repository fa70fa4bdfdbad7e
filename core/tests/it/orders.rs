//! An order's life: whatever comes, however often and in whatever order, is granted once.

use retouch_core::audit::{self, Finding};
use retouch_core::credits::{Adjustment, PACKS};
use retouch_core::orders::{
    self, Message, News, Order, OrderStatus, Outcome, Payment, PlaceError, Progress, Reversal,
    ReversalEvent,
};
use retouch_core::{UserId, accounts, credits, users};
use retouch_standins::testing::{ISSUER, adjust, user};
use sqlx::PgPool;

/// An order of the pack of 55 credits for $5, with a page to pay it on.
async fn ordered(pool: &PgPool, buyer: UserId) -> Order {
    let order = orders::place(pool, buyer, &PACKS[1], None).await.unwrap();
    let session = format!("cs_{}", order.id);
    orders::attach_session(pool, order.id, &session, "https://pay.test/").await.unwrap();
    orders::owned(pool, buyer, order.id).await.unwrap().unwrap()
}

fn payment(order: &Order, progress: Progress) -> Payment {
    Payment {
        session: order.session.clone().unwrap(),
        order: Some(order.id),
        progress,
        amount_cents: Some(order.amount_cents),
        currency: Some(order.currency.clone()),
        payment_intent: Some(intent(order)),
        email: Some("ada@example.test".into()),
    }
}

fn intent(order: &Order) -> String {
    format!("pi_{}", order.id)
}

fn message(id: &str, news: News) -> Message {
    Message { id: id.into(), kind: "test".into(), payload: "{}".into(), news }
}

async fn hear(pool: &PgPool, id: &str, news: News) -> Outcome {
    orders::receive(pool, &message(id, news)).await.unwrap()
}

fn reversal(order: &Order, event: ReversalEvent) -> News {
    News::Reversal(Reversal { payment_intent: intent(order), event })
}

fn refunded(order: &Order, total_cents: i64) -> News {
    reversal(order, ReversalEvent::Refunded { total_cents })
}

async fn credits_of(pool: &PgPool, name: &str) -> i32 {
    assert_eq!(credits::audit(pool).await.unwrap(), []);
    users::sign_in(pool, ISSUER, name).await.unwrap().credits
}

async fn standing(pool: &PgPool, order: &Order) -> (OrderStatus, bool, i32) {
    let order = orders::owned(pool, order.user, order.id).await.unwrap().unwrap();
    (order.status, order.fulfilled_at.is_some(), order.credits_taken_back)
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_is_granted_once_however_it_is_heard_of(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    assert_eq!(
        hear(&pool, "evt_1", News::Payment(payment(&order, Progress::Paid))).await,
        Outcome::Granted
    );
    assert_eq!(
        hear(&pool, "evt_1", News::Payment(payment(&order, Progress::Paid))).await,
        Outcome::Repeated
    );
    assert_eq!(
        hear(&pool, "evt_2", News::Payment(payment(&order, Progress::Paid))).await,
        Outcome::AlreadyGranted
    );
    let again = orders::settle(&pool, &payment(&order, Progress::Paid)).await.unwrap();
    assert_eq!(again, Outcome::AlreadyGranted);
    // Older news changes nothing.
    for late in [Progress::Open, Progress::Unpaid, Progress::Failed, Progress::Expired] {
        orders::settle(&pool, &payment(&order, late)).await.unwrap();
    }
    assert_eq!(standing(&pool, &order).await, (OrderStatus::Paid, true, 0));
    assert_eq!(credits_of(&pool, "ada").await, 75);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn nothing_is_granted_for_what_is_not_paid(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let stages = [
        (Progress::Open, OrderStatus::Open),
        (Progress::Unpaid, OrderStatus::Unpaid),
        (Progress::Failed, OrderStatus::Failed),
        (Progress::Expired, OrderStatus::Expired),
    ];
    for (progress, status) in stages {
        let order = ordered_anew(&pool, ada).await;
        orders::settle(&pool, &payment(&order, progress)).await.unwrap();
        assert_eq!(standing(&pool, &order).await, (status, false, 0));
    }
    let order = ordered_anew(&pool, ada).await;
    for wrong in [
        Payment { amount_cents: Some(1), ..payment(&order, Progress::Paid) },
        Payment { currency: Some("jpy".into()), ..payment(&order, Progress::Paid) },
        Payment { amount_cents: None, ..payment(&order, Progress::Paid) },
    ] {
        assert_eq!(orders::settle(&pool, &wrong).await.unwrap(), Outcome::Mismatch);
    }
    let elsewhere = Payment { session: "cs_other".into(), ..payment(&order, Progress::Paid) };
    assert_eq!(orders::settle(&pool, &elsewhere).await.unwrap(), Outcome::Unknown);
    assert_eq!(credits_of(&pool, "ada").await, 20);
    // A payment that takes its time, and one that comes after its page was closed, count in the end.
    for early in [Progress::Unpaid, Progress::Expired, Progress::Failed] {
        let order = ordered_anew(&pool, ada).await;
        orders::settle(&pool, &payment(&order, early)).await.unwrap();
        let paid = orders::settle(&pool, &payment(&order, Progress::Paid)).await.unwrap();
        assert_eq!(paid, Outcome::Granted);
    }
    assert_eq!(credits_of(&pool, "ada").await, 20 + 3 * 55);
}

/// Another order of the same pack at once, which only another click makes.
async fn ordered_anew(pool: &PgPool, buyer: UserId) -> Order {
    sqlx::query("update orders set created_at = created_at - interval '1 minute'")
        .execute(pool)
        .await
        .unwrap();
    ordered(pool, buyer).await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_payment_is_found_by_its_order_when_we_stopped_before_noting_its_page(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[0], None).await.unwrap();
    let order = Order { session: Some("cs_never_noted".into()), ..order };
    assert_eq!(
        orders::settle(&pool, &payment(&order, Progress::Paid)).await.unwrap(),
        Outcome::Granted
    );
    let found = orders::of_session(&pool, ada, "cs_never_noted").await.unwrap().unwrap();
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
async fn a_refund_takes_back_its_share_as_far_as_it_is_left(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = ordered(&pool, ada).await;
    orders::settle(&pool, &payment(&order, Progress::Paid)).await.unwrap();
    // 250 of 500 cents: 27 of 55 credits. The total counts, so a repeat or an older total moves nothing.
    for (id, total) in [("evt_1", 250), ("evt_2", 250), ("evt_3", 100)] {
        assert_eq!(hear(&pool, id, refunded(&order, total)).await, Outcome::Reversed);
        assert_eq!(standing(&pool, &order).await, (OrderStatus::Paid, true, 27));
    }
    assert_eq!(credits_of(&pool, "ada").await, 48);
    // All but 8 credits are spent: 20 more cannot be taken.
    adjust(&pool, ada, -40).await;
    hear(&pool, "evt_4", refunded(&order, 500)).await;
    assert_eq!(standing(&pool, &order).await, (OrderStatus::Refunded, true, 35));
    assert_eq!(credits_of(&pool, "ada").await, 0);
    let missing: i32 = sqlx::query_scalar("select credits_missing from orders where id = $1")
        .bind(order.id)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(missing, 20);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_refund_that_overtakes_its_payment_counts_when_that_comes(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    assert_eq!(hear(&pool, "evt_refund", refunded(&order, 500)).await, Outcome::Waiting);
    assert_eq!(hear(&pool, "evt_refund", refunded(&order, 500)).await, Outcome::Repeated);
    assert_eq!(
        hear(&pool, "evt_paid", News::Payment(payment(&order, Progress::Paid))).await,
        Outcome::Granted
    );
    assert_eq!(standing(&pool, &order).await, (OrderStatus::Refunded, true, 55));
    assert_eq!(credits_of(&pool, "ada").await, 20);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_dispute_takes_the_credits_until_it_is_won(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    orders::settle(&pool, &payment(&order, Progress::Paid)).await.unwrap();
    let opened = || reversal(&order, ReversalEvent::DisputeOpened { dispute: "dp".into() });
    let closed = |won| reversal(&order, ReversalEvent::DisputeClosed { dispute: "dp".into(), won });
    hear(&pool, "evt_1", opened()).await;
    assert_eq!(standing(&pool, &order).await, (OrderStatus::Disputed, true, 55));
    assert_eq!(credits_of(&pool, "ada").await, 20);
    hear(&pool, "evt_2", closed(true)).await;
    assert_eq!(standing(&pool, &order).await, (OrderStatus::Paid, true, 0));
    // It does not open again because the first message is late.
    hear(&pool, "evt_3", opened()).await;
    hear(&pool, "evt_4", closed(false)).await;
    assert_eq!(standing(&pool, &order).await, (OrderStatus::Paid, true, 0));
    assert_eq!(credits_of(&pool, "ada").await, 75);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_purchase_whose_buyer_is_gone_is_noted_and_grants_nothing(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    sqlx::query("update users set issuer = 'deleted', email = null, deleted_at = now()")
        .execute(&pool)
        .await
        .unwrap();
    let paid = hear(&pool, "evt_1", News::Payment(payment(&order, Progress::Paid))).await;
    assert_eq!(paid, Outcome::OwnerGone);
    let order = orders::owned(&pool, order.user, order.id).await.unwrap().unwrap();
    assert_eq!((order.status, order.fulfilled_at, order.email), (OrderStatus::Paid, None, None));
    let kept: String = sqlx::query_scalar("select payload from payment_events where id = 'evt_1'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, "", "the message names the buyer");
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn money_for_which_nothing_could_be_granted_goes_back_without_moving_credits(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let (gone, wrong) =
        (ordered(&pool, ada).await, ordered(&pool, user(&pool, "bob", 0).await).await);
    let mut other_price = payment(&wrong, Progress::Paid);
    other_price.amount_cents = Some(400);
    let paid = hear(&pool, "evt_1", News::Payment(other_price)).await;
    assert_eq!(paid, Outcome::Mismatch);
    accounts::delete(&pool, ada, &[1; 32]).await.unwrap().unwrap();
    let late = hear(&pool, "evt_2", News::Payment(payment(&gone, Progress::Paid))).await;
    assert_eq!(late, Outcome::OwnerGone);
    let mut found = audit::books(&pool).await.unwrap();
    found.sort_by_key(ToString::to_string);
    let mut owed = vec![
        Finding::OrderNotGranted { order: gone.id, owner_is_gone: true },
        Finding::OrderMismatch { order: wrong.id },
    ];
    owed.sort_by_key(ToString::to_string);
    assert_eq!(found, owed);

    // What was paid was less than the price, so less goes back.
    assert_eq!(hear(&pool, "evt_3", refunded(&wrong, 400)).await, Outcome::Reversed);
    assert_eq!(hear(&pool, "evt_4", refunded(&gone, 500)).await, Outcome::Reversed);
    assert_eq!(standing(&pool, &gone).await, (OrderStatus::Refunded, false, 0));
    assert_eq!(standing(&pool, &wrong).await, (OrderStatus::Refunded, false, 0));
    assert_eq!(credits_of(&pool, "bob").await, 20);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_wrong_payment_is_dealt_with_by_a_grant_in_its_name(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = ordered(&pool, ada).await;
    let mut other_price = payment(&order, Progress::Paid);
    other_price.amount_cents = Some(order.amount_cents - 100);
    assert_eq!(hear(&pool, "evt_1", News::Payment(other_price)).await, Outcome::Mismatch);
    assert_eq!(audit::books(&pool).await.unwrap(), [Finding::OrderMismatch { order: order.id }]);
    let grant = async |reference: &str| {
        let change = Adjustment { user: ada, amount: 10, reference, note: None };
        credits::adjust(&pool, &change).await.unwrap();
    };
    grant("birthday").await;
    assert_eq!(audit::books(&pool).await.unwrap().len(), 1);
    grant(&format!("order-{}", order.id)).await;
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_deleted_account_places_no_order(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    accounts::delete(&pool, ada, &[1; 32]).await.unwrap().unwrap();
    let refused = orders::place(&pool, ada, &PACKS[0], None).await;
    assert!(matches!(refused, Err(PlaceError::NoSuchUser)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn orders_that_nobody_pays_are_asked_about_and_given_up(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = ordered(&pool, ada).await;
    let lonely = orders::place(&pool, ada, &PACKS[0], None).await.unwrap();
    assert_eq!(orders::due_for_check(&pool, 10).await.unwrap(), Vec::<String>::new());
    let age = |hours: i32| {
        sqlx::query("update orders set created_at = now() - make_interval(hours => $1), next_check_at = now() - interval '1 second'")
            .bind(hours)
            .execute(&pool)
    };
    age(1).await.unwrap();
    assert_eq!(orders::due_for_check(&pool, 10).await.unwrap(), [order.session.clone().unwrap()]);
    assert_eq!(
        orders::due_for_check(&pool, 10).await.unwrap(),
        Vec::<String>::new(),
        "asked a moment ago"
    );
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 0);
    age(26).await.unwrap();
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 1);
    assert_eq!(standing(&pool, &lonely).await.0, OrderStatus::Expired);
    assert_eq!(standing(&pool, &order).await.0, OrderStatus::Open);
    age(73).await.unwrap();
    assert_eq!(orders::expire_abandoned(&pool).await.unwrap(), 1);
}

/// 100 sessions, each heard of 100 times over, shuffled, 16 at a time, by messages and by questions.
#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_hundred_payments_heard_of_a_hundred_times_are_a_hundred_grants(pool: PgPool) {
    use futures::StreamExt;
    use rand::seq::SliceRandom;

    let mut heard = Vec::new();
    for number in 0..100 {
        let buyer = user(&pool, &format!("buyer {number}"), 0).await;
        let order = ordered(&pool, buyer).await;
        for repeat in 0..100 {
            heard.push((order.clone(), repeat));
        }
    }
    let mut chance: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(7);
    heard.shuffle(&mut chance);
    let grants = futures::stream::iter(heard)
        .map(|(order, repeat)| {
            let pool = pool.clone();
            async move {
                let paid = payment(&order, Progress::Paid);
                let outcome = match repeat % 4 {
                    0 => orders::settle(&pool, &paid).await.unwrap(),
                    // The same message again and again, and another one that says the same.
                    1 => hear(&pool, &format!("evt_a_{}", order.id), News::Payment(paid)).await,
                    2 => hear(&pool, &format!("evt_b_{}", order.id), News::Payment(paid)).await,
                    _ => {
                        let early = payment(&order, Progress::Unpaid);
                        hear(&pool, &format!("evt_{repeat}_{}", order.id), News::Payment(early))
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
