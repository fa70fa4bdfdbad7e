//! Suspects: jobs that lost a worker run alone, and delay nobody.

use retouch_core::jobs::{PATIENCE, UNPAID_PATIENCE};

use super::*;

/// Submits a job and lets it lose its worker. It is a suspect afterwards.
async fn suspect(pool: &PgPool, new: &NewJob) -> JobId {
    always_reachable(pool).await;
    let job = submit(pool, new).await;
    let (worker, shared) = (WorkerId::new(), Isolation::Shared);
    let claimed = jobs::claim(pool, worker, &classes(), &FixMode::ALL, shared, NO_LEASE).await;
    assert_eq!(claimed.unwrap().unwrap().id, job);
    assert_eq!(jobs::sweep(pool, NO_LEASE).await.unwrap().requeued, [job]);
    job
}

/// Backdates suspects, so that they have waited longer than `patience`.
async fn exhaust(pool: &PgPool, patience: Duration) {
    let aged = "update jobs set run_after = now() - make_interval(secs => $1 + 1) where losses > 0";
    sqlx::query(aged).bind(patience.as_secs_f64()).execute(pool).await.unwrap();
}

async fn suspects(pool: &PgPool) -> Suspects {
    jobs::suspects(pool, &classes(), &FixMode::ALL).await.unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_suspect_is_claimed_only_by_a_worker_that_runs_nothing_else(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    assert_eq!(suspects(&pool).await, Suspects::None);
    let job = suspect(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    assert_eq!(suspects(&pool).await, Suspects::Due);
    assert!(claim(&pool, WorkerId::new()).await.is_none());
    let (worker, alone) = (WorkerId::new(), Isolation::Alone);
    let claimed = jobs::claim(&pool, worker, &classes(), &FixMode::ALL, alone, LEASE).await;
    assert_eq!(claimed.unwrap().unwrap().id, job);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unpaid_suspect_does_not_keep_paid_work_waiting(pool: PgPool) {
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    suspect(&pool, &free(ada, image(&pool, None, ada, b"x").await)).await;
    assert_eq!(suspects(&pool).await, Suspects::WhenIdle);
    let other = submit(&pool, &paid(bob, image(&pool, None, bob, b"y").await)).await;
    assert_eq!(suspects(&pool).await, Suspects::None, "paid work goes first");
    exhaust(&pool, UNPAID_PATIENCE).await;
    assert_eq!(
        suspects(&pool).await,
        Suspects::None,
        "a free job stops no worker that has paid work"
    );
    assert_eq!(claim(&pool, WorkerId::new()).await.unwrap().id, other);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unpaid_suspect_waits_for_unpaid_work_only_for_a_while(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    suspect(&pool, &free(ada, image(&pool, None, ada, b"x").await)).await;
    submit(&pool, &free(ada, image(&pool, None, ada, b"y").await)).await;
    exhaust(&pool, PATIENCE).await;
    assert_eq!(suspects(&pool).await, Suspects::WhenIdle);
    exhaust(&pool, UNPAID_PATIENCE).await;
    assert_eq!(suspects(&pool).await, Suspects::Due);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_paid_suspect_is_due_after_a_while(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    suspect(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    submit(&pool, &paid(ada, image(&pool, None, ada, b"y").await)).await;
    assert_eq!(suspects(&pool).await, Suspects::None);
    exhaust(&pool, PATIENCE).await;
    assert_eq!(suspects(&pool).await, Suspects::Due);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn unpaid_jobs_wait_for_a_paid_suspect_unless_another_worker_runs_it(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    suspect(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let unpaid = submit(&pool, &free(ada, image(&pool, None, ada, b"y").await)).await;
    assert!(claim(&pool, WorkerId::new()).await.is_none());
    let (worker, isolation) = (WorkerId::new(), Isolation::Unyielding);
    let anyway = jobs::claim(&pool, worker, &classes(), &FixMode::ALL, isolation, LEASE).await;
    assert_eq!(anyway.unwrap().unwrap().id, unpaid);
}

/// Tries to take the right to run suspects, and gives it back at once.
async fn may_run_suspects(pool: &PgPool) -> bool {
    jobs::with_suspect_right(pool, LEASE, async {}).await.unwrap().is_some()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_worker_at_a_time_may_run_suspects(pool: PgPool) {
    // Longer than the lease, which is renewed.
    let lease = Duration::from_millis(600);
    let alone = jobs::with_suspect_right(&pool, lease, async {
        for _ in 0..10 {
            assert!(!may_run_suspects(&pool).await);
            tokio::time::sleep(lease / 4).await;
        }
    });
    assert!(alone.await.unwrap().is_some());
    assert!(may_run_suspects(&pool).await, "it was given back");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_that_lost_the_right_does_not_give_back_that_of_the_next(pool: PgPool) {
    let late = jobs::with_suspect_right(&pool, LEASE, async {
        sqlx::query("update suspect_right set holder = gen_random_uuid()")
            .execute(&pool)
            .await
            .unwrap();
    });
    assert!(late.await.unwrap().is_some());
    assert!(!may_run_suspects(&pool).await, "another worker has the right");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_that_vanishes_or_freezes_loses_the_right_to_run_suspects(pool: PgPool) {
    let right = jobs::with_suspect_right(&pool, LEASE, std::future::pending::<()>());
    assert!(tokio::time::timeout(Duration::from_secs(2), right).await.is_err());
    assert!(!may_run_suspects(&pool).await);
    sqlx::query("update suspect_right set held_until = held_until - $1")
        .bind(LEASE)
        .execute(&pool)
        .await
        .unwrap();
    assert!(may_run_suspects(&pool).await);
}
