//! An audit reports every violated invariant and nothing else.

use std::time::Duration;

use bytes::Bytes;
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};
use retouch_core::audit::{self, Finding};
use retouch_core::credits::{self, PACKS};
use retouch_core::jobs::{self, Isolation, NewJob};
use retouch_core::results;
use retouch_core::{JobId, ResultId, UserId, WorkerId, accounts, janitor, orders, storage};
use retouch_standins::testing::{Bucket, adjust, first_attempt, image, new_result, user};
use sqlx::{Connection, PgPool};

const NO_AGE: Duration = Duration::ZERO;

/// Changes rows without running the triggers that guard them.
async fn tamper(pool: &PgPool, statement: &'static str) {
    let mut conn = pool.acquire().await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    sqlx::query("set local session_replication_role = 'replica'").execute(&mut *tx).await.unwrap();
    let changed = sqlx::query(statement).execute(&mut *tx).await.unwrap();
    assert_ne!(changed.rows_affected(), 0, "{statement}");
    tx.commit().await.unwrap();
}

/// Runs a paid job of `owner` to its end; with a `bucket`, also writes its objects.
async fn done(pool: &PgPool, bucket: Option<&Bucket>, owner: UserId) -> (JobId, ResultId) {
    let worker = WorkerId::new();
    let picture = image(pool, bucket.map(|bucket| &bucket.storage), owner, b"x").await;
    if let Some(bucket) = bucket {
        let key = storage::image_thumbnail_key(picture);
        bucket.storage.put(&key, "image/png", Bytes::from_static(b"x")).await.unwrap();
    }
    let new = NewJob {
        owner: Some(owner),
        image: picture,
        tool: Tool::RemoveBackground,
        fix: None,
        tier: Tier::Paid,
        idempotency_key: None,
        queue_limit: None,
    };
    let job = jobs::submit(pool, &new).await.unwrap().into_job().id;
    let classes = [JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground }];
    let lease = Duration::from_mins(1);
    jobs::claim(pool, worker, &classes, &FixMode::ALL, Isolation::Shared, lease)
        .await
        .unwrap()
        .unwrap();
    let made = new_result(job, 1);
    if let Some(bucket) = bucket {
        for key in [&made.object_key, &made.thumbnail_key] {
            bucket.storage.put(key, "image/png", Bytes::from_static(b"x")).await.unwrap();
        }
    }
    jobs::finish(pool, first_attempt(job, worker), &made).await.unwrap();
    (job, made.id)
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_wrong_balance_or_hold_is_found(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    user(&pool, "bob", 5).await;
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    tamper(&pool, "update users set credits = 21, reserved = 1 where subject = 'ada'").await;
    assert_eq!(
        audit::books(&pool).await.unwrap(),
        [
            Finding::Balance { user: ada, credits: 21, ledger: 20 },
            Finding::Hold { user: ada, reserved: 1, held: 0 },
        ]
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_audit_reads_every_page(pool: PgPool) {
    for statement in [
        "insert into users (id, issuer, subject, credits)
         select gen_random_uuid(), 'https://issuer.test', n, 1 from generate_series(1, 10001) n",
        "insert into jobs (id, owner_id, tool, tier, cost, state, finished_at, result_deleted_at)
         select gen_random_uuid(), id, 'remove-background', 'paid', 5, 'done', now(), now() from users",
        "insert into orders (id, user_id, pack, credits, amount_cents, currency, status)
         select gen_random_uuid(), id, 1, 20, 500, 'usd', 'paid' from users",
    ] {
        tamper(&pool, statement).await;
    }
    let found = audit::books(&pool).await.unwrap();
    let of = |is: fn(&Finding) -> bool| found.iter().filter(|finding| is(finding)).count();
    let wrong = [
        of(|finding| matches!(finding, Finding::Balance { .. })),
        of(|finding| matches!(finding, Finding::Debit { .. })),
        of(|finding| matches!(finding, Finding::OrderNotGranted { .. })),
    ];
    assert_eq!((wrong, found.len()), ([10_001; 3], 30_003), "each is found once");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_process_audits_once_an_hour_and_all_see_its_findings(pool: PgPool) {
    user(&pool, "ada", 0).await;
    assert!(audit::last(&pool).await.unwrap().is_none());
    let rounds = (0..4).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move { audit::hourly(&pool).await.unwrap() })
    });
    let mut audits = Vec::new();
    for round in rounds.collect::<Vec<_>>() {
        audits.extend(round.await.unwrap());
    }
    assert_eq!(audits, [vec![]]);
    assert_eq!(audit::last(&pool).await.unwrap().unwrap().1, 0);
    tamper(&pool, "update users set credits = 21").await;
    assert_eq!(audit::hourly(&pool).await.unwrap(), None, "no audit is due");
    tamper(&pool, "update chores set begun_at = begun_at - interval '61 minutes'").await;
    assert_eq!(audit::hourly(&pool).await.unwrap().unwrap().len(), 1);
    assert_eq!(audit::last(&pool).await.unwrap().unwrap().1, 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn sums_of_the_ledger_are_kept_and_exact(pool: PgPool) {
    let ada = user(&pool, "ada", 30).await;
    let expected = |admin: i64| vec![("admin".to_owned(), admin), ("signup_grant".to_owned(), 20)];
    assert_eq!(credits::sums_by_kind(&pool).await.unwrap(), expected(30));
    tamper(
        &pool,
        "insert into ledger (user_id, kind, amount, reference, created_at)
         select id, 'admin', 1, n, now() - interval '11 minutes' from users, generate_series(1, 120000) n",
    )
    .await;
    for _ in 0..2 {
        let all = (0..4).map(|_| credits::add_up(&pool));
        futures::future::try_join_all(all).await.unwrap();
        assert_eq!(credits::sums_by_kind(&pool).await.unwrap(), expected(120_030));
    }
    let kept = async || -> i64 {
        let sum = sqlx::query_scalar("select sum(amount)::bigint from ledger_sums");
        sum.fetch_one(&pool).await.unwrap()
    };
    assert_eq!(kept().await, 120_050, "only entries of the last ten minutes are added up again");
    adjust(&pool, ada, 5).await;
    assert_eq!(credits::sums_by_kind(&pool).await.unwrap(), expected(120_035));
    credits::add_up(&pool).await.unwrap();
    assert_eq!(
        kept().await,
        120_050,
        "one with a lower number may still appear beside the youngest"
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_done_job_with_a_wrong_or_missing_debit_is_found(pool: PgPool) {
    let ada = user(&pool, "ada", 100).await;
    let (job, _) = done(&pool, None, ada).await;
    let (other, _) = done(&pool, None, ada).await;
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    tamper(&pool, "update ledger set amount = -4 where kind = 'job' and id = (select min(id) from ledger where kind = 'job')").await;
    tamper(&pool, "update users set credits = credits + 1").await;
    let found = audit::books(&pool).await.unwrap();
    assert_eq!(found, [Finding::Debit { job, cost: 5, debited: Some(4) }]);
    tamper(&pool, "delete from ledger where kind = 'job'").await;
    tamper(&pool, "update users set credits = credits + 9").await;
    let missing = |job| Finding::Debit { job, cost: 5, debited: None };
    assert_eq!(audit::books(&pool).await.unwrap(), [missing(job), missing(other)]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_debit_or_a_result_of_a_job_that_is_not_done_is_found(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let (job, _) = done(&pool, None, ada).await;
    tamper(&pool, "update jobs set state = 'cancelled'").await;
    assert_eq!(
        audit::books(&pool).await.unwrap(),
        [
            Finding::DebitWithoutEnd { job, state: "cancelled".into() },
            Finding::ResultWithoutEnd { job },
        ]
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_lost_result_is_found_and_a_deleted_one_is_not(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let (_, deleted) = done(&pool, None, ada).await;
    let (lost, _) = done(&pool, None, ada).await;
    results::delete(&pool, ada, ToolName::RemoveBackground, deleted).await.unwrap();
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    tamper(&pool, "delete from results").await;
    assert_eq!(audit::books(&pool).await.unwrap(), [Finding::Result { job: lost }]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_order_that_was_not_granted_exactly_once_is_found(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[0], None).await.unwrap().id;
    assert_eq!(audit::books(&pool).await.unwrap(), [], "an open order owes nothing");
    tamper(&pool, "update orders set status = 'paid'").await;
    let not_granted = |owner_is_gone| [Finding::OrderNotGranted { order, owner_is_gone }];
    assert_eq!(audit::books(&pool).await.unwrap(), not_granted(false));
    tamper(&pool, "update orders set fulfilled_at = now()").await;
    let found = audit::books(&pool).await.unwrap();
    assert_eq!(found, [Finding::Order { order, granted: 20, ledger: 0 }]);
    sqlx::query("insert into ledger (user_id, kind, amount, order_id) select user_id, 'purchase', 20, id from orders")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    tamper(&pool, "update ledger set amount = 19 where kind = 'purchase'").await;
    tamper(&pool, "update users set credits = 39").await;
    let found = audit::books(&pool).await.unwrap();
    assert_eq!(found, [Finding::Order { order, granted: 20, ledger: 19 }]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn data_left_in_a_deleted_account_is_found(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[0], None).await.unwrap().id;
    accounts::delete(&pool, ada, &[1; 32]).await.unwrap().unwrap();
    assert_eq!(audit::books(&pool).await.unwrap(), []);
    // The payment arrives after the account was deleted.
    tamper(&pool, "update orders set status = 'paid', email = 'ada@example.test'").await;
    sqlx::query("insert into ledger (user_id, kind, amount, reference) select id, 'admin', 5, 'x' from users")
        .execute(&pool)
        .await
        .unwrap();
    let left = "5 credits and email addresses in orders".to_owned();
    assert_eq!(
        audit::books(&pool).await.unwrap(),
        [
            Finding::OrderNotGranted { order, owner_is_gone: true },
            Finding::DeletedAccount { user: ada, left },
        ]
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn differences_between_the_bucket_and_the_rows_are_found(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 0).await;
    let (job, _) = done(&pool, Some(&bucket), ada).await;
    let (gone, result) = done(&pool, Some(&bucket), ada).await;
    // Objects that wait for the janitor are not findings.
    results::delete(&pool, ada, ToolName::RemoveBackground, result).await.unwrap();
    for page in [1, 2, 3, 1000] {
        let compared = audit::objects_in_pages(&pool, &bucket.storage, NO_AGE, page).await.unwrap();
        assert_eq!((compared.objects, compared.findings), (8, vec![]), "in pages of {page}");
    }
    let unknown = ["backup/notes.txt".to_owned(), storage::result_key(gone, 2)];
    for key in &unknown {
        bucket.storage.put(key, "image/png", Bytes::from_static(b"x")).await.unwrap();
    }
    let missing = storage::result_thumbnail_key(job, 1);
    bucket.storage.delete(&missing).await.unwrap();
    let young = audit::objects(&pool, &bucket.storage, janitor::ORPHAN_GRACE).await.unwrap();
    assert_eq!(young.findings, [Finding::MissingObject { key: missing.clone() }]);
    let mut found = audit::objects(&pool, &bucket.storage, NO_AGE).await.unwrap().findings;
    found.sort_by_key(ToString::to_string);
    let [notes, stray] = unknown;
    assert_eq!(
        found,
        [
            Finding::UnknownObject { key: notes },
            Finding::UnknownObject { key: stray },
            Finding::MissingObject { key: missing },
        ]
    );
}
