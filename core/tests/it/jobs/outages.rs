//! Faults, outages and missing workers: what a job survives, and how it ends otherwise.

use retouch_core::Clock;
use retouch_core::jobs::{Cause, Retry, Sweep, WaitsFor};
use retouch_core::workers::{self, OBJECT_STORE, ServedModel, Worker, WorkerProblem, WorkerState};

use super::*;

/// Claims the only job and ends the attempt for `cause`, until the job fails. Returns the number of attempts.
async fn attempts_until_failure(pool: &PgPool, cause: Cause) -> i32 {
    let failure = Failure { code: "storage_unavailable".into(), detail: "Try again later.".into() };
    loop {
        sqlx::query("update jobs set run_after = now()").execute(pool).await.unwrap();
        let worker = WorkerId::new();
        let claimed = claim(pool, worker).await.unwrap();
        let outcome = jobs::retry(pool, &claimed, cause, &failure).await.unwrap();
        assert!(claim(pool, worker).await.is_none(), "backing off or ended");
        if outcome == Retry::Failed {
            let job = jobs::get(pool, claimed.id).await.unwrap().unwrap();
            assert_eq!(job.failure, Some(failure));
            return claimed.attempt;
        }
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_transient_fault_is_retried_and_then_costs_nothing(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    assert_eq!(attempts_until_failure(&pool, Cause::Fault).await, jobs::MAX_ATTEMPTS);
    assert_eq!(balance(&pool, "ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_repeated_retry_leaves_the_next_attempt_alone(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let (worker, failure) = (WorkerId::new(), Failure { code: "x".into(), detail: "x".into() });
    let retry = async |claimed| jobs::retry(&pool, claimed, Cause::Fault, &failure).await.unwrap();
    let first = claim(&pool, worker).await.unwrap();
    assert_eq!(retry(&first).await, Retry::Queued);
    sqlx::query("update jobs set run_after = now()").execute(&pool).await.unwrap();
    let second = claim(&pool, worker).await.unwrap();
    // The answer to the first was lost.
    assert_eq!(retry(&first).await, Retry::LeaseLost);
    assert_eq!(state(&pool, job).await, JobState::Running);
    assert_eq!(retry(&second).await, Retry::Queued);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_lost_the_device_is_a_suspect(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let (worker, failure) = (WorkerId::new(), Failure { code: "x".into(), detail: "x".into() });
    let claimed = claim(&pool, worker).await.unwrap();
    jobs::retry(&pool, &claimed, Cause::DeviceLost, &failure).await.unwrap();
    sqlx::query("update jobs set run_after = now()").execute(&pool).await.unwrap();
    assert!(claim(&pool, worker).await.is_none(), "it runs alone");
    let alone = Isolation::Alone;
    let claimed = jobs::claim(&pool, worker, &classes(), &FixMode::ALL, alone, LEASE).await;
    assert_eq!(claimed.unwrap().unwrap().attempt, 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_outage_uses_up_no_attempt(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    assert_eq!(attempts_until_failure(&pool, Cause::Outage).await, MAX_OUTAGES + 1);
    assert_eq!(balance(&pool, "ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_claim_whose_answer_was_lost_uses_up_no_attempt(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let worker = WorkerId::new();
    let mut claimed = Vec::new();
    for _ in 0..2 {
        submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
        claimed.push(claim(&pool, worker).await.unwrap().id);
    }
    let (held, lost) = (claimed[0], claimed[1]);
    let release = async |worker| {
        jobs::release_unknown(&pool, worker, |job| job == held, LEASE, LEASE / 2).await.unwrap()
    };
    assert_eq!(release(worker).await, [], "the answers may be on their way");
    let age = "update jobs set lease_until = lease_until - $1";
    sqlx::query(age).bind(LEASE * 2 / 3).execute(&pool).await.unwrap();
    assert_eq!(release(WorkerId::new()).await, [], "they are another worker's");
    let mut connection = pool.acquire().await.unwrap();
    let mut hung = connection.begin().await.unwrap();
    let lock = "select from jobs where id = $1 for update";
    sqlx::query(lock).bind(lost.uuid()).execute(&mut *hung).await.unwrap();
    assert_eq!(release(worker).await, [], "it waits for no lock");
    hung.rollback().await.unwrap();
    assert_eq!(release(worker).await, [lost]);
    let counts = "select attempt, interruptions, outages, losses from jobs where id = $1 and state = 'queued'";
    let counts = sqlx::query_as::<_, (i32, i32, i32, i32)>(counts).bind(lost.uuid());
    assert_eq!(counts.fetch_one(&pool).await.unwrap(), (1, 1, 1, 0));
    assert_eq!(state(&pool, held).await, JobState::Running);
    assert_eq!(claim(&pool, worker).await.unwrap().id, lost);
}

/// Sets how long ago the last outage ended, and how long ago a process last reached the database, in seconds.
async fn reached(pool: &PgPool, since: i32, seen: i32) {
    sqlx::query(
        "update reachability
         set since = now() - make_interval(secs => $1), seen_at = now() - make_interval(secs => $2)",
    )
    .bind(since)
    .bind(seen)
    .execute(pool)
    .await
    .unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_outage_costs_no_job_its_worker(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let worker = WorkerId::new();
    claim(&pool, worker).await.unwrap();
    let expire = "update jobs set lease_until = now() - interval '30 seconds'";
    sqlx::query(expire).execute(&pool).await.unwrap();
    // Nobody has reached the database for a minute: the sweeper is the first.
    reached(&pool, 3600, 60).await;
    assert_eq!(jobs::sweep(&pool, LEASE).await.unwrap(), Sweep::default());
    jobs::record_reachable(&pool).await.unwrap();
    assert_eq!(jobs::sweep(&pool, LEASE).await.unwrap(), Sweep::default(), "workers go first");
    assert_eq!(jobs::renew(&pool, worker, &[job], LEASE).await.unwrap(), [job]);
    reached(&pool, 16, 0).await;
    assert_eq!(jobs::sweep(&pool, LEASE).await.unwrap(), Sweep::default(), "it was renewed");
    assert_eq!(
        jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap(),
        Finish::Done
    );
    assert_eq!(balance(&pool, "ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_whose_worker_died_in_an_outage_is_no_suspect(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    for attempt in 1..=5 {
        assert_eq!(claim(&pool, WorkerId::new()).await.unwrap().attempt, attempt);
        let expire = "update jobs set lease_until = now() - interval '5 seconds'";
        sqlx::query(expire).execute(&pool).await.unwrap();
        reached(&pool, 18, 0).await;
        let swept = jobs::sweep(&pool, LEASE).await.unwrap();
        assert_eq!((swept.interrupted, swept.requeued), (vec![job], vec![]));
    }
    reached(&pool, 3600, 0).await;
    claim(&pool, WorkerId::new()).await.unwrap();
    let expire = "update jobs set lease_until = now() - interval '5 seconds'";
    sqlx::query(expire).execute(&pool).await.unwrap();
    assert_eq!(jobs::sweep(&pool, LEASE).await.unwrap().requeued, [job], "its worker is lost");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_no_worker_serves_ends_and_costs_nothing(pool: PgPool) {
    always_reachable(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let served = submit(&pool, &paid(ada, picture)).await;
    let fix = FixParameters {
        prompt: "a red cup".into(),
        mask: "png".into(),
        mask_sha256: vec![7; 32],
        is_mask_exact: false,
    };
    let edit = NewJob { tool: Tool::MagicFix(FixMode::Edit), fix: Some(fix), ..paid(ada, picture) };
    let unserved = submit(&pool, &edit).await;
    report_worker(&pool, ToolName::RemoveBackground).await;
    let after = Duration::from_mins(1);
    assert_eq!(jobs::end_unserved(&pool, after).await.unwrap(), [], "it is too early");
    let aged = "update jobs set created_at = now() - interval '61 seconds', run_after = now() - interval '61 seconds'";
    sqlx::query(aged).execute(&pool).await.unwrap();
    assert_eq!(jobs::end_unserved(&pool, after).await.unwrap(), [unserved]);
    let failure = jobs::get(&pool, unserved).await.unwrap().unwrap().failure.unwrap();
    assert_eq!(failure.code, "tool_unavailable");
    assert_eq!(state(&pool, served).await, JobState::Queued);
    assert_eq!(balance(&pool, "ada").await, (20, 5));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_a_worker_has_just_started_does_not_end_as_unserved(pool: PgPool) {
    always_reachable(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let aged = "update jobs set created_at = now() - interval '61 seconds', run_after = now() - interval '61 seconds'";
    sqlx::query(aged).execute(&pool).await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    let mut busy = connection.begin().await.unwrap();
    sqlx::query("select from users for update").execute(&mut *busy).await.unwrap();
    let ending = tokio::spawn({
        let pool = pool.clone();
        async move { jobs::end_unserved(&pool, Duration::from_mins(1)).await.unwrap() }
    });
    waits_for_a_lock(&pool).await;
    claim(&pool, WorkerId::new()).await.expect("the job");
    busy.commit().await.unwrap();
    assert_eq!(ending.await.unwrap(), []);
    assert_eq!(state(&pool, job).await, JobState::Running);
}

/// Submits `count` jobs of `owner`. No worker has served them for a minute.
async fn unserved(pool: &PgPool, owner: UserId, count: usize) -> Vec<JobId> {
    let mut unserved = Vec::new();
    for _ in 0..count {
        unserved.push(submit(pool, &paid(owner, image(pool, None, owner, b"x").await)).await);
    }
    sqlx::query(
        "update jobs set created_at = created_at - interval '61 seconds', run_after = run_after - interval '61 seconds'
         where owner_id = $1",
    )
    .bind(owner.uuid())
    .execute(pool)
    .await
    .unwrap();
    unserved
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn unserved_jobs_whose_owner_is_locked_do_not_hold_up_others(pool: PgPool) {
    always_reachable(&pool).await;
    let (ada, bob) = (user(&pool, "ada", 100).await, user(&pool, "bob", 0).await);
    let hers = unserved(&pool, ada, 20).await;
    let his = unserved(&pool, bob, 1).await;
    let mut connection = pool.acquire().await.unwrap();
    let mut hanging = connection.begin().await.unwrap();
    sqlx::query("select from users where id = $1 for update")
        .bind(ada.uuid())
        .execute(&mut *hanging)
        .await
        .unwrap();
    let ending = jobs::end_unserved(&pool, Duration::from_mins(1));
    let ended = tokio::time::timeout(Duration::from_secs(5), ending).await;
    assert_eq!(ended.expect("it does not wait for the lock").unwrap(), his);
    hanging.rollback().await.unwrap();
    assert_eq!(jobs::end_unserved(&pool, Duration::from_mins(1)).await.unwrap(), hers);
    assert_eq!(balance(&pool, "ada").await, (120, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unserved_job_that_cannot_be_ended_keeps_no_other_from_ending(pool: PgPool) {
    always_reachable(&pool).await;
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    let first = unserved(&pool, bob, 1).await;
    let refused = unserved(&pool, ada, 1).await;
    let last = unserved(&pool, bob, 1).await;
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as
         $$ begin raise exception 'refused'; end $$;
         create trigger refuse before update on jobs for each row
         when (new.state = 'failed' and new.owner_id = '{}') execute function refuse()",
        ada.uuid()
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&pool).await.unwrap();
    let ended = jobs::end_unserved(&pool, Duration::from_mins(1)).await.unwrap();
    assert_eq!(ended, [first, last].concat());
    sqlx::raw_sql("drop function refuse cascade").execute(&pool).await.unwrap();
    assert_eq!(jobs::end_unserved(&pool, Duration::from_mins(1)).await.unwrap(), refused);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_estimate_says_what_the_job_waits_for(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Worker), "there is none");
    report_worker(&pool, ToolName::Upscale).await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Worker), "it has another tool");
    report(
        &pool,
        Worker { problems: vec![storage_problem()], ..worker(ToolName::RemoveBackground) },
    )
    .await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Storage));
    report_worker(&pool, ToolName::RemoveBackground).await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Turn));

    let runner = WorkerId::new();
    let claimed = claim(&pool, runner).await.unwrap();
    assert_eq!(waits_for(&pool, job).await, None, "it runs");
    let failure = Failure { code: "storage_unavailable".into(), detail: "Try again later.".into() };
    jobs::retry(&pool, &claimed, Cause::Outage, &failure).await.unwrap();
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Retry));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_stopped_worker_is_not_live_even_if_a_report_arrives_late(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let worker = worker(ToolName::RemoveBackground);
    report(&pool, worker.clone()).await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Turn));
    workers::sign_off(&pool, worker.id).await.unwrap();
    report(&pool, worker.clone()).await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Worker));
    assert!(workers::live(&pool).await.unwrap().is_empty());
    let reported = workers::reported(&pool).await.unwrap();
    let states: Vec<_> = reported.iter().map(|(worker, state)| (worker.id, *state)).collect();
    assert_eq!(states, [(worker.id, WorkerState::Stopped)]);
    // A tool stays on the page while its worker restarts.
    assert_eq!(workers::known_models(&pool).await.unwrap().len(), 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_mode_that_nobody_serves_waits_for_a_worker(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let fix = FixParameters {
        prompt: "a red cup".into(),
        mask: "png".into(),
        mask_sha256: vec![7; 32],
        is_mask_exact: false,
    };
    let picture = image(&pool, None, ada, b"x").await;
    let edit = NewJob { tool: Tool::MagicFix(FixMode::Edit), fix: Some(fix), ..paid(ada, picture) };
    let job = submit(&pool, &edit).await;
    let mut remover = worker(ToolName::MagicFix);
    remover.models[0].mode = Some(FixMode::Remove);
    report(&pool, remover.clone()).await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Worker));
    remover.models[0].mode = Some(FixMode::Edit);
    report(&pool, remover).await;
    assert_eq!(waits_for(&pool, job).await, Some(WaitsFor::Turn));
}

/// Asks both ways, for one job and for many.
async fn waits_for(pool: &PgPool, job: JobId) -> Option<WaitsFor> {
    let job = jobs::get(pool, job).await.unwrap().unwrap();
    let estimate = jobs::estimate(pool, &job).await.unwrap();
    assert_eq!(jobs::estimates(pool, std::slice::from_ref(&job)).await.unwrap(), [estimate]);
    estimate.waits_for
}

fn storage_problem() -> WorkerProblem {
    WorkerProblem {
        model: OBJECT_STORE.into(),
        step: "connect".into(),
        reason: "It is away.".into(),
    }
}

async fn report_worker(pool: &PgPool, tool: ToolName) {
    report(pool, worker(tool)).await;
}

async fn report(pool: &PgPool, worker: Worker) {
    workers::report(pool, &worker).await.unwrap();
}

fn worker(tool: ToolName) -> Worker {
    let served = ServedModel {
        tool,
        tier: Tier::Paid,
        model: "tiny".into(),
        sha256: "0".repeat(64),
        mode: None,
        factor: None,
        largest_pixels: None,
        vocabulary: None,
        is_demo: false,
        is_loaded: true,
    };
    Worker {
        id: WorkerId::new(),
        name: "node".into(),
        device: "cpu".into(),
        hardware: String::new(),
        models: vec![served],
        problems: vec![],
        slots: 1,
        version: "0".into(),
        seen_at: Clock::system().now(),
    }
}
