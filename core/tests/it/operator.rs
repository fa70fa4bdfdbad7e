//! What operators do to jobs.

use std::time::Duration;

use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};
use retouch_core::jobs::{
    self, FailedFilter, Failure, FixParameters, Isolation, JobState, NewJob, RedriveError,
    SubmitError, Submitted,
};
use retouch_core::{JobId, UserId, WorkerId, audit, images, janitor};
use retouch_standins::testing::{ISSUER, first_attempt, image, sign_in, user};
use sqlx::PgPool;

fn paid(owner: UserId, image: retouch_core::ImageId) -> NewJob {
    NewJob {
        owner: Some(owner),
        image,
        tool: Tool::RemoveBackground,
        fix: None,
        tier: Tier::Paid,
        idempotency_key: None,
        queue_limit: None,
    }
}

async fn failed(pool: &PgPool, owner: UserId, image: retouch_core::ImageId, code: &str) -> JobId {
    let worker = WorkerId::new();
    let job = jobs::submit(pool, &paid(owner, image)).await.unwrap().into_job().id;
    assert_eq!(claim(pool, worker).await, job);
    let failure = Failure { code: code.into(), detail: "Because".into() };
    assert!(jobs::fail(pool, first_attempt(job, worker), &failure).await.unwrap());
    job
}

async fn claim(pool: &PgPool, worker: WorkerId) -> JobId {
    let classes = [JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground }];
    let (isolation, lease) = (Isolation::Shared, Duration::from_mins(1));
    let claimed = jobs::claim(pool, worker, &classes, &FixMode::ALL, isolation, lease).await;
    claimed.unwrap().unwrap().id
}

async fn balance(pool: &PgPool) -> (i32, i32) {
    let user = sign_in(pool, ISSUER, "ada").await;
    (user.credits, user.reserved)
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn redriving_a_failed_job_makes_one_new_job_that_holds_its_price(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let job = failed(&pool, ada, picture, "worker_crashed").await;
    assert_eq!(balance(&pool).await, (20, 0));
    let again = jobs::redrive(&pool, job).await.unwrap();
    assert!(matches!(again, Submitted::New(_)));
    let again = again.into_job();
    assert_eq!((again.image, again.cost, again.state), (Some(picture), 5, JobState::Queued));
    assert_eq!(balance(&pool).await, (20, 5));
    let twice = jobs::redrive(&pool, job).await.unwrap();
    assert!(matches!(&twice, Submitted::Joined(joined) if joined.id == again.id));
    assert_eq!(balance(&pool).await, (20, 5));
    assert_eq!(jobs::get(&pool, job).await.unwrap().unwrap().state, JobState::Failed);
    // A retry still joins the first one after the keys of clients are deleted.
    let failure = Failure { code: "worker_crashed".into(), detail: "Again".into() };
    let worker = WorkerId::new();
    assert_eq!(claim(&pool, worker).await, again.id);
    assert!(jobs::fail(&pool, first_attempt(again.id, worker), &failure).await.unwrap());
    sqlx::query("update jobs set created_at = now() - interval '8 days'")
        .execute(&pool)
        .await
        .unwrap();
    jobs::clear_old_keys(&pool, janitor::KEY_DAYS).await.unwrap();
    let late = jobs::redrive(&pool, job).await.unwrap();
    assert!(matches!(&late, Submitted::Joined(joined) if joined.id == again.id));
    assert_eq!(balance(&pool).await, (20, 0));
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn no_client_can_take_the_key_of_a_retry(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let other = image(&pool, None, ada, b"y").await;
    let job = failed(&pool, ada, picture, "worker_crashed").await;
    let theirs = NewJob { idempotency_key: Some(format!("retry of {job}")), ..paid(ada, other) };
    let theirs = jobs::submit(&pool, &theirs).await.unwrap().into_job().id;
    assert!(jobs::fail_by_operator(&pool, theirs, "Because").await.unwrap());
    let again = jobs::redrive(&pool, job).await.unwrap();
    assert!(matches!(again, Submitted::New(_)), "{again:?}");
    let again = again.into_job();
    assert!(!again.idempotency_key.unwrap().is_ascii());
    // Such keys of clients expire like others; those of retries stay.
    assert!(jobs::fail_by_operator(&pool, again.id, "Because").await.unwrap());
    sqlx::query("update jobs set created_at = now() - interval '8 days'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(jobs::clear_old_keys(&pool, janitor::KEY_DAYS).await.unwrap(), 1);
    let key = async |job| jobs::get(&pool, job).await.unwrap().unwrap().idempotency_key;
    assert_eq!((key(theirs).await, key(again.id).await.is_some()), (None, true));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_retry_by_an_older_version_counts(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let job = failed(&pool, ada, picture, "worker_crashed").await;
    let old = NewJob { idempotency_key: Some(format!("retry of {job}")), ..paid(ada, picture) };
    let old = jobs::submit(&pool, &old).await.unwrap().into_job().id;
    assert_eq!(jobs::no_longer_needed(&pool, &[job]).await.unwrap().get(&job), None);
    let again = jobs::redrive(&pool, job).await.unwrap();
    assert!(matches!(&again, Submitted::Joined(joined) if joined.id == old), "{again:?}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failed_magic_fix_is_redriven_with_its_mask(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let fix = FixParameters {
        prompt: "a red cup".into(),
        mask: "png".into(),
        mask_sha256: vec![7; 32],
        is_mask_exact: false,
    };
    let new = NewJob {
        tool: Tool::MagicFix(FixMode::Edit),
        fix: Some(fix.clone()),
        ..paid(ada, picture)
    };
    let job = jobs::submit(&pool, &new).await.unwrap().into_job().id;
    assert!(jobs::fail_by_operator(&pool, job, "Because").await.unwrap());
    let again = jobs::redrive(&pool, job).await.unwrap().into_job();
    assert_eq!(again.prompt.as_deref(), Some("a red cup"));
    assert_eq!(jobs::mask(&pool, again.id).await.unwrap().as_deref(), Some(&b"png"[..]));
    assert!(jobs::cancel(&pool, again.id).await.unwrap());
    assert_eq!(jobs::mask(&pool, again.id).await.unwrap(), None, "only failed jobs keep theirs");
    assert_eq!(jobs::delete_old_masks(&pool, 7).await.unwrap(), 0);
    sqlx::query("update jobs set finished_at = now() - interval '8 days'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(jobs::delete_old_masks(&pool, 7).await.unwrap(), 1);
    assert!(matches!(jobs::redrive(&pool, job).await.unwrap_err(), RedriveError::MaskGone));
    // Nothing of a deleted picture is kept.
    let other = jobs::submit(&pool, &new).await.unwrap().into_job().id;
    assert!(jobs::fail_by_operator(&pool, other, "Because").await.unwrap());
    images::delete(&pool, ada, picture).await.unwrap();
    assert_eq!(jobs::mask(&pool, other).await.unwrap(), None);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn failed_jobs_are_listed_by_the_time_they_failed(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    failed(&pool, ada, picture, "storage_unavailable").await;
    sqlx::query("update jobs set finished_at = now() - interval '3 hours'")
        .execute(&pool)
        .await
        .unwrap();
    let late = failed(&pool, ada, picture, "storage_unavailable").await;
    let filter = FailedFilter { within: Some(Duration::from_hours(2)), ..FailedFilter::default() };
    let found = jobs::failed(&pool, filter, Some(10)).await.unwrap();
    assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [late]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_is_not_redriven_without_its_image_or_enough_credits(pool: PgPool) {
    let ada = user(&pool, "ada", -12).await;
    let picture = image(&pool, None, ada, b"x").await;
    let job = failed(&pool, ada, picture, "worker_crashed").await;
    let waiting = jobs::submit(&pool, &paid(ada, picture)).await.unwrap().into_job().id;
    let broke = jobs::redrive(&pool, job).await.unwrap_err();
    assert!(matches!(broke, RedriveError::Submit(SubmitError::NotEnoughCredits)), "{broke}");
    let active = jobs::redrive(&pool, waiting).await.unwrap_err();
    assert!(matches!(active, RedriveError::NotFailed(JobState::Queued)), "{active}");
    images::delete(&pool, ada, picture).await.unwrap();
    assert!(matches!(jobs::redrive(&pool, job).await.unwrap_err(), RedriveError::ImageGone));
    let unknown = jobs::redrive(&pool, JobId::new()).await.unwrap_err();
    assert!(matches!(unknown, RedriveError::NoSuchJob));
    assert_eq!(balance(&pool).await, (8, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_job_that_an_operator_fails_costs_nothing_and_keeps_the_reason(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let job = jobs::submit(&pool, &paid(ada, picture)).await.unwrap().into_job().id;
    assert!(jobs::fail_by_operator(&pool, job, "This model is being replaced").await.unwrap());
    assert!(!jobs::fail_by_operator(&pool, job, "Again").await.unwrap(), "it has ended");
    assert!(!jobs::fail_by_operator(&pool, JobId::new(), "Nothing").await.unwrap());
    let ended = jobs::get(&pool, job).await.unwrap().unwrap();
    let failure = ended.failure.unwrap();
    assert_eq!(ended.state, JobState::Failed);
    assert_eq!(failure.code, "ended_by_operator");
    assert_eq!(failure.detail, "This model is being replaced");
    assert_eq!(balance(&pool).await, (20, 0));
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn failed_jobs_are_listed_by_their_end_and_by_failure_code(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let first = failed(&pool, ada, picture, "worker_crashed").await;
    let second = failed(&pool, ada, picture, "image_unreadable").await;
    let ids = async |code, most| -> Vec<JobId> {
        let filter = FailedFilter { code, within: None };
        jobs::failed(&pool, filter, most).await.unwrap().iter().map(|job| job.id).collect()
    };
    assert_eq!(ids(None, None).await, [second, first]);
    assert_eq!(ids(None, Some(1)).await, [second]);
    assert_eq!(ids(Some("worker_crashed"), None).await, [first]);
    let recent = jobs::recent(&pool, ada, 10).await.unwrap();
    assert_eq!(recent.iter().map(|job| job.id).collect::<Vec<_>>(), [second, first]);
}
