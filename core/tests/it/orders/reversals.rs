//! Refunds and disputes take back the credits that are not yet spent.

use std::time::Duration;

use retouch_catalog::{Factor, JobClass, Tier, Tool, ToolName};
use retouch_core::audit::{self, Finding};
use retouch_core::jobs::{self, Isolation, Job, NewJob};
use retouch_core::orders::{
    self, Order, OrderStatus, Outcome, PaymentEvent, PaymentStatus, ReversalEvent,
};
use retouch_core::{JobId, UserId, WorkerId, accounts};
use retouch_standins::testing::{adjust, first_attempt, image, new_result, user};
use sqlx::PgPool;

use super::{credits_of, order_again, ordered, payment, receive, refunded, reversal, summary};

/// Submits a paid run on a new image.
async fn run(pool: &PgPool, owner: UserId, tool: Tool) -> Job {
    let new = NewJob {
        owner: Some(owner),
        image: image(pool, None, owner, b"x").await,
        tool,
        tier: Tier::Paid,
        idempotency_key: None,
        fix: None,
        queue_limit: None,
    };
    jobs::submit(pool, &new).await.unwrap().into_job()
}

/// Ada, who had 20 credits, and the order of 55 that she has paid.
async fn paid_order(pool: &PgPool) -> (UserId, Order) {
    let ada = user(pool, "ada", 0).await;
    let order = ordered(pool, ada).await;
    orders::settle(pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
    (ada, order)
}

/// Receives that a dispute of a part of the order was opened, and then that it was won.
async fn win_dispute_of_a_dollar(pool: &PgPool, order: &Order) {
    let dispute = || "dp_1".to_owned();
    let amount_cents = Some(100);
    let opened = ReversalEvent::DisputeOpened { dispute: dispute(), amount_cents };
    receive(pool, "evt_opened", reversal(order, opened)).await;
    let closed = ReversalEvent::DisputeClosed { dispute: dispute(), amount_cents, won: true };
    receive(pool, "evt_won", reversal(order, closed)).await;
}

/// Finishes the next job in the queue, which has to be this one.
async fn finish_next(pool: &PgPool, job: JobId) {
    let worker = WorkerId::new();
    let class = JobClass { tool: ToolName::RemoveBackground, tier: Tier::Paid };
    let lease = Duration::from_mins(1);
    let claimed = jobs::claim(pool, worker, &[class], &[], Isolation::Shared, lease).await;
    assert_eq!(claimed.unwrap().unwrap().id, job);
    jobs::finish(pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_refund_takes_back_its_share_of_the_unspent_credits(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    // 250 of 500 cents are 27 of 55 credits. Refunds state totals, so a repeat or an older one moves nothing.
    for (id, total) in [("evt_1", 250), ("evt_2", 250), ("evt_3", 100)] {
        assert_eq!(receive(&pool, id, refunded(&order, total)).await, Outcome::Reversed);
        assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 27));
    }
    assert_eq!(credits_of(&pool, "ada").await, 48);
    // Only 8 credits are unspent, so 20 cannot be taken back.
    adjust(&pool, ada, -40).await;
    receive(&pool, "evt_4", refunded(&order, 500)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Refunded, true, 35));
    assert_eq!(credits_of(&pool, "ada").await, 0);
    let missing: i32 = sqlx::query_scalar("select credits_missing from orders where id = $1")
        .bind(order.id)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(missing, 20);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn what_runs_hold_during_a_refund_is_taken_when_they_end_without_a_result(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    let run = async |tool: Tool| run(&pool, ada, tool).await.id;
    // All 75 credits are held.
    let mut held = Vec::new();
    for _ in 0..15 {
        held.push(run(Tool::RemoveBackground).await);
    }
    receive(&pool, "evt_1", refunded(&order, 500)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Refunded, true, 0));
    assert_eq!(credits_of(&pool, "ada").await, 75);
    for (canceled, taken) in [(1, 5), (5, 25), (11, 55), (12, 55)] {
        for job in held.split_off(15 - canceled) {
            assert!(jobs::cancel(&pool, job).await.unwrap());
        }
        assert_eq!(summary(&pool, &order).await, (OrderStatus::Refunded, true, taken));
        assert_eq!(credits_of(&pool, "ada").await, 75 - taken);
    }
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    // A dispute that we win returns nothing that a refund took.
    let dispute = "dp_1".to_owned();
    let event = ReversalEvent::DisputeClosed { dispute, amount_cents: None, won: true };
    receive(&pool, "evt_2", reversal(&order, event)).await;
    assert_eq!(credits_of(&pool, "ada").await, 20);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_pays_back_what_it_held_and_not_what_was_spent_before(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    // All 75 credits are spent, so the first refund takes nothing. Of its 27, no run held any.
    adjust(&pool, ada, -75).await;
    receive(&pool, "evt_1", refunded(&order, 250)).await;
    adjust(&pool, ada, 20).await;
    let job = run(&pool, ada, Tool::Upscale(Factor::X4)).await;
    // 17 more, of which 14 are there: 20 less what the run holds.
    let free = 20 - job.cost;
    receive(&pool, "evt_2", refunded(&order, 400)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, free));
    let blocked = 44 - 27 - free;
    assert!(0 < blocked && blocked < job.cost);
    assert!(jobs::cancel(&pool, job.id).await.unwrap());
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, free + blocked));
    assert_eq!(credits_of(&pool, "ada").await, job.cost - blocked);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_second_refund_takes_nothing_that_runs_have_spent_since_the_first(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    let run = async || run(&pool, ada, Tool::RemoveBackground).await.id;
    // Two runs hold the last ten credits during the first refund, and then spend them.
    adjust(&pool, ada, -65).await;
    let early = [run().await, run().await];
    receive(&pool, "evt_1", refunded(&order, 250)).await;
    finish_next(&pool, early[0]).await;
    finish_next(&pool, early[1]).await;
    assert_eq!(credits_of(&pool, "ada").await, 0);

    adjust(&pool, ada, 20).await;
    let held = [run().await, run().await, run().await, run().await];
    // Six more, which these runs hold.
    receive(&pool, "evt_2", refunded(&order, 300)).await;
    for job in held {
        assert!(jobs::cancel(&pool, job).await.unwrap());
    }
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 6));
    assert_eq!(credits_of(&pool, "ada").await, 14);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn runs_between_two_refunds_pay_only_for_the_second(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    let run = async || run(&pool, ada, Tool::RemoveBackground).await.id;
    adjust(&pool, ada, -65).await;
    let early = [run().await, run().await];
    receive(&pool, "evt_1", refunded(&order, 100)).await;
    adjust(&pool, ada, 20).await;
    let late = [run().await, run().await, run().await, run().await];
    receive(&pool, "evt_2", refunded(&order, 160)).await;
    // The early ones spend what the first refund wanted.
    finish_next(&pool, early[0]).await;
    finish_next(&pool, early[1]).await;
    for job in late {
        assert!(jobs::cancel(&pool, job).await.unwrap());
    }
    // 160 of 500 cents are 17 of 55 credits, 11 of them of the first refund.
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 6));
    assert_eq!(credits_of(&pool, "ada").await, 14);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_pays_for_no_dispute_that_was_won_meanwhile(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    adjust(&pool, ada, -65).await;
    let held = [
        run(&pool, ada, Tool::RemoveBackground).await,
        run(&pool, ada, Tool::RemoveBackground).await,
    ];
    receive(&pool, "evt_1", refunded(&order, 50)).await;
    win_dispute_of_a_dollar(&pool, &order).await;
    for job in held {
        assert!(jobs::cancel(&pool, job.id).await.unwrap());
    }
    // The five credits of the refund.
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 5));
    assert_eq!(credits_of(&pool, "ada").await, 5);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_dispute_that_is_won_lowers_its_own_part(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    let run = async || run(&pool, ada, Tool::RemoveBackground).await;
    // The first refund wants 27 credits, and all are spent.
    adjust(&pool, ada, -75).await;
    receive(&pool, "evt_1", refunded(&order, 250)).await;
    adjust(&pool, ada, 20).await;
    let held = [run().await, run().await, run().await, run().await];
    // The dispute wants 11 more, which these runs hold.
    win_dispute_of_a_dollar(&pool, &order).await;
    for job in held {
        assert!(jobs::cancel(&pool, job.id).await.unwrap());
    }
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 0));
    assert_eq!(credits_of(&pool, "ada").await, 20);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

/// A process from before `owed_by_runs` lowers what is missing, and leaves the rows as they are.
#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_run_can_end_although_an_older_process_took_what_it_owed(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    adjust(&pool, ada, -65).await;
    let held = [
        run(&pool, ada, Tool::RemoveBackground).await,
        run(&pool, ada, Tool::RemoveBackground).await,
    ];
    receive(&pool, "evt_1", refunded(&order, 500)).await;
    sqlx::query("update orders set credits_missing = 3 where id = $1")
        .bind(order.id)
        .execute(&pool)
        .await
        .unwrap();
    for job in held {
        assert!(jobs::cancel(&pool, job.id).await.unwrap());
    }
    assert_eq!(credits_of(&pool, "ada").await, 7);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn runs_after_a_refund_owe_nothing(pool: PgPool) {
    let (ada, order) = paid_order(&pool).await;
    adjust(&pool, ada, -70).await;
    receive(&pool, "evt_1", refunded(&order, 500)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Refunded, true, 5));
    adjust(&pool, ada, 30).await;
    let job = run(&pool, ada, Tool::RemoveBackground).await.id;
    assert!(jobs::cancel(&pool, job).await.unwrap());
    assert_eq!(credits_of(&pool, "ada").await, 30);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_refund_that_arrives_before_its_payment_applies_with_it(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    assert_eq!(receive(&pool, "evt_refund", refunded(&order, 500)).await, Outcome::Waiting);
    assert_eq!(receive(&pool, "evt_refund", refunded(&order, 500)).await, Outcome::Repeated);
    assert_eq!(
        receive(&pool, "evt_paid", PaymentEvent::Payment(payment(&order, PaymentStatus::Paid)))
            .await,
        Outcome::Granted
    );
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Refunded, true, 55));
    assert_eq!(credits_of(&pool, "ada").await, 20);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_refund_before_a_payment_that_grants_nothing_settles_it(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let (gone, wrong) =
        (ordered(&pool, ada).await, ordered(&pool, user(&pool, "bob", 0).await).await);
    assert_eq!(receive(&pool, "evt_1", refunded(&wrong, 400)).await, Outcome::Waiting);
    assert_eq!(receive(&pool, "evt_2", refunded(&gone, 500)).await, Outcome::Waiting);
    accounts::delete(&pool, ada, &[1; 32]).await.unwrap().unwrap();
    let mut other_price = payment(&wrong, PaymentStatus::Paid);
    other_price.amount_cents = Some(400);
    let paid = receive(&pool, "evt_3", PaymentEvent::Payment(other_price)).await;
    assert_eq!(paid, Outcome::Mismatch);
    let late = PaymentEvent::Payment(payment(&gone, PaymentStatus::Paid));
    assert_eq!(receive(&pool, "evt_4", late.clone()).await, Outcome::OwnerGone);
    for (order, buyer) in [(&gone, None), (&wrong, Some("bob"))] {
        assert_eq!(summary(&pool, order).await, (OrderStatus::Refunded, false, 0));
        if let Some(buyer) = buyer {
            assert_eq!(credits_of(&pool, buyer).await, 20);
        }
    }
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    assert_eq!(receive(&pool, "evt_5", late).await, Outcome::Noted);
    assert_eq!(summary(&pool, &gone).await, (OrderStatus::Refunded, false, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_dispute_takes_the_credits_until_it_is_won(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
    let opened = || {
        reversal(&order, ReversalEvent::DisputeOpened { dispute: "dp".into(), amount_cents: None })
    };
    let closed = |won| {
        reversal(
            &order,
            ReversalEvent::DisputeClosed { dispute: "dp".into(), amount_cents: None, won },
        )
    };
    receive(&pool, "evt_1", opened()).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Disputed, true, 55));
    assert_eq!(credits_of(&pool, "ada").await, 20);
    receive(&pool, "evt_2", closed(true)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 0));
    // A late first message does not reopen it.
    receive(&pool, "evt_3", opened()).await;
    receive(&pool, "evt_4", closed(false)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 0));
    assert_eq!(credits_of(&pool, "ada").await, 75);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_dispute_of_a_part_takes_that_part(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    for (name, won, taken) in [("won", true, 0), ("lost", false, 27)] {
        let order = order_again(&pool, ada).await;
        orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
        let opened = ReversalEvent::DisputeOpened { dispute: name.into(), amount_cents: Some(250) };
        receive(&pool, &format!("evt_{name}_1"), reversal(&order, opened)).await;
        assert_eq!(summary(&pool, &order).await, (OrderStatus::Disputed, true, 27));
        let closed =
            ReversalEvent::DisputeClosed { dispute: name.into(), amount_cents: Some(250), won };
        receive(&pool, &format!("evt_{name}_2"), reversal(&order, closed)).await;
        assert_eq!(summary(&pool, &order).await.2, taken);
    }
    let order = order_again(&pool, ada).await;
    orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
    receive(&pool, "evt_refund", refunded(&order, 100)).await;
    let rest = ReversalEvent::DisputeOpened { dispute: "rest".into(), amount_cents: Some(400) };
    receive(&pool, "evt_rest", reversal(&order, rest)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Disputed, true, 55));
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_dispute_won_after_account_deletion_returns_nothing(pool: PgPool) {
    let order = ordered(&pool, user(&pool, "ada", 0).await).await;
    orders::settle(&pool, &payment(&order, PaymentStatus::Paid)).await.unwrap();
    let opened = ReversalEvent::DisputeOpened { dispute: "dp".into(), amount_cents: None };
    receive(&pool, "evt_1", reversal(&order, opened)).await;
    accounts::delete(&pool, order.user, &[7; 32]).await.unwrap().unwrap();
    let won = ReversalEvent::DisputeClosed { dispute: "dp".into(), amount_cents: None, won: true };
    receive(&pool, "evt_2", reversal(&order, won)).await;
    assert_eq!(summary(&pool, &order).await, (OrderStatus::Paid, true, 55));
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn refunding_a_payment_that_granted_nothing_moves_no_credits(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let (gone, wrong) =
        (ordered(&pool, ada).await, ordered(&pool, user(&pool, "bob", 0).await).await);
    let mut other_price = payment(&wrong, PaymentStatus::Paid);
    other_price.amount_cents = Some(400);
    let paid = receive(&pool, "evt_1", PaymentEvent::Payment(other_price)).await;
    assert_eq!(paid, Outcome::Mismatch);
    accounts::delete(&pool, ada, &[1; 32]).await.unwrap().unwrap();
    let late =
        receive(&pool, "evt_2", PaymentEvent::Payment(payment(&gone, PaymentStatus::Paid))).await;
    assert_eq!(late, Outcome::OwnerGone);
    let mut found = audit::books(&pool).await.unwrap();
    found.sort_by_key(ToString::to_string);
    let mut owed = vec![
        Finding::OrderNotGranted { order: gone.id, owner_is_gone: true },
        Finding::OrderMismatch { order: wrong.id },
    ];
    owed.sort_by_key(ToString::to_string);
    assert_eq!(found, owed);

    // The payment was below the price, and so is its full refund.
    assert_eq!(receive(&pool, "evt_3", refunded(&wrong, 400)).await, Outcome::Reversed);
    assert_eq!(receive(&pool, "evt_4", refunded(&gone, 500)).await, Outcome::Reversed);
    assert_eq!(summary(&pool, &gone).await, (OrderStatus::Refunded, false, 0));
    assert_eq!(summary(&pool, &wrong).await, (OrderStatus::Refunded, false, 0));
    assert_eq!(credits_of(&pool, "bob").await, 20);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}
