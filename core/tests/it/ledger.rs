//! Random sequences of operations on users, jobs and orders, interrupted between any two statements, with a check of
//! the ledger's invariants after each.
//!
//! Each sequence has its own seed. A failure names it, and `RETOUCH_LEDGER_SEED` runs that sequence alone.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use retouch_catalog::{Factor, FixMode, JobClass, Tier, Tool};
use retouch_core::credits::{AdjustError, Adjusted, Adjustment, PACKS, price};
use retouch_core::jobs::{self, Failure, Isolation, JobState, NewJob, SubmitError};
use retouch_core::orders::{
    self, Message, Order, Payment, PaymentEvent, PaymentStatus, Reversal, ReversalEvent,
};
use retouch_core::{Attempt, ImageId, JobId, UserId, WorkerId, credits};
use retouch_standins::testing::{ISSUER, always_reachable, image, new_result, sign_in};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

const STEPS: usize = 30;

/// One sequence: a user, their jobs and orders so far, and the random numbers.
struct Life {
    pool: PgPool,
    rng: StdRng,
    tool: Tool,
    user: UserId,
    image: ImageId,
    workers: [WorkerId; 2],
    jobs: Vec<JobId>,
    orders: Vec<Order>,
    grants: Vec<(String, i32)>,
    /// The state of each job that has ended, which must not change again.
    ended: HashMap<JobId, JobState>,
    steps: u64,
}

/// A balance as its row, its ledger and its jobs state it.
#[derive(Debug, PartialEq, Eq)]
struct Books {
    credits: i32,
    reserved: i32,
    ledger: i32,
    active: i32,
}

impl Life {
    async fn begin(pool: PgPool, seed: u64, tool: Tool) -> Self {
        always_reachable(&pool).await;
        let user = sign_in(&pool, ISSUER, &format!("life {seed}")).await.id;
        let image = image(&pool, None, user, b"x").await;
        Self {
            pool,
            rng: StdRng::seed_from_u64(seed),
            tool,
            user,
            image,
            workers: [WorkerId::new(), WorkerId::new()],
            jobs: Vec::new(),
            orders: Vec::new(),
            grants: Vec::new(),
            ended: HashMap::new(),
            steps: 0,
        }
    }

    async fn step(&mut self) {
        self.steps += 1;
        match self.rng.random_range(0..12) {
            0 => self.grant().await,
            1..=3 => self.submit().await,
            4..=5 => self.claim().await,
            6 => self.finish().await,
            7 => self.fail_or_cancel().await,
            8 => self.lose().await,
            9 => self.buy().await,
            _ => self.reverse().await,
        }
        self.check().await;
    }

    /// Runs `work`, or drops it at one of its await points, as if the process had died there.
    async fn maybe_interrupted<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut left =
            if self.rng.random_bool(0.3) { self.rng.random_range(1..12) } else { usize::MAX };
        let mut work = pin!(work);
        poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    fn some<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.rng.random_range(0..all.len())])
    }

    async fn grant(&mut self) {
        let amount = self.rng.random_range(-15..40);
        let reference = format!("{} {}", self.user, self.rng.random_range(0..6));
        if amount == 0 {
            return;
        }
        let before = self.books().await;
        let pool = self.pool.clone();
        let user = self.user;
        let change = Adjustment { user, amount, reference: &reference, note: None };
        let granted = self.maybe_interrupted(credits::adjust(&pool, &change)).await;
        let earlier = self.grants.iter().find(|(known, _)| *known == reference).map(|(_, of)| *of);
        let is_known = earlier.is_some();
        let recorded: Option<i32> =
            sqlx::query_scalar("select amount from ledger where reference = $1")
                .bind(&reference)
                .fetch_optional(&self.pool)
                .await
                .unwrap();
        match granted {
            Some(Ok(Adjusted::Applied)) => assert_eq!(earlier, None, "a reference applies once"),
            Some(Ok(Adjusted::AlreadyApplied)) => assert_eq!(earlier, Some(amount)),
            Some(Err(AdjustError::ReferenceReused)) => assert_ne!(earlier, Some(amount)),
            Some(Err(_)) => {
                assert!(
                    before.credits + amount < before.reserved,
                    "an adjustment is refused only if it would overdraw"
                );
                assert!(is_known || recorded.is_none());
            }
            None => {}
        }
        if let Some(amount) = recorded.filter(|_| !is_known) {
            self.grants.push((reference, amount));
        }
    }

    async fn submit(&mut self) {
        let key = format!("key {}", self.rng.random_range(0..40));
        let new = NewJob {
            owner: Some(self.user),
            image: self.image,
            tool: self.tool,
            fix: None,
            tier: Tier::Paid,
            idempotency_key: Some(key),
            queue_limit: None,
        };
        let before = self.books().await;
        let pool = self.pool.clone();
        match self.maybe_interrupted(jobs::submit(&pool, &new)).await {
            Some(Ok(submitted)) => {
                let job = submitted.into_job();
                if !self.jobs.contains(&job.id) {
                    assert_eq!(self.books().await.reserved, before.reserved + job.cost);
                }
            }
            Some(Err(SubmitError::NotEnoughCredits)) => {
                assert!(before.credits - before.reserved < price(self.tool));
                assert_eq!(self.books().await, before);
            }
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
        self.jobs = sqlx::query_scalar("select id from jobs where owner_id = $1 order by id")
            .bind(self.user)
            .fetch_all(&self.pool)
            .await
            .unwrap();
    }

    async fn claim(&mut self) {
        let classes = [JobClass { tier: Tier::Paid, tool: self.tool.name() }];
        let worker = self.some(&self.workers.clone()).unwrap();
        let isolation =
            if self.rng.random_bool(0.7) { Isolation::Shared } else { Isolation::Alone };
        // A lease of 0 s has expired at once.
        let lease = Duration::from_secs(if self.rng.random_bool(0.7) { 600 } else { 0 });
        let pool = self.pool.clone();
        let claimed = self
            .maybe_interrupted(jobs::claim(
                &pool,
                worker,
                &classes,
                &FixMode::ALL,
                isolation,
                lease,
            ))
            .await;
        if let Some(Some(claimed)) = claimed.transpose().unwrap() {
            assert!(self.jobs.contains(&claimed.id));
            assert!((1..=jobs::MAX_ATTEMPTS).contains(&claimed.attempt));
        }
    }

    async fn finish(&mut self) {
        let (Some(job), Some(worker)) =
            (self.some(&self.jobs.clone()), self.some(&self.workers.clone()))
        else {
            return;
        };
        let attempt = Attempt { job, worker, number: self.rng.random_range(1..=3) };
        let made = new_result(job, attempt.number);
        let pool = self.pool.clone();
        let finished = self.maybe_interrupted(jobs::finish(&pool, attempt, &made)).await;
        if let Some(finished) = finished {
            let done = self.state(job).await == JobState::Done;
            assert!(done || finished.unwrap() == jobs::Finish::LeaseLost);
        }
    }

    async fn fail_or_cancel(&mut self) {
        let (Some(job), Some(worker)) =
            (self.some(&self.jobs.clone()), self.some(&self.workers.clone()))
        else {
            return;
        };
        let before = self.state(job).await;
        let attempt = Attempt { job, worker, number: self.rng.random_range(1..=3) };
        let failure = Failure { code: "test".into(), detail: "No.".into() };
        let pool = self.pool.clone();
        match self.rng.random_range(0..3) {
            0 => {
                let failed = self.maybe_interrupted(jobs::fail(&pool, attempt, &failure)).await;
                if let Some(true) = failed.transpose().unwrap() {
                    assert_eq!(
                        (before, self.state(job).await),
                        (JobState::Running, JobState::Failed)
                    );
                }
            }
            1 => {
                let cancelled = self.maybe_interrupted(jobs::cancel(&pool, job)).await;
                if let Some(cancelled) = cancelled.transpose().unwrap() {
                    assert_eq!(cancelled, !before.is_final());
                }
            }
            _ => {
                let handed = self.maybe_interrupted(jobs::hand_back(&pool, attempt)).await;
                if let Some(true) = handed.transpose().unwrap() {
                    assert_eq!(self.state(job).await, JobState::Queued);
                }
            }
        }
    }

    async fn lose(&mut self) {
        let pool = self.pool.clone();
        // A sweep of the concurrent sequence may take the same rows; either is right.
        let swept = self.maybe_interrupted(jobs::sweep(&pool, Duration::ZERO)).await;
        swept.transpose().unwrap();
    }

    async fn buy(&mut self) {
        let pack = self.rng.random_range(0..PACKS.len());
        let key = format!("order {}", self.rng.random_range(0..10));
        let pool = self.pool.clone();
        let user = self.user;
        let placing = async {
            let order = orders::place(&pool, user, &PACKS[pack], Some(&key)).await.ok()?;
            let session = format!("cs_{}", order.id);
            orders::attach_session(&pool, &order, &session, "https://pay.test").await.unwrap();
            orders::owned(&pool, user, order.id).await.unwrap()
        };
        if let Some(Some(order)) = self.maybe_interrupted(placing).await
            && self.orders.iter().all(|known| known.id != order.id)
        {
            self.orders.push(order);
        }
    }

    /// Receives a message about a payment, a refund or a dispute.
    async fn reverse(&mut self) {
        if self.orders.is_empty() {
            return self.buy().await;
        }
        let order = self.orders[self.rng.random_range(0..self.orders.len())].clone();
        let intent = format!("pi_{}", order.id);
        let statuses = [
            PaymentStatus::Paid,
            PaymentStatus::Paid,
            PaymentStatus::Unpaid,
            PaymentStatus::Failed,
            PaymentStatus::Expired,
        ];
        let reversal =
            |event| PaymentEvent::Reversal(Reversal { payment_intent: intent.clone(), event });
        let dispute = format!("dp_{}", order.id);
        let event = match self.rng.random_range(0..8) {
            0..=4 => PaymentEvent::Payment(Payment {
                session: order.session.clone().unwrap(),
                order: Some(order.id),
                buyer: Some(order.user),
                status: self.some(&statuses).unwrap(),
                amount_cents: Some(order.amount_cents),
                currency: Some(order.currency.clone()),
                payment_intent: Some(intent.clone()),
                email: None,
            }),
            5 => reversal(ReversalEvent::Refunded {
                total_cents: self.rng.random_range(0..=order.amount_cents),
                of_cents: Some(order.amount_cents),
            }),
            6 => reversal(ReversalEvent::DisputeOpened {
                dispute,
                amount_cents: Some(self.rng.random_range(0..=order.amount_cents)),
            }),
            _ => reversal(ReversalEvent::DisputeClosed {
                dispute,
                amount_cents: None,
                won: self.rng.random_bool(0.5),
            }),
        };
        let id = format!("evt_{}_{}", order.id, self.rng.random_range(0..30));
        let message = Message { id, kind: "test".into(), payload: "{}".into(), event };
        let pool = self.pool.clone();
        let received = self.maybe_interrupted(orders::receive(&pool, &message)).await;
        received.transpose().unwrap();
    }

    async fn state(&self, job: JobId) -> JobState {
        jobs::get(&self.pool, job).await.unwrap().unwrap().state
    }

    async fn books(&self) -> Books {
        let (credits, reserved, ledger, active) = sqlx::query_as(
            "select credits, reserved,
                    (select sum(amount) from ledger where user_id = u.id)::int,
                    (select coalesce(sum(cost), 0) from jobs
                     where owner_id = u.id and state in ('queued', 'running'))::int
             from users u where id = $1",
        )
        .bind(self.user)
        .fetch_one(&self.pool)
        .await
        .unwrap();
        Books { credits, reserved, ledger, active }
    }

    /// Checks the invariants that hold after every step, interrupted or not.
    async fn check(&mut self) {
        let books = self.books().await;
        assert_eq!(books.credits, books.ledger, "a balance is the sum of its ledger entries");
        assert_eq!(books.reserved, books.active, "the hold is the cost of the active jobs");
        assert!(books.credits >= books.reserved && books.reserved >= 0, "{books:?}");

        let mut spent = 0;
        for job in self.jobs.clone() {
            let job = jobs::get(&self.pool, job).await.unwrap().unwrap();
            if let Some(end) = self.ended.get(&job.id) {
                assert_eq!(*end, job.state, "a job ends once");
            }
            if job.state.is_final() {
                self.ended.insert(job.id, job.state);
            }
            if job.state == JobState::Done {
                spent += job.cost;
            }
        }
        let (bought, reversed, missing): (i64, i64, i64) = sqlx::query_as(
            "select coalesce(sum(credits) filter (where fulfilled_at is not null), 0),
                    coalesce(sum(credits_reversed), 0), coalesce(sum(credits_missing), 0)
             from orders where user_id = $1",
        )
        .bind(self.user)
        .fetch_one(&self.pool)
        .await
        .unwrap();
        let granted: i32 = self.grants.iter().map(|(_, amount)| amount).sum();
        let expected =
            i64::from(credits::SIGNUP_CREDITS + granted - spent) + bought - (reversed - missing);
        assert_eq!(
            i64::from(books.credits),
            expected,
            "the balance is what came in, less what was spent and taken back"
        );
    }
}

async fn live(pool: PgPool, seed: u64, tool: Tool) -> Result<(), String> {
    let whole = tokio::spawn(async move {
        let mut life = Life::begin(pool, seed, tool).await;
        for _ in 0..STEPS {
            life.step().await;
        }
        // Cancel the active jobs, so that the next sequence claims only its own.
        for job in life.jobs.clone() {
            jobs::cancel(&life.pool, job).await.unwrap();
        }
        life.check().await;
    });
    whole.await.map_err(|panic| format!("RETOUCH_LEDGER_SEED={seed}: {panic}"))
}

/// Returns the number of sequences, and the seed if only one sequence is to run.
#[expect(clippy::disallowed_methods, reason = "a test has no command line")]
fn selection() -> (u64, Option<u64>) {
    let sequences = if std::env::var_os("RETOUCH_TEST_FULL").is_some() { 10_000 } else { 400 };
    let only = std::env::var("RETOUCH_LEDGER_SEED").ok().map(|seed| seed.parse().unwrap());
    (sequences, only)
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_ledger_balances_after_any_interrupted_sequence(
    pool: PgPoolOptions,
    connect: PgConnectOptions,
) {
    // This tests transactions, not the disk.
    let connect = connect.options([("synchronous_commit", "off")]);
    let pool = pool.max_connections(12).connect_with(connect).await.unwrap();
    let (sequences, only) = selection();
    // Workers claim any job of a tool, so concurrent sequences need different tools.
    let lanes = [Tool::RemoveBackground, Tool::Upscale(Factor::X4)];
    let lanes = lanes.into_iter().enumerate().map(|(lane, tool)| {
        let pool = pool.clone();
        async move {
            for seed in (lane as u64..sequences).step_by(2) {
                if only.is_none_or(|only| only == seed) {
                    live(pool.clone(), seed, tool).await?;
                }
            }
            Ok::<(), String>(())
        }
    });
    for lane in futures::future::join_all(lanes).await {
        lane.unwrap();
    }
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}
