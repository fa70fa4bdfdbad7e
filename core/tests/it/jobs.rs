//! The life of a job: nothing is lost, and nothing is debited twice.

mod fair_queue;
mod outages;
mod suspects;

use std::collections::HashSet;
use std::time::Duration;

use retouch_catalog::{Factor, FixMode, JobClass, Tier, Tool, ToolName};
use retouch_core::jobs::{
    self, Claimed, Failure, Finish, FixParameters, Isolation, JobState, MAX_OUTAGES, NewJob,
    QueueLimit, SubmitError, Submitted, Suspects,
};
use retouch_core::results::{self, NewResult};
use retouch_core::{ImageId, JobId, UserId, WorkerId, credits, images, storage};
use retouch_standins::testing::{
    ISSUER, always_reachable, first_attempt, image, new_result, sign_in, user, waits_for_a_lock,
};
use sqlx::{Acquire, PgPool};

const LEASE: Duration = Duration::from_secs(15);
const NO_LEASE: Duration = Duration::ZERO;

fn classes() -> Vec<JobClass> {
    Tier::ALL.map(|tier| JobClass { tier, tool: ToolName::RemoveBackground }).to_vec()
}

fn paid(owner: UserId, image: ImageId) -> NewJob {
    NewJob {
        owner: Some(owner),
        image,
        tool: Tool::RemoveBackground,
        tier: Tier::Paid,
        idempotency_key: None,
        fix: None,
        queue_limit: None,
    }
}

fn free(owner: UserId, image: ImageId) -> NewJob {
    NewJob { tier: Tier::Free, ..paid(owner, image) }
}

async fn submit(pool: &PgPool, new: &NewJob) -> JobId {
    jobs::submit(pool, new).await.unwrap().into_job().id
}

async fn claim(pool: &PgPool, worker: WorkerId) -> Option<Claimed> {
    jobs::claim(pool, worker, &classes(), &FixMode::ALL, Isolation::Shared, LEASE).await.unwrap()
}

async fn balance(pool: &PgPool, name: &str) -> (i32, i32) {
    let user = sign_in(pool, ISSUER, name).await;
    (user.credits, user.reserved)
}

async fn state(pool: &PgPool, job: JobId) -> JobState {
    jobs::get(pool, job).await.unwrap().unwrap().state
}

async fn assert_books_balance(pool: &PgPool) {
    assert_eq!(credits::audit(pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_jobs_that_a_worker_could_claim_wait_for_one(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let waits = async || {
        let depths = jobs::queue_depths(&pool).await.unwrap();
        let class = JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground };
        let depth = depths.into_iter().find(|depth| depth.class == class).unwrap();
        (depth.waiting, depth.oldest_secs.round())
    };
    let old = "update jobs set created_at = now() - interval '10 minutes', run_after = now() + interval '1 minute'";
    sqlx::query(old).execute(&pool).await.unwrap();
    assert_eq!(waits().await, (1, 0.0), "between two attempts");
    let due = "update jobs set run_after = now() - interval '30 seconds'";
    sqlx::query(due).execute(&pool).await.unwrap();
    let (_, secs) = waits().await;
    assert!((30.0..60.0).contains(&secs), "{secs}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn icons_do_not_make_upscales_look_slow(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let worker = WorkerId::new();
    let class = JobClass { tier: Tier::Paid, tool: ToolName::Upscale };
    // Results of 2X: of icons, which take one tile of two seconds, and of 500 × 500 pixels.
    for (sides, duration_ms) in [((4, 4), 2000), ((32, 32), 2000), ((1000, 1000), 8000)] {
        let picture = image(&pool, None, ada, b"x").await;
        let upscale = NewJob { tool: Tool::Upscale(Factor::X2), ..paid(ada, picture) };
        let job = submit(&pool, &upscale).await;
        let claimed =
            jobs::claim(&pool, worker, &[class], &[], Isolation::Shared, LEASE).await.unwrap();
        assert_eq!(claimed.map(|claimed| claimed.id), Some(job));
        let (width, height) = sides;
        let result = NewResult { width, height, duration_ms, ..new_result(job, 1) };
        jobs::finish(&pool, first_attempt(job, worker), &result).await.unwrap();
    }
    let times = jobs::typical_times(&pool).await.unwrap();
    let [upscale] = times.as_slice() else { panic!("{times:?}") };
    assert_eq!((upscale.tool, upscale.tier, upscale.secs), (class.tool, class.tier, 2.0));
    assert!((upscale.secs_per_megapixel - 2.0 / 0.065_536).abs() < 0.1, "{upscale:?}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_paid_run_is_held_then_debited(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let job = submit(&pool, &paid(ada, picture)).await;
    assert_eq!(balance(&pool, "ada").await, (20, 5));
    let worker = WorkerId::new();
    let claimed = claim(&pool, worker).await.unwrap();
    assert_eq!((claimed.id, claimed.attempt, claimed.image), (job, 1, picture));
    assert_eq!(
        jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap(),
        Finish::Done
    );
    assert_eq!(balance(&pool, "ada").await, (15, 0));
    let results = results::of_images(&pool, &[picture]).await.unwrap();
    assert_eq!((results.len(), results[0].credits, results[0].tier), (1, 5, Tier::Paid));
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn finish_twice_debits_once(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let worker = WorkerId::new();
    claim(&pool, worker).await.unwrap();
    let result = new_result(job, 1);
    let both = tokio::join!(
        jobs::finish(&pool, first_attempt(job, worker), &result),
        jobs::finish(&pool, first_attempt(job, worker), &result)
    );
    // Finishing with the same result again means that the first answer got lost.
    assert_eq!((both.0.unwrap(), both.1.unwrap()), (Finish::Done, Finish::Done));
    assert_eq!(
        jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap(),
        Finish::LeaseLost
    );
    assert_eq!(balance(&pool, "ada").await, (15, 0));
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_renewal_keeps_no_other_lease_alive(pool: PgPool) {
    always_reachable(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let (worker, frozen, classes) = (WorkerId::new(), WorkerId::new(), classes());
    let mut running = Vec::new();
    for (bytes, by) in [(b"x", worker), (b"y", worker), (b"z", frozen)] {
        submit(&pool, &paid(ada, image(&pool, None, ada, bytes).await)).await;
        let job = jobs::claim(&pool, by, &classes, &FixMode::ALL, Isolation::Shared, NO_LEASE);
        running.push(job.await.unwrap().unwrap().id);
    }
    // The worker has stopped the second job, and asks for one that it does not hold.
    let renewed = jobs::renew(&pool, worker, &[running[0], running[2]], LEASE).await;
    assert_eq!(renewed.unwrap(), running[..1]);
    let mut requeued = jobs::sweep(&pool, NO_LEASE).await.unwrap().requeued;
    requeued.sort_by_key(|job| job.uuid());
    assert_eq!(requeued, running[1..]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_locked_job_does_not_cost_its_worker_the_other_leases(pool: PgPool) {
    always_reachable(&pool).await;
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    let locked = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let other = submit(&pool, &paid(bob, image(&pool, None, bob, b"y").await)).await;
    let worker = WorkerId::new();
    for _ in 0..2 {
        jobs::claim(&pool, worker, &classes(), &FixMode::ALL, Isolation::Shared, NO_LEASE)
            .await
            .unwrap()
            .unwrap();
    }
    // An API process that cancels the job, and hangs.
    let mut connection = pool.acquire().await.unwrap();
    let mut hanging = connection.begin().await.unwrap();
    sqlx::query("select from jobs where id = $1 for update")
        .bind(locked.uuid())
        .execute(&mut *hanging)
        .await
        .unwrap();
    let both = [locked, other];
    let renewed = jobs::renew(&pool, worker, &both, LEASE);
    let renewed = tokio::time::timeout(Duration::from_secs(5), renewed).await;
    let mut held = renewed.expect("it does not wait for the lock").unwrap();
    held.sort_by_key(|job| job.uuid());
    assert_eq!(held, both, "both are still the worker's");
    assert!(jobs::sweep(&pool, NO_LEASE).await.unwrap().requeued.is_empty());
    hanging.rollback().await.unwrap();
    assert_eq!(jobs::sweep(&pool, NO_LEASE).await.unwrap().requeued, [locked]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn concurrent_workers_claim_a_job_once(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let claims = (0..16).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move { claim(&pool, WorkerId::new()).await })
    });
    let mut won = 0;
    for claim in claims.collect::<Vec<_>>() {
        won += usize::from(claim.await.unwrap().is_some());
    }
    assert_eq!(won, 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_that_lost_its_lease_cannot_finish_the_job(pool: PgPool) {
    always_reachable(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let (lost, other) = (WorkerId::new(), WorkerId::new());
    jobs::claim(&pool, lost, &classes(), &FixMode::ALL, Isolation::Shared, NO_LEASE)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(jobs::sweep(&pool, NO_LEASE).await.unwrap().requeued, [job]);
    assert_eq!(jobs::renew(&pool, lost, &[job], LEASE).await.unwrap(), []);
    let second = jobs::claim(&pool, other, &classes(), &FixMode::ALL, Isolation::Alone, LEASE)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(second.attempt, 2);
    assert_eq!(
        jobs::finish(&pool, first_attempt(job, lost), &new_result(job, 1)).await.unwrap(),
        Finish::LeaseLost
    );
    assert_eq!(state(&pool, job).await, JobState::Running);
    assert_eq!(
        jobs::finish(&pool, second.as_attempt(), &new_result(job, 2)).await.unwrap(),
        Finish::Done
    );
    assert_eq!(balance(&pool, "ada").await, (15, 0));
    let doomed: Vec<String> =
        sqlx::query_scalar("select object_key from doomed_objects order by 1")
            .fetch_all(&pool)
            .await
            .unwrap();
    let keys = [storage::result_preview_key, storage::result_thumbnail_key, storage::result_key];
    assert_eq!(doomed, keys.map(|key_of| key_of(job, 1)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_attempt_cannot_end_the_next_one_of_the_same_worker(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let worker = WorkerId::new();
    let first = claim(&pool, worker).await.unwrap();
    // The sweeper does this after an outage; the worker may still be running the job.
    sqlx::query(
        "update jobs set state = 'queued', interruptions = 1, lease_owner = null, lease_until = null",
    )
    .execute(&pool)
    .await
    .unwrap();
    let second = claim(&pool, worker).await.unwrap();
    assert_eq!((second.id, second.worker, second.attempt), (job, worker, 2));
    let failure = Failure { code: "test".into(), detail: "No.".into() };
    assert!(!jobs::hand_back(&pool, first.as_attempt()).await.unwrap());
    assert!(!jobs::fail(&pool, first.as_attempt(), &failure).await.unwrap());
    let late = jobs::finish(&pool, first.as_attempt(), &new_result(job, 1)).await.unwrap();
    assert_eq!(late, Finish::LeaseLost);
    assert_eq!(
        (state(&pool, job).await, balance(&pool, "ada").await),
        (JobState::Running, (20, 5))
    );
    let made = new_result(job, 2);
    assert_eq!(jobs::finish(&pool, second.as_attempt(), &made).await.unwrap(), Finish::Done);
    assert_eq!(balance(&pool, "ada").await, (15, 0));
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_loses_three_workers_fails_and_costs_nothing(pool: PgPool) {
    always_reachable(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    for attempt in 1..=3 {
        let isolation = if attempt == 1 { Isolation::Shared } else { Isolation::Alone };
        let claimed =
            jobs::claim(&pool, WorkerId::new(), &classes(), &FixMode::ALL, isolation, NO_LEASE)
                .await
                .unwrap();
        assert_eq!(claimed.unwrap().attempt, attempt);
        let sweep = jobs::sweep(&pool, NO_LEASE).await.unwrap();
        assert_eq!(sweep.failed.len(), usize::from(attempt == 3));
    }
    let job = jobs::get(&pool, job).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempt), (JobState::Failed, 3));
    assert_eq!(job.failure.unwrap().code, "worker_crashed");
    assert_eq!(balance(&pool, "ada").await, (20, 0));
    assert!(
        jobs::claim(&pool, WorkerId::new(), &classes(), &FixMode::ALL, Isolation::Alone, LEASE)
            .await
            .unwrap()
            .is_none()
    );
    assert_books_balance(&pool).await;
}

/// Submits a job for each of two users and lets both jobs lose their third worker.
async fn lost_for_good(pool: &PgPool) -> [(UserId, JobId); 2] {
    always_reachable(pool).await;
    let mut lost = Vec::new();
    for name in ["ada", "bob"] {
        let owner = user(pool, name, 0).await;
        let job = submit(pool, &paid(owner, image(pool, None, owner, b"x").await)).await;
        claim(pool, WorkerId::new()).await.unwrap();
        lost.push((owner, job));
    }
    sqlx::query(
        "update jobs set attempt = 3, lease_until = now() - interval '1 second'
         where state = 'running'",
    )
    .execute(pool)
    .await
    .unwrap();
    lost.try_into().unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_lost_job_that_cannot_be_ended_keeps_no_other_from_ending(pool: PgPool) {
    // Once for each user, because a sweep has no order.
    for refused in 0..2 {
        let lost = lost_for_good(&pool).await;
        let ((owner, job), (_, other)) = (lost[refused], lost[1 - refused]);
        let refuse = format!(
            "create function refuse() returns trigger language plpgsql as
             $$ begin raise exception 'refused'; end $$;
             create trigger refuse before update on jobs for each row
             when (new.state = 'failed' and new.owner_id = '{}') execute function refuse()",
            owner.uuid()
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&pool).await.unwrap();
        assert_eq!(jobs::sweep(&pool, NO_LEASE).await.unwrap().failed, [other]);
        sqlx::raw_sql("drop function refuse cascade").execute(&pool).await.unwrap();
        assert_eq!(jobs::sweep(&pool, NO_LEASE).await.unwrap().failed, [job]);
        assert_books_balance(&pool).await;
    }
    assert_eq!((balance(&pool, "ada").await, balance(&pool, "bob").await), ((20, 0), (20, 0)));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_lost_job_whose_owner_is_locked_does_not_hold_up_the_sweep(pool: PgPool) {
    for locked in 0..2 {
        let lost = lost_for_good(&pool).await;
        let ((owner, job), (_, other)) = (lost[locked], lost[1 - locked]);
        let mut connection = pool.acquire().await.unwrap();
        let mut hanging = connection.begin().await.unwrap();
        sqlx::query("select from users where id = $1 for update")
            .bind(owner.uuid())
            .execute(&mut *hanging)
            .await
            .unwrap();
        let sweep = jobs::sweep(&pool, NO_LEASE);
        let swept = tokio::time::timeout(Duration::from_secs(5), sweep).await;
        assert_eq!(swept.expect("it does not wait for the lock").unwrap().failed, [other]);
        hanging.rollback().await.unwrap();
        assert_eq!(jobs::sweep(&pool, NO_LEASE).await.unwrap().failed, [job]);
    }
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn handing_back_does_not_count_as_an_attempt(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let mut numbers = HashSet::new();
    // More often than outages may interrupt a job.
    for _ in 0..=MAX_OUTAGES {
        let claimed = claim(&pool, WorkerId::new()).await.unwrap();
        assert_eq!(claimed.attempt - claimed.interruptions, 1);
        assert!(jobs::hand_back(&pool, claimed.as_attempt()).await.unwrap());
        assert!(!jobs::hand_back(&pool, claimed.as_attempt()).await.unwrap());
        // The keys of its objects contain the number.
        assert!(numbers.insert(claimed.attempt));
    }
    assert_eq!(state(&pool, job).await, JobState::Queued);
    // Handing back does not count as an outage either.
    let claimed = claim(&pool, WorkerId::new()).await.unwrap();
    let failure = Failure { code: "test".into(), detail: "No.".into() };
    let retried = jobs::retry(&pool, &claimed, jobs::Cause::Outage, &failure).await.unwrap();
    assert_eq!(retried, jobs::Retry::Queued);
    assert_eq!(balance(&pool, "ada").await, (20, 5));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failed_job_costs_nothing_and_returns_its_free_run(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let job = submit(&pool, &free(ada, picture)).await;
    assert!(matches!(
        jobs::submit(&pool, &NewJob { idempotency_key: Some("k".into()), ..free(ada, picture) })
            .await,
        Err(SubmitError::FreeExists)
    ));
    let worker = WorkerId::new();
    claim(&pool, worker).await.unwrap();
    let failure = Failure { code: "image_unreadable".into(), detail: "Not a picture.".into() };
    assert!(jobs::fail(&pool, first_attempt(job, worker), &failure).await.unwrap());
    assert!(!jobs::fail(&pool, first_attempt(job, worker), &failure).await.unwrap());
    submit(&pool, &free(ada, picture)).await;
    assert_eq!(balance(&pool, "ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_a_result_does_not_return_its_free_run(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let job = submit(&pool, &free(ada, picture)).await;
    let worker = WorkerId::new();
    claim(&pool, worker).await.unwrap();
    let result = new_result(job, 1);
    jobs::finish(&pool, first_attempt(job, worker), &result).await.unwrap();
    assert_eq!(balance(&pool, "ada").await, (20, 0));
    assert!(results::delete(&pool, ada, ToolName::RemoveBackground, result.id).await.unwrap());
    assert!(matches!(jobs::submit(&pool, &free(ada, picture)).await, Err(SubmitError::FreeExists)));
    assert!(images::get(&pool, picture).await.unwrap().unwrap().free_remove_background_used);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn fifty_concurrent_runs_spend_no_more_than_the_balance(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let mut runs = Vec::new();
    for _ in 0..50 {
        let new = paid(ada, image(&pool, None, ada, b"x").await);
        let pool = pool.clone();
        runs.push(tokio::spawn(async move { jobs::submit(&pool, &new).await }));
    }
    let (mut accepted, mut refused) = (0, 0);
    for run in runs {
        match run.await.unwrap() {
            Ok(Submitted::New(_)) => accepted += 1,
            Err(SubmitError::NotEnoughCredits) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((accepted, refused), (4, 46));
    assert_eq!(balance(&pool, "ada").await, (20, 20));
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn fifty_identical_requests_are_one_job(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let new = paid(ada, image(&pool, None, ada, b"x").await);
    for key in [None, Some("click".to_owned())] {
        let new = NewJob { idempotency_key: key.clone(), ..new.clone() };
        let runs = (0..50).map(|_| {
            let (pool, new) = (pool.clone(), new.clone());
            tokio::spawn(async move { jobs::submit(&pool, &new).await.unwrap().into_job().id })
        });
        let mut ids = Vec::new();
        for run in runs.collect::<Vec<_>>() {
            ids.push(run.await.unwrap());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
    }
    // Two jobs: the requests with a key do not join the job of those without one.
    assert_eq!(balance(&pool, "ada").await, (20, 10));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_idempotency_key_outlives_its_job_and_covers_one_request(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let new = NewJob { idempotency_key: Some("click".into()), ..paid(ada, picture) };
    let job = submit(&pool, &new).await;
    let worker = WorkerId::new();
    claim(&pool, worker).await.unwrap();
    jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap();
    assert!(
        matches!(jobs::submit(&pool, &new).await.unwrap(), Submitted::Joined(same) if same.id == job)
    );
    let other = NewJob { image: image(&pool, None, ada, b"y").await, ..new.clone() };
    assert!(matches!(jobs::submit(&pool, &other).await, Err(SubmitError::IdempotencyKeyReused)));
    // Keys are per user.
    let bob = user(&pool, "bob", 0).await;
    let theirs = NewJob { owner: Some(bob), image: image(&pool, None, bob, b"z").await, ..new };
    assert!(matches!(jobs::submit(&pool, &theirs).await.unwrap(), Submitted::New(_)));
    assert_eq!(balance(&pool, "ada").await, (15, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_canceled_job_costs_nothing_and_cannot_be_finished(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let job = submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    let worker = WorkerId::new();
    claim(&pool, worker).await.unwrap();
    assert!(jobs::cancel(&pool, job).await.unwrap());
    assert!(!jobs::cancel(&pool, job).await.unwrap());
    assert_eq!(jobs::renew(&pool, worker, &[job], LEASE).await.unwrap(), []);
    assert_eq!(
        jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap(),
        Finish::LeaseLost
    );
    assert_eq!(state(&pool, job).await, JobState::Cancelled);
    assert_eq!(balance(&pool, "ada").await, (20, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_canceled_job_frees_its_idempotency_key(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let run = |image| NewJob { idempotency_key: Some("click".into()), ..paid(ada, image) };
    let picture = image(&pool, None, ada, b"x").await;
    let canceled = submit(&pool, &run(picture)).await;
    assert!(jobs::cancel(&pool, canceled).await.unwrap());
    let again = submit(&pool, &run(picture)).await;
    assert_ne!(again, canceled);
    assert_eq!(images::delete(&pool, ada, picture).await.unwrap(), Some(vec![again]));
    let other = run(image(&pool, None, ada, b"y").await);
    assert!(matches!(jobs::submit(&pool, &other).await.unwrap(), Submitted::New(_)));
    assert_eq!(balance(&pool, "ada").await, (20, 5));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_an_image_cancels_its_jobs_and_dooms_its_objects(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let bob = user(&pool, "bob", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let done = submit(&pool, &paid(ada, picture)).await;
    let worker = WorkerId::new();
    claim(&pool, worker).await.unwrap();
    jobs::finish(&pool, first_attempt(done, worker), &new_result(done, 1)).await.unwrap();
    let waiting = submit(&pool, &paid(ada, picture)).await;
    assert_eq!(images::delete(&pool, bob, picture).await.unwrap(), None);
    assert_eq!(images::delete(&pool, ada, picture).await.unwrap(), Some(vec![waiting]));
    assert_eq!(images::delete(&pool, ada, picture).await.unwrap(), None);
    assert_eq!(balance(&pool, "ada").await, (15, 0));
    let doomed: i64 =
        sqlx::query_scalar("select count(*) from doomed_objects where since <= now()")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(doomed, 4, "the image, its result, and their thumbnails");
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_prompt_goes_with_the_picture_or_the_result(pool: PgPool) {
    always_reachable(&pool).await;
    let ada = user(&pool, "ada", 50).await;
    let fix = || FixParameters {
        prompt: "remove my name".into(),
        mask: "png".into(),
        mask_sha256: vec![7; 32],
        is_mask_exact: false,
    };
    let edit = |image, key: &str| NewJob {
        tool: Tool::MagicFix(FixMode::Edit),
        fix: Some(fix()),
        idempotency_key: Some(key.into()),
        ..paid(ada, image)
    };
    let input = async |job: JobId| -> (String, Vec<u8>) {
        let query = sqlx::query_as("select prompt, mask_sha256 from jobs where id = $1");
        query.bind(job.uuid()).fetch_one(&pool).await.unwrap()
    };
    let gone = ("(deleted)".to_owned(), Vec::new());
    let images = [image(&pool, None, ada, b"x").await, image(&pool, None, ada, b"y").await];

    let finished = submit(&pool, &edit(images[0], "one")).await;
    let class = [JobClass { tier: Tier::Paid, tool: ToolName::MagicFix }];
    let worker = WorkerId::new();
    let claim = jobs::claim(&pool, worker, &class, &FixMode::ALL, Isolation::Shared, LEASE).await;
    assert_eq!(claim.unwrap().unwrap().id, finished);
    let made = new_result(finished, 1);
    jobs::finish(&pool, first_attempt(finished, worker), &made).await.unwrap();
    let canceled = submit(&pool, &edit(images[1], "two")).await;
    assert_eq!(input(finished).await.0, "remove my name");
    assert_eq!(jobs::delete_prompts(&pool).await.unwrap(), 0);
    assert!(results::delete(&pool, ada, ToolName::MagicFix, made.id).await.unwrap());
    assert_eq!(jobs::delete_prompts(&pool).await.unwrap(), 1);
    assert_eq!(input(finished).await, gone);
    assert_eq!(images::delete(&pool, ada, images[1]).await.unwrap(), Some(vec![canceled]));
    assert_eq!(jobs::delete_prompts(&pool).await.unwrap(), 1);
    assert_eq!(input(canceled).await, gone);
    // A repeat is still answered with the first run, so nobody pays twice.
    let again = jobs::submit(&pool, &edit(images[0], "one")).await.unwrap();
    assert!(matches!(again, Submitted::Joined(job) if job.id == finished));
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_full_free_queue_refuses_without_using_up_the_free_run(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    for n in 0..3 {
        let limit = QueueLimit { total: 2, per_owner: None };
        let new =
            NewJob { queue_limit: Some(limit), ..free(ada, image(&pool, None, ada, b"x").await) };
        let submitted = jobs::submit(&pool, &new).await;
        assert_eq!(matches!(submitted, Err(SubmitError::QueueFull(Tier::Free))), n == 2);
        let used =
            images::get(&pool, new.image).await.unwrap().unwrap().free_remove_background_used;
        assert_eq!(used, n < 2);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn concurrent_submit_finish_cancel_and_delete_neither_deadlock_nor_lose_credits(
    pool: PgPool,
) {
    let ada = user(&pool, "ada", 480).await;
    let mut runs = Vec::new();
    for n in 0..60 {
        let pool = pool.clone();
        runs.push(tokio::spawn(async move {
            let picture = image(&pool, None, ada, b"x").await;
            let job = submit(&pool, &paid(ada, picture)).await;
            let worker = WorkerId::new();
            let claimed = claim(&pool, worker).await;
            let result = claimed.as_ref().map(|claimed| new_result(claimed.id, claimed.attempt));
            let finish = async {
                match &result {
                    Some(result) => {
                        jobs::finish(&pool, claimed.as_ref().unwrap().as_attempt(), result)
                            .await
                            .map(drop)
                    }
                    None => Ok(()),
                }
            };
            let undo = async {
                match n % 3 {
                    0 => jobs::cancel(&pool, job).await.map(drop),
                    1 => images::delete(&pool, ada, picture).await.map(drop),
                    _ => Ok(()),
                }
            };
            let (finished, undone) = tokio::join!(finish, undo);
            finished.and(undone)
        }));
    }
    for run in runs {
        run.await.unwrap().unwrap();
    }
    assert_books_balance(&pool).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_magic_fix_is_claimed_only_by_a_worker_with_a_model_for_its_mode(pool: PgPool) {
    always_reachable(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let fix = FixParameters {
        prompt: "a red cup".into(),
        mask: "png".into(),
        mask_sha256: vec![7; 32],
        is_mask_exact: false,
    };
    let edit = NewJob {
        tool: Tool::MagicFix(FixMode::Edit),
        fix: Some(fix),
        ..paid(ada, image(&pool, None, ada, b"x").await)
    };
    let job = submit(&pool, &edit).await;
    let classes = [JobClass { tier: Tier::Paid, tool: ToolName::MagicFix }];
    let (eraser, painter) = ([FixMode::Remove, FixMode::Restore], [FixMode::Add, FixMode::Edit]);
    let worker = WorkerId::new();
    let shared = Isolation::Shared;
    assert!(jobs::claim(&pool, worker, &classes, &eraser, shared, LEASE).await.unwrap().is_none());
    assert!(jobs::claim(&pool, worker, &classes, &[], shared, LEASE).await.unwrap().is_none());
    let claimed = jobs::claim(&pool, worker, &classes, &painter, shared, NO_LEASE).await.unwrap();
    assert_eq!(claimed.unwrap().id, job);
    // The same holds for a suspect.
    assert_eq!(jobs::sweep(&pool, NO_LEASE).await.unwrap().requeued, [job]);
    assert_eq!(jobs::suspects(&pool, &classes, &eraser).await.unwrap(), Suspects::None);
    assert_eq!(jobs::suspects(&pool, &classes, &painter).await.unwrap(), Suspects::Due);
    let alone = Isolation::Alone;
    assert!(jobs::claim(&pool, worker, &classes, &eraser, alone, LEASE).await.unwrap().is_none());
    assert!(jobs::claim(&pool, worker, &classes, &painter, alone, LEASE).await.unwrap().is_some());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_database_rejects_inconsistent_jobs(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    submit(&pool, &paid(ada, image(&pool, None, ada, b"x").await)).await;
    for nonsense in [
        "tool = 'sharpen'",
        "tool = 'upscale'",
        "factor = 2",
        "tier = 'gold'",
        "cost = 0",
        "tier = 'free'",
        "owner_id = null",
        "state = 'lost'",
        "state = 'running'",
        "state = 'running', lease_owner = id",
        "lease_owner = id, lease_until = now()",
        "state = 'done'",
        "finished_at = now()",
        "state = 'failed', finished_at = now()",
        "failure_code = 'none'",
        "image_id = null",
        "attempt = 4",
        "interruptions = 1",
        "attempt = 4, interruptions = 21",
        "losses = -1",
        "mode = 'edit'",
        "prompt = 'remove it'",
        "tool = 'magic-fix', mode = 'paint', prompt = 'x', mask_sha256 = ''",
        "tool = 'magic-fix', mode = 'edit', prompt = '', mask_sha256 = ''",
    ] {
        let statement = sqlx::AssertSqlSafe(format!("update jobs set {nonsense}"));
        let refused = sqlx::query(statement).execute(&pool).await.expect_err(nonsense);
        let constraint = refused.as_database_error().and_then(|error| error.constraint());
        assert_eq!(constraint, Some("jobs_sound"), "{nonsense}: {refused}");
    }
    let sound = "update jobs set tool = 'magic-fix', mode = 'edit', prompt = 'x', mask_sha256 = ''";
    sqlx::query(sound).execute(&pool).await.unwrap();
}
