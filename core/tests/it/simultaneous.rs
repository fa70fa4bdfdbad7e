//! Operations on one account that run at the same time: none ends in a deadlock, and the ledger balances after them.
//!
//! Each round has its own seed. A failure names it, but what runs first differs from time to time.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use retouch_catalog::{FixMode, JobClass, Tier, Tool};
use retouch_core::credits::{self, AdjustError, Adjustment, PACKS};
use retouch_core::jobs::{self, Failure, Isolation, NewJob, SubmitError};
use retouch_core::orders::{
    self, Message, Order, Payment, PaymentEvent, PaymentStatus, PlaceError, Reversal, ReversalEvent,
};
use retouch_core::{ImageId, JobId, UserId, WorkerId, accounts};
use retouch_standins::testing::{always_reachable, image, new_result, user};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};

const ROUNDS: u64 = 40;
/// How many clients act on the account at the same time, and how often each.
const CLIENTS: u64 = 8;
const ACTIONS: usize = 12;
const TOOL: Tool = Tool::RemoveBackground;

/// One of the clients of a round: a browser, a worker, or the payment provider, as chance has it.
struct Client {
    pool: PgPool,
    rng: StdRng,
    user: UserId,
    image: ImageId,
    orders: Vec<Order>,
    done: BTreeSet<&'static str>,
}

impl Client {
    async fn act(&mut self, may_delete: bool) {
        let done = match self.rng.random_range(0..if may_delete { 13 } else { 12 }) {
            0..=2 => self.submit().await,
            3..=5 => self.work().await,
            6 => self.cancel().await,
            7 => self.order().await,
            8 => self.pay().await,
            9..=10 => self.reverse().await,
            11 => self.adjust().await,
            _ => self.delete_account().await,
        };
        self.done.extend(done);
    }

    async fn submit(&mut self) -> Option<&'static str> {
        let new = NewJob {
            owner: Some(self.user),
            image: self.image,
            tool: TOOL,
            fix: None,
            tier: Tier::Paid,
            idempotency_key: Some(format!("run {}", self.rng.random_range(0..60))),
            queue_limit: None,
        };
        match jobs::submit(&self.pool, &new).await {
            Ok(_) => Some("submit"),
            Err(SubmitError::NotEnoughCredits | SubmitError::NoSuchImage) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Claims a job and ends the attempt in one of the three ways.
    async fn work(&mut self) -> Option<&'static str> {
        let (worker, lease) = (WorkerId::new(), Duration::from_mins(10));
        let classes = [JobClass { tier: Tier::Paid, tool: TOOL.name() }];
        let claimed =
            jobs::claim(&self.pool, worker, &classes, &FixMode::ALL, Isolation::Shared, lease);
        let claimed = claimed.await.unwrap()?;
        let attempt = claimed.as_attempt();
        match self.rng.random_range(0..5) {
            0 => {
                let failure = Failure { code: "test".into(), detail: "No.".into() };
                jobs::fail(&self.pool, attempt, &failure).await.unwrap().then_some("fail")
            }
            1 => jobs::hand_back(&self.pool, attempt).await.unwrap().then_some("hand back"),
            // The worker dies, and its lease expires.
            2 => {
                jobs::sweep(&self.pool, Duration::ZERO).await.unwrap();
                Some("sweep")
            }
            _ => {
                let made = new_result(attempt.job, attempt.number);
                let finished = jobs::finish(&self.pool, attempt, &made).await.unwrap();
                (finished == jobs::Finish::Done).then_some("finish")
            }
        }
    }

    async fn cancel(&mut self) -> Option<&'static str> {
        let active: Vec<JobId> = sqlx::query_scalar(
            "select id from jobs where owner_id = $1 and state in ('queued', 'running') order by id",
        )
        .bind(self.user)
        .fetch_all(&self.pool)
        .await
        .unwrap();
        let job = *active.get(self.rng.random_range(0..active.len().max(1)))?;
        jobs::cancel(&self.pool, job).await.unwrap().then_some("cancel")
    }

    async fn order(&mut self) -> Option<&'static str> {
        let key = format!("order {}", self.rng.random_range(0..60));
        match orders::place(&self.pool, self.user, &PACKS[0], Some(&key)).await {
            Ok(order) => {
                let session = format!("cs_{}", order.id);
                orders::attach_session(&self.pool, &order, &session, "https://pay.test")
                    .await
                    .unwrap()
                    .map(|_| "order")
            }
            Err(PlaceError::NoSuchUser) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn some_order(&mut self) -> Order {
        self.orders[self.rng.random_range(0..self.orders.len())].clone()
    }

    async fn pay(&mut self) -> Option<&'static str> {
        let order = self.some_order();
        let payment = Payment {
            session: order.session.clone().unwrap(),
            order: Some(order.id),
            buyer: Some(order.user),
            status: PaymentStatus::Paid,
            amount_cents: Some(order.amount_cents),
            currency: Some(order.currency.clone()),
            payment_intent: Some(format!("pi_{}", order.id)),
            email: None,
        };
        if self.rng.random_bool(0.5) {
            orders::settle(&self.pool, &payment).await.unwrap();
        } else {
            self.receive(&order, PaymentEvent::Payment(payment)).await;
        }
        Some("pay")
    }

    async fn reverse(&mut self) -> Option<&'static str> {
        let order = self.some_order();
        let dispute = format!("dp_{}", order.id);
        let event = match self.rng.random_range(0..3) {
            0 => ReversalEvent::Refunded {
                total_cents: self.rng.random_range(0..=order.amount_cents),
                of_cents: Some(order.amount_cents),
            },
            1 => ReversalEvent::DisputeOpened { dispute, amount_cents: None },
            _ => ReversalEvent::DisputeClosed {
                dispute,
                amount_cents: None,
                won: self.rng.random_bool(0.5),
            },
        };
        let payment_intent = format!("pi_{}", order.id);
        self.receive(&order, PaymentEvent::Reversal(Reversal { payment_intent, event })).await;
        Some("reverse")
    }

    async fn receive(&mut self, order: &Order, event: PaymentEvent) {
        let id = format!("evt_{}_{}", order.id, self.rng.random_range(0..30));
        let message = Message { id, kind: "test".into(), payload: "{}".into(), event };
        orders::receive(&self.pool, &message).await.unwrap();
    }

    async fn adjust(&mut self) -> Option<&'static str> {
        let reference = format!("{} {}", self.user, self.rng.random_range(0..1000));
        let amount = if self.rng.random_bool(0.5) { 30 } else { -10 };
        let change = Adjustment { user: self.user, amount, reference: &reference, note: None };
        match credits::adjust(&self.pool, &change).await {
            Ok(_) => Some("adjust"),
            Err(
                AdjustError::Held { .. } | AdjustError::NoSuchUser | AdjustError::ReferenceReused,
            ) => None,
            Err(error) => panic!("{error}"),
        }
    }

    async fn delete_account(&mut self) -> Option<&'static str> {
        let deleted = accounts::delete(&self.pool, self.user, &[0; 32]).await.unwrap();
        accounts::erase_deleted(&self.pool).await.unwrap();
        deleted.map(|_| "delete")
    }
}

/// Lets the clients act on one account at the same time, and returns what at least one of them got done.
async fn round(pool: &PgPool, seed: u64) -> BTreeSet<&'static str> {
    let user = user(pool, &format!("round {seed}"), 200).await;
    let image = image(pool, None, user, b"x").await;
    let mut orders = Vec::new();
    for pack in &PACKS[..2] {
        let order = orders::place(pool, user, pack, None).await.unwrap();
        let session = format!("cs_{}", order.id);
        orders::attach_session(pool, &order, &session, "https://pay.test").await.unwrap();
        orders.extend(orders::owned(pool, user, order.id).await.unwrap());
    }
    let clients = (0..CLIENTS).map(|number| {
        let mut client = Client {
            pool: pool.clone(),
            rng: StdRng::seed_from_u64(seed * CLIENTS + number),
            user,
            image,
            orders: orders.clone(),
            done: BTreeSet::new(),
        };
        tokio::spawn(async move {
            for action in 0..ACTIONS {
                // In every other round somebody may delete the account, late enough for the others to have done much.
                client.act(seed % 2 == 1 && action > ACTIONS / 2).await;
            }
            client.done
        })
    });
    let done = futures::future::join_all(clients).await;
    let done = done
        .into_iter()
        .map(|client| client.unwrap_or_else(|panic| panic!("round {seed}: {panic}")));
    done.flatten().collect()
}

/// Returns how far the ledger's entries are from what the jobs and orders say: credits spent, bought, and taken back.
async fn unexplained(pool: &PgPool) -> (i64, i64, i64) {
    sqlx::query_as(
        "select (select coalesce(sum(amount), 0) from ledger where kind = 'job')
                + (select coalesce(sum(cost), 0) from jobs where state = 'done'),
                (select coalesce(sum(amount), 0) from ledger where kind = 'purchase')
                - (select coalesce(sum(credits), 0) from orders where fulfilled_at is not null),
                (select coalesce(sum(amount), 0) from ledger where kind in ('refund', 'dispute'))
                + (select coalesce(sum(credits_reversed - credits_missing), 0) from orders)",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_ledger_balances_after_simultaneous_operations(
    pool: PgPoolOptions,
    connect: PgConnectOptions,
) {
    // This tests transactions, not the disk.
    let connect = connect.options([("synchronous_commit", "off")]);
    let pool = pool.max_connections(12).connect_with(connect.clone()).await.unwrap();
    always_reachable(&pool).await;
    let mut done = BTreeSet::new();
    for seed in 0..ROUNDS {
        done.extend(round(&pool, seed).await);
        assert_eq!(credits::audit(&pool).await.unwrap(), [], "round {seed}");
        assert_eq!(unexplained(&pool).await, (0, 0, 0), "round {seed}");
    }
    let all = [
        "adjust",
        "cancel",
        "delete",
        "fail",
        "finish",
        "hand back",
        "order",
        "pay",
        "reverse",
        "submit",
        "sweep",
    ];
    assert_eq!(
        done.into_iter().collect::<Vec<_>>(),
        all,
        "every operation succeeded at least once"
    );

    // Sessions report their statistics when they end at the latest.
    pool.close().await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    let mut reader = PgConnection::connect_with(&connect).await.unwrap();
    let deadlocks: i64 = sqlx::query_scalar(deadlocks).fetch_one(&mut reader).await.unwrap();
    assert_eq!(deadlocks, 0);
}
