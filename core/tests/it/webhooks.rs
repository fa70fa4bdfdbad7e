//! Webhooks: events are recorded in the transaction in which they happen, and sent at least once.

use std::collections::HashMap;
use std::time::Duration;

use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};
use retouch_core::jobs::{self, Failure, Finish, Isolation, NewJob};
use retouch_core::webhooks::{
    self, Attempt, Change, Delivery, DeliveryProblem, DeliveryState, DisabledReason, EventType,
    Lane, NewWebhook, Outcome, Recorded, Room, SendError,
};
use retouch_core::{
    ImageId, JobId, ResultId, UserId, WebhookId, WorkerId, accounts, credits, images,
};
use retouch_standins::testing::{adjust, first_attempt, image, new_result, user, waits_for_a_lock};
use sqlx::{Connection, PgPool};

const LEASE: Duration = Duration::from_mins(1);
const DELIVERED: Attempt =
    Attempt { outcome: Outcome::Delivered, status: Some(204), duration_ms: 12, retry_after: None };
const REFUSED: Attempt = Attempt {
    outcome: Outcome::Failed(DeliveryProblem::Status),
    status: Some(500),
    duration_ms: 12,
    retry_after: None,
};

async fn webhook(pool: &PgPool, owner: UserId, events: &[EventType], below: i32) -> WebhookId {
    let new = NewWebhook {
        url: "https://example.com/hooks",
        description: "",
        events,
        credits_below: below,
        secret: &[7; 32],
    };
    webhooks::create(pool, owner, &new).await.unwrap().id
}

async fn submit(pool: &PgPool, owner: UserId, image: ImageId, tier: Tier) -> JobId {
    let new = NewJob {
        owner: Some(owner),
        image,
        tool: Tool::RemoveBackground,
        tier,
        idempotency_key: None,
        fix: None,
        queue_limit: None,
    };
    jobs::submit(pool, &new).await.unwrap().into_job().id
}

async fn claim_job(pool: &PgPool, worker: WorkerId) -> JobId {
    let classes = Tier::ALL.map(|tier| JobClass { tier, tool: ToolName::RemoveBackground });
    let claimed = jobs::claim(pool, worker, &classes, &FixMode::ALL, Isolation::Shared, LEASE);
    claimed.await.unwrap().expect("a job").id
}

async fn finish(pool: &PgPool, worker: WorkerId, job: JobId) -> ResultId {
    let made = new_result(job, 1);
    assert_eq!(jobs::finish(pool, first_attempt(job, worker), &made).await.unwrap(), Finish::Done);
    made.id
}

/// Submits, claims and finishes a paid job, which costs five credits.
async fn spend(pool: &PgPool, owner: UserId, image: ImageId) -> JobId {
    let (worker, job) = (WorkerId::new(), submit(pool, owner, image, Tier::Paid).await);
    assert_eq!(claim_job(pool, worker).await, job);
    finish(pool, worker, job).await;
    job
}

const fn room(free: i64, per_webhook: i64) -> Room<'static> {
    Room { free, per_webhook, per_owner: 1000, of_webhooks: &[], of_owners: &[] }
}

async fn claim(pool: &PgPool, lane: Lane, limit: i64, per_webhook: i64) -> Vec<Delivery> {
    webhooks::claim(pool, lane, room(limit, per_webhook), LEASE).await.unwrap()
}

async fn sql(pool: &PgPool, statement: &'static str) {
    sqlx::query(statement).execute(pool).await.unwrap();
}

/// Makes waiting deliveries due.
async fn wait_is_over(pool: &PgPool) {
    sql(pool, "update webhook_deliveries set due_at = now() where state = 'waiting'").await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn every_end_of_a_job_is_told_to_those_who_asked(pool: PgPool) {
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    let picture = image(&pool, None, ada, b"x").await;
    let all = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    let failures = webhook(&pool, ada, &[EventType::JobFailed], 1).await;
    let off = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    let turn_off = Change { is_enabled: Some(false), ..Change::default() };
    assert!(webhooks::change(&pool, ada, off, &turn_off).await.unwrap());
    webhook(&pool, bob, &EventType::SUBSCRIBABLE, 1).await;

    let worker = WorkerId::new();
    let done = submit(&pool, ada, picture, Tier::Paid).await;
    claim_job(&pool, worker).await;
    let result = finish(&pool, worker, done).await;
    let free = submit(&pool, ada, picture, Tier::Free).await;
    claim_job(&pool, worker).await;
    finish(&pool, worker, free).await;
    let failed = submit(&pool, ada, picture, Tier::Paid).await;
    claim_job(&pool, worker).await;
    let failure = Failure { code: "image_unreadable".into(), detail: "No.".into() };
    assert!(jobs::fail(&pool, first_attempt(failed, worker), &failure).await.unwrap());
    assert!(
        !jobs::fail(&pool, first_attempt(failed, worker), &failure).await.unwrap(),
        "it has ended"
    );
    let canceled = submit(&pool, ada, picture, Tier::Paid).await;
    assert!(jobs::cancel(&pool, canceled).await.unwrap());
    assert!(!jobs::cancel(&pool, canceled).await.unwrap(), "it has ended");
    let mut told = claim(&pool, Lane::Fast, 100, 100).await;
    let facts = |told: &[Delivery], job| {
        let found = told.iter().filter_map(|delivery| delivery.job.clone());
        found.into_iter().find(|facts| facts.id == job).unwrap()
    };
    assert_eq!(
        (facts(&told, done).image, facts(&told, done).result),
        (Some(picture), Some(result))
    );
    let why = facts(&told, failed).failure;
    assert_eq!(why, Some(("image_unreadable".into(), "No.".into())));

    let with_image = submit(&pool, ada, picture, Tier::Paid).await;
    images::delete(&pool, ada, picture).await.unwrap().unwrap();
    told.extend(claim(&pool, Lane::Fast, 100, 100).await);
    assert_eq!(facts(&told, with_image).image, None);
    let of = |webhook| {
        let its = told.iter().filter(|delivery| delivery.webhook == webhook);
        let facts = its.map(|delivery| {
            let job = delivery.job.as_ref().unwrap();
            (job.id, (delivery.event, delivery.balance, job.cost))
        });
        facts.collect::<HashMap<_, _>>()
    };
    let expected = [
        (done, (EventType::JobDone, 15, 5)),
        (free, (EventType::JobDone, 15, 0)),
        (failed, (EventType::JobFailed, 15, 5)),
        (canceled, (EventType::JobCanceled, 15, 5)),
        (with_image, (EventType::JobCanceled, 15, 5)),
    ];
    assert_eq!(of(all), expected.into_iter().collect());
    assert_eq!(of(failures), [(failed, (EventType::JobFailed, 15, 5))].into_iter().collect());
    assert_eq!(told.len(), 6, "webhooks of other users and disabled webhooks receive nothing");
    let ids: Vec<_> =
        told.iter().filter(|one| one.event == EventType::JobFailed).map(|one| one.id).collect();
    assert_eq!(ids[0], ids[1], "one event has one id");
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn low_credits_are_told_once_for_each_crossing(pool: PgPool) {
    let ada = user(&pool, "ada", 30).await;
    let picture = image(&pool, None, ada, b"x").await;
    let low = [EventType::CreditsLow];
    let (at_20, at_28) = (webhook(&pool, ada, &low, 20).await, webhook(&pool, ada, &low, 28).await);
    let told = async || {
        let mut told: Vec<_> = claim(&pool, Lane::Fast, 100, 100)
            .await
            .iter()
            .map(|one| (one.webhook, one.event, one.balance, one.credits_below))
            .collect();
        told.sort_by_key(|(_, _, balance, _)| std::cmp::Reverse(*balance));
        told
    };
    // From 50 to 0, all at once: exactly one debit crosses each threshold.
    let worker = WorkerId::new();
    let mut claimed = Vec::new();
    for _ in 0..10 {
        // Equal runs of one image would be joined.
        let picture = image(&pool, None, ada, b"x").await;
        submit(&pool, ada, picture, Tier::Paid).await;
        claimed.push(claim_job(&pool, worker).await);
    }
    futures::future::join_all(claimed.iter().map(|job| finish(&pool, worker, *job))).await;
    let crossings = [
        (at_28, EventType::CreditsLow, 25, Some(28)),
        (at_20, EventType::CreditsLow, 15, Some(20)),
    ];
    assert_eq!(told().await, crossings);
    // Up and down again.
    adjust(&pool, ada, 22).await;
    spend(&pool, ada, picture).await;
    spend(&pool, ada, picture).await;
    assert_eq!(told().await, [(at_20, EventType::CreditsLow, 17, Some(20))]);
    // Exactly the threshold is not below it; taking away counts as well.
    adjust(&pool, ada, 8).await;
    assert_eq!(told().await, []);
    adjust(&pool, ada, -1).await;
    assert_eq!(told().await, [(at_20, EventType::CreditsLow, 19, Some(20))]);
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_finishes_while_its_webhook_is_being_deleted(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let hook = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 20).await;
    let (worker, job) = (WorkerId::new(), submit(&pool, ada, picture, Tier::Paid).await);
    claim_job(&pool, worker).await;
    // Holds the payer's row, so that the finish waits with a snapshot in which the webhook exists.
    let mut connection = pool.acquire().await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    sqlx::query("select id from users where id = $1 for update")
        .bind(ada)
        .fetch_one(&mut *tx)
        .await
        .unwrap();
    let finishing = tokio::spawn({
        let pool = pool.clone();
        async move { finish(&pool, worker, job).await }
    });
    waits_for_a_lock(&pool).await;
    assert!(webhooks::delete(&pool, ada, hook).await.unwrap());
    tx.commit().await.unwrap();
    finishing.await.unwrap();
    assert!(claim(&pool, Lane::Fast, 10, 10).await.is_empty(), "nothing is sent");
    assert_eq!(webhooks::delete_old(&pool).await.unwrap(), 2, "the janitor deletes what is left");
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn webhooks_take_turns_and_a_claim_is_exclusive(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let busy = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    let calm = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    for _ in 0..6 {
        webhooks::send_test(&pool, ada, busy).await.unwrap();
    }
    let newest = webhooks::send_test(&pool, ada, calm).await.unwrap();
    let first = claim(&pool, Lane::Fast, 2, 4).await;
    assert!(
        first.iter().any(|delivery| delivery.id == newest),
        "each gets its first one before any a second one"
    );
    let in_flight = [(busy, 1), (calm, 1)];
    let left = Room { of_webhooks: &in_flight, ..room(10, 4) };
    let next = webhooks::claim(&pool, Lane::Fast, left, LEASE).await.unwrap();
    assert_eq!(next.len(), 3, "with one in flight, three more");
    // Two processes never get the same one.
    let both = futures::future::join_all((0..8).map(|_| claim(&pool, Lane::Fast, 10, 10))).await;
    assert_eq!(both.iter().map(Vec::len).sum::<usize>(), 2);
    assert!(claim(&pool, Lane::Fast, 10, 10).await.is_empty());

    // A process that dies leaves leases, which end by the clock of the database.
    sql(&pool, "update webhook_deliveries set due_at = now(), lease_until = now()").await;
    let again = claim(&pool, Lane::Fast, 10, 10).await;
    assert_eq!(again.len(), 7);
    assert!(again.iter().all(|delivery| delivery.attempt == 2));
    // Outcomes that it records later are ignored.
    assert_eq!(webhooks::record(&pool, &first[0], DELIVERED).await.unwrap(), Recorded::LeaseLost);
    assert_eq!(webhooks::record(&pool, &first[0], REFUSED).await.unwrap(), Recorded::LeaseLost);
    for delivery in &again {
        assert_eq!(
            webhooks::record(&pool, delivery, DELIVERED).await.unwrap(),
            Recorded::Delivered
        );
        assert_eq!(
            webhooks::record(&pool, delivery, DELIVERED).await.unwrap(),
            Recorded::LeaseLost
        );
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_long_backlog_of_one_webhook_does_not_hold_up_others(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    sql(
        &pool,
        "insert into webhook_deliveries (webhook_id, id, event, balance, due_at)
         select id, gen_random_uuid(), 'webhook.test', 0, now() - interval '1 hour'
         from webhooks, generate_series(1, 600)",
    )
    .await;
    let calm = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    let newest = webhooks::send_test(&pool, ada, calm).await.unwrap();
    let claimed = claim(&pool, Lane::Fast, 2, 4).await;
    assert!(claimed.len() == 2 && claimed.iter().any(|delivery| delivery.id == newest));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn slow_and_failing_webhooks_have_a_lane_of_their_own(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let hook = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    let send = async |attempt: Attempt, lane: Lane| {
        webhooks::send_test(&pool, ada, hook).await.unwrap();
        let other = if lane == Lane::Fast { Lane::Slow } else { Lane::Fast };
        assert!(claim(&pool, other, 10, 10).await.is_empty());
        let claimed = claim(&pool, lane, 10, 10).await;
        webhooks::record(&pool, &claimed[0], attempt).await.unwrap()
    };
    let slow = Attempt { duration_ms: 5001, ..DELIVERED };
    assert_eq!(send(DELIVERED, Lane::Fast).await, Recorded::Delivered);
    assert_eq!(send(slow, Lane::Fast).await, Recorded::Delivered);
    assert_eq!(send(DELIVERED, Lane::Slow).await, Recorded::Delivered);
    assert_eq!(send(REFUSED, Lane::Fast).await, Recorded::Failed, "a test is tried once");
    // Turning it on, or off and on, says nothing about the receiver.
    for is_enabled in [true, false, true] {
        let change = Change { is_enabled: Some(is_enabled), ..Change::default() };
        assert!(webhooks::change(&pool, ada, hook, &change).await.unwrap());
    }
    assert_eq!(send(DELIVERED, Lane::Slow).await, Recorded::Delivered);
    assert_eq!(send(DELIVERED, Lane::Fast).await, Recorded::Delivered);
    // A success at one address says nothing about the next one.
    let same = Change { url: Some("https://example.com/hooks"), ..Change::default() };
    assert!(webhooks::change(&pool, ada, hook, &same).await.unwrap());
    assert_eq!(send(DELIVERED, Lane::Fast).await, Recorded::Delivered);
    let moved = Change { url: Some("https://example.com/slow"), ..Change::default() };
    assert!(webhooks::change(&pool, ada, hook, &moved).await.unwrap());
    assert_eq!(send(slow, Lane::Slow).await, Recorded::Delivered);
    let moved = Change { url: Some("https://example.com/fast"), ..Change::default() };
    assert!(webhooks::change(&pool, ada, hook, &moved).await.unwrap());
    assert_eq!(send(DELIVERED, Lane::Slow).await, Recorded::Delivered);
    assert_eq!(send(DELIVERED, Lane::Fast).await, Recorded::Delivered);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_webhooks_of_one_owner_share_their_places(pool: PgPool) {
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    for _ in 0..5 {
        let hook = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
        for _ in 0..4 {
            webhooks::send_test(&pool, ada, hook).await.unwrap();
        }
    }
    let his = webhook(&pool, bob, &EventType::SUBSCRIBABLE, 1).await;
    webhooks::send_test(&pool, bob, his).await.unwrap();
    let claim = async |in_flight: i64| {
        let of_owners = [(ada, in_flight)];
        let room = Room { per_owner: 8, of_owners: &of_owners, ..room(64, 4) };
        let claimed = webhooks::claim(&pool, Lane::Fast, room, LEASE).await.unwrap();
        let of = |owner| claimed.iter().filter(|delivery| delivery.owner == owner).count();
        (of(ada), of(bob))
    };
    assert_eq!(claim(2).await, (6, 1));
    assert_eq!(claim(8).await, (0, 0));
    assert_eq!(claim(7).await, (1, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failing_delivery_is_tried_for_a_day_and_can_be_sent_again(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let hook = webhook(&pool, ada, &[EventType::JobDone], 1).await;
    let job = spend(&pool, ada, picture).await;
    let mut lane = Lane::Fast;
    for attempt in 1..=webhooks::MAX_ATTEMPTS {
        let claimed = claim(&pool, lane, 10, 10).await;
        assert_eq!((claimed.len(), claimed[0].attempt), (1, attempt));
        let recorded = webhooks::record(&pool, &claimed[0], REFUSED).await.unwrap();
        let seen = webhooks::deliveries(&pool, hook, None, 10).await.unwrap().remove(0);
        assert_eq!((seen.attempts, seen.status, seen.job), (attempt, Some(500), Some(job)));
        assert_eq!(seen.problem, Some(DeliveryProblem::Status));
        if attempt == webhooks::MAX_ATTEMPTS {
            assert_eq!((recorded, seen.state), (Recorded::Failed, DeliveryState::Failed));
            assert_eq!(seen.next_at, None);
        } else {
            assert_eq!((recorded, seen.state), (Recorded::Waiting, DeliveryState::Waiting));
            let wait = (seen.next_at.unwrap() - seen.attempted_at.unwrap()).to_std().unwrap();
            let delay = webhooks::retry_delay(attempt).unwrap();
            let slack = Duration::from_secs(1);
            assert!(wait + slack > delay * 8 / 10 && wait < delay * 12 / 10 + slack, "{wait:?}");
        }
        assert!(claim(&pool, Lane::Slow, 10, 10).await.is_empty());
        lane = Lane::Slow;
        wait_is_over(&pool).await;
    }
    let sent = webhooks::deliveries(&pool, hook, None, 10).await.unwrap()[0].id;
    webhooks::send_again(&pool, ada, hook, sent).await.unwrap();
    let claimed = claim(&pool, lane, 10, 10).await;
    assert_eq!((claimed[0].id, claimed[0].attempt), (sent, 1), "the same event, from the start");
    webhooks::send_again(&pool, ada, hook, sent).await.unwrap();
    assert_eq!(
        webhooks::record(&pool, &claimed[0], DELIVERED).await.unwrap(),
        Recorded::Delivered,
        "one that is on its way stays as it is"
    );
    // A busy receiver says when to call again, but neither earlier than usual nor much later.
    for (asked, from, to) in [(1, 4, 6), (3600, 3600, 5400), (1_000_000, 28_800, 43_200)] {
        webhooks::send_again(&pool, ada, hook, sent).await.unwrap();
        let claimed = claim(&pool, Lane::Fast, 10, 10).await;
        let busy = Attempt { retry_after: Some(Duration::from_secs(asked)), ..REFUSED };
        let recorded = webhooks::record(&pool, &claimed[0], busy).await.unwrap();
        assert_eq!(recorded, Recorded::Waiting);
        let seen = webhooks::deliveries(&pool, hook, None, 10).await.unwrap().remove(0);
        let wait = (seen.next_at.unwrap() - seen.attempted_at.unwrap()).num_seconds();
        assert!((from..=to + 1).contains(&wait), "{wait} s when asked for {asked}");
        sql(&pool, "update webhooks set is_slow = false, failing_since = null").await;
    }
    // A receiver that was down for long must not be called forever.
    webhooks::send_again(&pool, ada, hook, sent).await.unwrap();
    let claimed = claim(&pool, Lane::Fast, 10, 10).await;
    sql(&pool, "update webhook_deliveries set waiting_since = now() - interval '37 hours'").await;
    assert_eq!(webhooks::record(&pool, &claimed[0], REFUSED).await.unwrap(), Recorded::Failed);
    let stranger = user(&pool, "bob", 0).await;
    let refused = webhooks::send_again(&pool, stranger, hook, sent).await;
    assert!(matches!(refused, Err(SendError::NoSuchWebhook)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn receivers_that_are_gone_or_fail_for_days_are_turned_off(pool: PgPool) {
    let ada = user(&pool, "ada", 100).await;
    let picture = image(&pool, None, ada, b"x").await;
    let hook = webhook(&pool, ada, &[EventType::JobDone], 1).await;
    let state = async || webhooks::get(&pool, ada, hook).await.unwrap().unwrap();
    let turn_on = Change { is_enabled: Some(true), ..Change::default() };
    let gone = Attempt { outcome: Outcome::Gone, status: Some(410), ..REFUSED };
    for (attempt, reason) in [(gone, DisabledReason::Gone), (REFUSED, DisabledReason::Failing)] {
        spend(&pool, ada, picture).await;
        spend(&pool, ada, picture).await;
        // Turning it on again forgives what failed, but it is still slow.
        let lane = if reason == DisabledReason::Gone { Lane::Fast } else { Lane::Slow };
        let claimed = claim(&pool, lane, 1, 1).await;
        if reason == DisabledReason::Failing {
            webhooks::record(&pool, &claimed[0], attempt).await.unwrap();
            assert!(state().await.is_enabled, "the first failure is forgiven");
            sql(&pool, "update webhooks set failing_since = now() - interval '121 hours'").await;
        }
        let claimed = if reason == DisabledReason::Failing {
            let early = claim(&pool, Lane::Slow, 1, 1).await;
            let recorded = webhooks::record(&pool, &early[0], attempt).await.unwrap();
            assert_eq!(recorded, Recorded::Waiting, "it may be back for the next attempt");
            sql(&pool, "update webhook_deliveries set attempts = 7, due_at = now()").await;
            claim(&pool, Lane::Slow, 1, 1).await
        } else {
            claimed
        };
        let recorded = webhooks::record(&pool, &claimed[0], attempt).await.unwrap();
        assert_eq!(recorded, Recorded::Disabled(reason));
        let seen = state().await;
        assert_eq!((seen.is_enabled, seen.disabled_reason), (false, Some(reason)));
        let left = webhooks::deliveries(&pool, hook, None, 10).await.unwrap();
        assert!(left.iter().all(|delivery| delivery.state == DeliveryState::Failed));
        assert!(
            left.iter().any(|delivery| delivery.problem == Some(DeliveryProblem::Off))
                || reason == DisabledReason::Failing
        );
        spend(&pool, ada, picture).await;
        assert_eq!(webhooks::deliveries(&pool, hook, None, 10).await.unwrap().len(), left.len());
        assert!(matches!(webhooks::send_test(&pool, ada, hook).await, Err(SendError::Off)));
        let off = webhooks::send_again(&pool, ada, hook, left[0].id).await;
        assert!(matches!(off, Err(SendError::Off)));
        webhooks::change(&pool, ada, hook, &turn_on).await.unwrap();
        let seen = state().await;
        assert_eq!((seen.is_enabled, seen.disabled_reason, seen.failing_since), (true, None, None));
    }
    assert!(claim(&pool, Lane::Fast, 10, 10).await.is_empty(), "ended deliveries stay ended");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn what_an_earlier_address_answers_does_not_concern_the_next_one(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let hook = webhook(&pool, ada, &[EventType::JobDone], 1).await;
    spend(&pool, ada, picture).await;
    spend(&pool, ada, picture).await;
    let claimed = claim(&pool, Lane::Fast, 2, 2).await;
    let url = Some("https://example.com/new");
    let moved = Change { url, ..Change::default() };
    assert!(webhooks::change(&pool, ada, hook, &moved).await.unwrap());
    let gone = Attempt { outcome: Outcome::Gone, status: Some(410), ..REFUSED };
    for (delivery, attempt) in claimed.iter().zip([gone, REFUSED]) {
        assert_eq!(webhooks::record(&pool, delivery, attempt).await.unwrap(), Recorded::Waiting);
    }
    let seen = webhooks::get(&pool, ada, hook).await.unwrap().unwrap();
    assert_eq!((seen.is_enabled, seen.failing_since), (true, None));
    wait_is_over(&pool).await;
    let again = claim(&pool, Lane::Slow, 2, 2).await;
    assert_eq!(
        again.iter().map(|delivery| Some(delivery.url.as_str())).collect::<Vec<_>>(),
        [url; 2]
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failed_test_turns_nothing_off_later(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let hook = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    webhooks::send_test(&pool, ada, hook).await.unwrap();
    let claimed = claim(&pool, Lane::Fast, 1, 1).await;
    assert_eq!(webhooks::record(&pool, &claimed[0], REFUSED).await.unwrap(), Recorded::Failed);
    assert_eq!(webhooks::get(&pool, ada, hook).await.unwrap().unwrap().failing_since, None);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_event_from_before_is_not_sent_when_a_webhook_is_turned_on(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let hook = webhook(&pool, ada, &[EventType::JobDone], 1).await;
    let set = async |is_enabled: bool| {
        let change = Change { is_enabled: Some(is_enabled), ..Change::default() };
        webhooks::change(&pool, ada, hook, &change).await.unwrap();
    };
    spend(&pool, ada, picture).await;
    set(true).await;
    assert_eq!(claim(&pool, Lane::Fast, 1, 1).await.len(), 1, "it was on already");
    // Recorded by a job that ended while the webhook was being turned off.
    set(false).await;
    sql(&pool, "update webhook_deliveries set state = 'waiting', due_at = now()").await;
    set(true).await;
    assert!(claim(&pool, Lane::Fast, 1, 1).await.is_empty());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_repeated_rotation_keeps_the_secret_that_the_receiver_knows(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let hook = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    let until = async || webhooks::list(&pool, ada).await.unwrap()[0].old_secret_until;
    let signing = async || {
        webhooks::send_test(&pool, ada, hook).await.unwrap();
        let claimed = claim(&pool, Lane::Fast, 10, 10).await;
        claimed[0].secrets.iter().map(|secret| secret.0[0]).collect::<Vec<_>>()
    };
    assert!(webhooks::rotate(&pool, ada, hook, &[8; 32]).await.unwrap());
    let first = until().await;
    assert!(webhooks::rotate(&pool, ada, hook, &[9; 32]).await.unwrap());
    assert_eq!(signing().await, [9, 7]);
    assert_eq!(until().await, first, "a repeat does not prolong its use");
    sql(&pool, "update webhooks set old_secret_until = old_secret_until - interval '61 minutes'")
        .await;
    assert!(webhooks::rotate(&pool, ada, hook, &[10; 32]).await.unwrap());
    assert_eq!(signing().await, [10, 9]);
    assert!(until().await > first);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn old_deliveries_and_those_of_deleted_accounts_go(pool: PgPool) {
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    let hook = webhook(&pool, ada, &EventType::SUBSCRIBABLE, 1).await;
    let other = webhook(&pool, bob, &EventType::SUBSCRIBABLE, 1).await;
    assert!(webhooks::rotate(&pool, ada, hook, &[8; 32]).await.unwrap());
    let kept = webhooks::send_test(&pool, ada, hook).await.unwrap();
    sql(
        &pool,
        "insert into webhook_deliveries (webhook_id, id, event, balance, state)
         select id, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'webhook.test', 0, 'delivered'
         from webhooks, generate_series(1, 1003) n",
    )
    .await;
    assert_eq!(webhooks::delete_old(&pool).await.unwrap(), 6, "three of each are too many");
    let count = async || webhooks::deliveries(&pool, hook, None, 5000).await.unwrap();
    assert_eq!((count().await.len(), count().await[0].id), (1001, kept));
    let claimed = claim(&pool, Lane::Fast, 10, 10).await;
    assert_eq!(claimed[0].secrets.iter().map(|secret| secret.0[0]).collect::<Vec<_>>(), [8, 7]);
    sql(&pool, "update webhooks set old_secret_until = now() - interval '1 second' where old_secret is not null").await;
    sql(&pool, "update webhook_deliveries set created_at = now() - interval '15 days' where state = 'delivered'").await;
    assert_eq!(webhooks::delete_old(&pool).await.unwrap(), 2000);
    let old: Option<Vec<u8>> = sqlx::query_scalar("select old_secret from webhooks where id = $1")
        .bind(hook)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(old, None, "a secret that no longer signs is not kept");

    accounts::delete(&pool, ada, &[7; 32]).await.unwrap().unwrap();
    assert_eq!(webhooks::list(&pool, ada).await.unwrap().len(), 0);
    let left: Vec<WebhookId> =
        sqlx::query_scalar("select distinct webhook_id from webhook_deliveries")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(left, [], "those of the other account were too old");
    assert_eq!(webhooks::list(&pool, bob).await.unwrap()[0].id, other);
}
