//! Deleting an account removes everything but the ledger, even under concurrent requests, and signing up again
//! yields no free credits.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};
use retouch_core::accounts::{self, Deleted, IssuerChange};
use retouch_core::api_keys::{self, NewApiKey};
use retouch_core::credits::{self, AdjustError, Adjusted, Adjustment, PACKS};
use retouch_core::images::{self, Image, InsertOutcome, NewImage, Quota, Uploader};
use retouch_core::jobs::{self, Finish, FixParameters, Isolation, NewJob, SubmitError};
use retouch_core::users::{self, SignIn, User};
use retouch_core::{Clock, ImageId, JobId, UserId, WorkerId, audit, janitor, orders, storage};
use retouch_standins::testing::{
    self, Bucket, ISSUER, first_attempt, image, new_result, object_keys, user, waits_for_a_lock,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Acquire, PgPool};

const LEASE: Duration = Duration::from_mins(1);
const HASH: [u8; 32] = [7; 32];

fn run(owner: UserId, image: ImageId, tool: Tool) -> NewJob {
    let fix = FixParameters {
        prompt: "remove my brother".into(),
        mask: Bytes::from_static(b"mask"),
        mask_sha256: vec![1; 32],
        is_mask_exact: false,
    };
    NewJob {
        owner: Some(owner),
        image,
        tool,
        fix: (tool.name() == ToolName::MagicFix).then_some(fix),
        tier: Tier::Paid,
        idempotency_key: Some(format!("{} {image}", tool.name())),
        queue_limit: None,
    }
}

async fn submit(pool: &PgPool, new: &NewJob) -> JobId {
    jobs::submit(pool, new).await.unwrap().into_job().id
}

async fn claim(pool: &PgPool, worker: WorkerId) -> Option<JobId> {
    let classes = ToolName::ALL.map(|tool| JobClass { tier: Tier::Paid, tool });
    let claimed =
        jobs::claim(pool, worker, &classes, &FixMode::ALL, Isolation::Shared, LEASE).await.unwrap();
    claimed.map(|claimed| claimed.id)
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_key_works_while_the_database_is_read_only(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let key = NewApiKey { name: "batch", shown: "rt_abcdef", sha256: &[3; 32] };
    api_keys::create(&pool, ada, &key).await.unwrap();
    let standby = (*pool.connect_options()).clone();
    let standby = standby.options([("default_transaction_read_only", "on")]);
    let standby = PgPoolOptions::new().connect_with(standby).await.unwrap();
    let found = api_keys::find_user(&standby, &[3; 32]).await.unwrap();
    assert_eq!(found.unwrap().id, ada);
}

/// Writes the objects of a job's result and finishes the job.
async fn finish(pool: &PgPool, bucket: &Bucket, worker: WorkerId, job: JobId) -> Finish {
    let made = new_result(job, 1);
    for key in [&made.object_key, &made.thumbnail_key] {
        bucket.storage.put(key, "image/png", Bytes::from_static(b"result")).await.unwrap();
    }
    jobs::finish(pool, first_attempt(job, worker), &made).await.unwrap()
}

/// Asserts that the audit finds nothing and that the bucket is empty after the janitor ran.
async fn assert_nothing_left(pool: &PgPool, bucket: &Bucket) {
    assert_eq!(audit::books(pool).await.unwrap(), []);
    janitor::delete_doomed(pool, &bucket.storage).await.unwrap();
    assert_eq!(object_keys(&bucket.storage).await, Vec::<String>::new());
}

async fn count(pool: &PgPool, table: &'static str) -> i64 {
    let query = format!("select count(*) from {table}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(pool).await.unwrap()
}

async fn find(
    pool: &PgPool,
    token_issued_at: Option<DateTime<Utc>>,
    starts_again: bool,
) -> Option<User> {
    let (issuer, subject, identity_hash) = (ISSUER, "ada", &HASH);
    let sign_in = SignIn { issuer, subject, identity_hash, token_issued_at, starts_again };
    users::find_or_create(pool, &sign_in).await.unwrap()
}

async fn sign_in(pool: &PgPool, token_issued_at: Option<DateTime<Utc>>) -> Option<User> {
    find(pool, token_issued_at, true).await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_an_account_removes_everything_but_the_ledger(pool: PgPool) {
    let (bucket, worker) = (Bucket::start().await, WorkerId::new());
    let ada = user(&pool, "ada", 50).await;
    users::confirm_email(&pool, ada, Some("ada@example.test")).await.unwrap();
    let picture = image(&pool, Some(&bucket.storage), ada, b"picture").await;
    let tools = [Tool::RemoveBackground, Tool::MagicFix(FixMode::Remove)];
    for tool in tools {
        let job = submit(&pool, &run(ada, picture, tool)).await;
        assert_eq!(claim(&pool, worker).await, Some(job));
        assert_eq!(finish(&pool, &bucket, worker, job).await, Finish::Done);
    }
    let other = image(&pool, Some(&bucket.storage), ada, b"other").await;
    let waiting = submit(&pool, &run(ada, other, tools[1])).await;
    let running = submit(&pool, &run(ada, other, tools[0])).await;
    jobs::claim(
        &pool,
        worker,
        &[JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground }],
        &FixMode::ALL,
        Isolation::Shared,
        LEASE,
    )
    .await
    .unwrap()
    .unwrap();
    let key = NewApiKey { name: "batch", shown: "rt_abcdef", sha256: &[3; 32] };
    api_keys::create(&pool, ada, &key).await.unwrap();
    let order = orders::place(&pool, ada, &PACKS[0], None).await.unwrap();
    orders::attach_session(&pool, &order, "cs_open", "https://pay.test/1").await.unwrap();
    sqlx::query("update orders set email = 'ada@example.test'").execute(&pool).await.unwrap();

    let Deleted { mut canceled, open_sessions } =
        accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    canceled.sort_by_key(|job| job.uuid());
    assert_eq!((canceled, open_sessions), (vec![waiting, running], vec!["cs_open".to_owned()]));

    for table in ["images", "results", "masks", "api_keys", "free_runs"] {
        assert_eq!(count(&pool, table).await, 0, "{table}");
    }
    let account = accounts::get(&pool, ada).await.unwrap().unwrap();
    assert_eq!((account.credits, account.reserved), (0, 0));
    assert_eq!((account.issuer.as_str(), account.subject), ("deleted", ada.to_string()));
    assert!(account.email.is_none() && account.deleted_at.is_some());
    let kinds: Vec<(String, i32)> = sqlx::query_as("select kind, amount from ledger order by id")
        .fetch_all(&pool)
        .await
        .unwrap();
    let kinds: Vec<_> = kinds.iter().map(|(kind, amount)| (kind.as_str(), *amount)).collect();
    let price = tools.map(credits::price).iter().sum::<i32>();
    assert_eq!(kinds[..2], [("signup_grant", 20), ("admin", 50)]);
    assert_eq!(kinds[4..], [("forfeit", price - 70)]);
    // Only paid jobs remain, without anything about their owner.
    let remaining: Vec<(Option<String>, Option<String>)> =
        sqlx::query_as("select prompt, idempotency_key from jobs order by id")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(remaining, [(None, None), (Some("(deleted)".to_owned()), None)]);
    let left: (Option<String>, Option<String>) =
        sqlx::query_as("select email, checkout_url from orders").fetch_one(&pool).await.unwrap();
    assert_eq!(left, (None, None));
    assert_eq!(finish(&pool, &bucket, worker, running).await, Finish::LeaseLost);
    assert_nothing_left(&pool, &bucket).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_new_account_within_a_year_of_a_deletion_gets_no_credits(pool: PgPool) {
    let first = sign_in(&pool, None).await.unwrap();
    assert_eq!(first.credits, 20);
    accounts::delete(&pool, first.id, &HASH).await.unwrap().unwrap();
    let now = Clock::system().now();
    let (before, after) = (now - TimeDelta::hours(1), now + TimeDelta::seconds(2));
    assert!(
        sign_in(&pool, Some(before)).await.is_none(),
        "a token from before the deletion is refused"
    );
    assert!(
        find(&pool, Some(after), false).await.is_none(),
        "a page on another device renewed its token"
    );
    assert_eq!(count(&pool, "users").await, 1, "and creates no user");
    let second = sign_in(&pool, Some(after)).await.unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(second.credits, 0);
    assert!(
        sign_in(&pool, Some(before)).await.is_none(),
        "a page that is still open elsewhere could delete the new account"
    );
    assert_eq!(find(&pool, Some(after), false).await.unwrap().id, second.id);
    // Deleting again does not help, and other users are not affected.
    accounts::delete(&pool, second.id, &HASH).await.unwrap().unwrap();
    assert_eq!(sign_in(&pool, None).await.unwrap().credits, 0);
    assert_eq!(testing::sign_in(&pool, ISSUER, "bob").await.credits, 20);

    assert_eq!(accounts::forget_former_users(&pool).await.unwrap(), 0);
    sqlx::query("update former_users set deleted_at = now() - interval '12 months 1 minute'")
        .execute(&pool)
        .await
        .unwrap();
    let third = sign_in(&pool, None).await.unwrap();
    accounts::delete(&pool, third.id, &[8; 32]).await.unwrap().unwrap();
    assert_eq!(sign_in(&pool, None).await.unwrap().credits, 20, "free credits again after a year");
    assert_eq!(accounts::forget_former_users(&pool).await.unwrap(), 1);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn concurrent_deletions_delete_once(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let clicks = (0..12).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move { accounts::delete(&pool, ada, &HASH).await.unwrap().is_some() })
    });
    let mut deleted = 0;
    for click in clicks.collect::<Vec<_>>() {
        deleted += usize::from(click.await.unwrap());
    }
    assert_eq!(deleted, 1);
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

/// Gives Ada a paid job with a prompt and a failed one on each of 250 pictures, and 250 waiting jobs.
async fn heavy_account(pool: &PgPool) -> UserId {
    let ada = user(pool, "ada", 100_000).await;
    for statement in [
        "insert into images (id, owner_id, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height)
         select gen_random_uuid(), id, 'images/' || n, 'images/t' || n, 'image/png', 'x', 1, 64, 48
         from users, generate_series(1, 250) n",
        "insert into jobs (id, owner_id, image_id, tool, tier, cost, state, attempt, finished_at, mode, prompt, mask_sha256)
         select gen_random_uuid(), owner_id, id, 'magic-fix', 'paid', 8, 'done', 1, now(), 'remove', 'my brother', 'x' from images",
        "insert into results (id, job_id, image_id, owner_id, tool, mode, prompt, object_key, thumbnail_key, size_bytes, width,
                              height, model, model_sha256, device, duration_ms)
         select gen_random_uuid(), id, image_id, owner_id, tool, mode, prompt, 'results/' || id, 'results/t' || id, 1, 64, 48,
                'tiny', 'x', 'cpu', 1 from jobs",
        "insert into ledger (user_id, kind, amount, job_id) select owner_id, 'job', -cost, id from jobs",
        "insert into jobs (id, owner_id, image_id, tool, tier, cost, state, attempt, finished_at, failure_code)
         select gen_random_uuid(), owner_id, id, 'remove-background', 'paid', 5, 'failed', 1, now(), 'x' from images",
        "insert into jobs (id, owner_id, image_id, tool, tier, cost)
         select gen_random_uuid(), owner_id, id, 'remove-background', 'paid', 5 from images",
        "update users set reserved = 250 * 5",
    ] {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
    assert_eq!(audit::books(pool).await.unwrap(), []);
    ada
}

async fn assert_erased(pool: &PgPool, doomed: i64) {
    for table in ["images", "results", "masks", "unfinished_deletions"] {
        assert_eq!(count(pool, table).await, 0, "{table}");
    }
    let prompts: Vec<Option<String>> =
        sqlx::query_scalar("select prompt from jobs").fetch_all(pool).await.unwrap();
    assert_eq!(prompts, vec![Some("(deleted)".to_owned()); 250], "only paid jobs remain");
    assert_eq!(count(pool, "doomed_objects").await, doomed);
    assert_eq!(audit::books(pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn janitors_complete_the_deletion_of_a_heavy_account(pool: PgPool) {
    let bucket = Bucket::of(&pool).await;
    let ada = heavy_account(&pool).await;
    let deleted = accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    assert_eq!(deleted.canceled.len(), 250);
    let account = accounts::get(&pool, ada).await.unwrap().unwrap();
    assert_eq!((account.credits, account.reserved), (0, 0), "the account ends at once");
    let left = count(&pool, "images").await;
    assert!((1..250).contains(&left), "{left} pictures are left to the janitor");
    assert_eq!(audit::books(&pool).await.unwrap(), [], "which is no finding");
    sqlx::query("update unfinished_deletions set since = now() - interval '61 minutes'")
        .execute(&pool)
        .await
        .unwrap();
    let left = "images and results and jobs".to_owned();
    let forgotten = audit::Finding::DeletedAccount { user: ada, left };
    assert_eq!(audit::books(&pool).await.unwrap(), [forgotten], "unless nobody deletes them");

    let rounds = (0..4).map(|_| {
        let (pool, storage) = (pool.clone(), bucket.storage.clone());
        tokio::spawn(async move { janitor::round(&pool, &storage).await.unwrap() })
    });
    for round in rounds.collect::<Vec<_>>() {
        round.await.unwrap();
    }
    assert_erased(&pool, 0).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_deletion_that_was_interrupted_is_completed(pool: PgPool) {
    let ada = heavy_account(&pool).await;
    accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    let mut interrupted = 0;
    // Each process dies in the middle of a batch, whose beginning is rolled back. On a busy machine, each lives longer.
    while count(&pool, "unfinished_deletions").await > 0 {
        let work = accounts::erase_deleted(&pool);
        let limit = Duration::from_millis(10 + 2 * interrupted);
        if tokio::time::timeout(limit, work).await.is_err() {
            interrupted += 1;
        }
    }
    assert!(interrupted > 1, "it was interrupted {interrupted} times");
    assert_erased(&pool, 1000).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn erasing_locks_the_user_before_the_pictures_as_submitting_does(pool: PgPool) {
    let ada = heavy_account(&pool).await;
    accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    let mut connection = pool.acquire().await.unwrap();
    let mut submitting = connection.begin().await.unwrap();
    sqlx::query("select from users where id = $1 for update")
        .bind(ada.uuid())
        .execute(&mut *submitting)
        .await
        .unwrap();
    let erasing = tokio::spawn({
        let pool = pool.clone();
        async move { accounts::erase_deleted(&pool).await.unwrap() }
    });
    waits_for_a_lock(&pool).await;
    sqlx::query("select from images where owner_id = $1 for key share nowait")
        .bind(ada.uuid())
        .execute(&mut *submitting)
        .await
        .expect("the eraser holds no picture while it waits");
    submitting.commit().await.unwrap();
    erasing.await.unwrap();
    assert_erased(&pool, 1000).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_deleted_account_can_submit_no_run(pool: PgPool) {
    let ada = heavy_account(&pool).await;
    accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    let left = "select id from images limit 1";
    let left: ImageId = sqlx::query_scalar(left).fetch_one(&pool).await.unwrap();
    for tier in [Tier::Free, Tier::Paid] {
        let late = NewJob { tier, ..run(ada, left, Tool::RemoveBackground) };
        let refused = jobs::submit(&pool, &late).await;
        assert!(matches!(refused, Err(SubmitError::NoSuchImage)), "{refused:?}");
    }
    accounts::erase_deleted(&pool).await.unwrap();
    assert_erased(&pool, 1000).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn concurrent_requests_complete_before_a_deletion_or_find_no_account(pool: PgPool) {
    let bucket = Bucket::start().await;
    let (mut finished, mut recorded) = (0, 0);
    for round in 0..25 {
        let ada = user(&pool, &format!("ada {round}"), 0).await;
        let picture = image(&pool, Some(&bucket.storage), ada, b"picture").await;
        let (worker, running) = (WorkerId::new(), run(ada, picture, Tool::RemoveBackground));
        let job = submit(&pool, &running).await;
        assert_eq!(claim(&pool, worker).await, Some(job));
        let late = upload_in_progress(&pool, &bucket).await;
        let again = NewJob {
            idempotency_key: None,
            tool: Tool::Upscale(retouch_catalog::Factor::X2),
            ..running
        };
        let (hash, late) = ([round; 32], late_image(late, ada));
        let (deleted, finish, insert, submit, arrival) = tokio::join!(
            accounts::delete(&pool, ada, &hash),
            finish(&pool, &bucket, worker, job),
            images::insert(&pool, &late, Quota::NONE),
            jobs::submit(&pool, &again),
            users::confirm_email(&pool, ada, Some("ada@example.test")),
        );
        assert!(deleted.unwrap().is_some());
        arrival.unwrap();
        finished += usize::from(finish == Finish::Done);
        recorded += usize::from(insert.unwrap() == InsertOutcome::Inserted);
        assert!(
            matches!(submit, Ok(_) | Err(SubmitError::NoSuchImage | SubmitError::NotEnoughCredits)),
            "{:?}",
            submit.err()
        );
        let account = accounts::get(&pool, ada).await.unwrap().unwrap();
        assert_eq!((account.credits, account.reserved, account.email), (0, 0, None));
        assert!(claim(&pool, worker).await.is_none());
    }
    assert!(
        finished < 25 || recorded < 25,
        "the deletion never came first, so this tested nothing"
    );
    sqlx::query("update doomed_objects set since = now()").execute(&pool).await.unwrap();
    assert_nothing_left(&pool, &bucket).await;
}

/// Announces an image and writes its objects, without inserting its row.
async fn upload_in_progress(pool: &PgPool, bucket: &Bucket) -> ImageId {
    let id = ImageId::new();
    images::announce(pool, id).await.unwrap();
    for key in [storage::image_key(id), storage::image_thumbnail_key(id)] {
        bucket.storage.put(&key, "image/png", Bytes::from_static(b"late")).await.unwrap();
    }
    id
}

fn late_image(id: ImageId, owner: UserId) -> NewImage {
    NewImage {
        id,
        uploader: Uploader::User(owner),
        name: None,
        content_type: "image/png",
        content_sha256: vec![1],
        upload_key: None,
        size_bytes: 4,
        width: 64,
        height: 48,
        has_preview: false,
        provenance: None,
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upload_to_a_deleted_account_is_not_inserted_and_gets_deleted(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 0).await;
    let late = upload_in_progress(&pool, &bucket).await;
    accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    let insert = images::insert(&pool, &late_image(late, ada), Quota::NONE).await.unwrap();
    assert_eq!(insert, InsertOutcome::OwnerGone);
    // As if the hour of the announcement had passed.
    sqlx::query("update doomed_objects set since = now()").execute(&pool).await.unwrap();
    assert_nothing_left(&pool, &bucket).await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_export_contains_every_row_of_its_owner_once_and_no_others(pool: PgPool) {
    let (bucket, worker) = (Bucket::start().await, WorkerId::new());
    let (ada, bob) = (user(&pool, "ada", 100).await, user(&pool, "bob", 100).await);
    let mut expected = (Vec::new(), Vec::new());
    for owner in [ada, bob, ada, bob, ada] {
        let picture = image(&pool, None, owner, b"x").await;
        let job = submit(&pool, &run(owner, picture, Tool::RemoveBackground)).await;
        assert_eq!(claim(&pool, worker).await, Some(job));
        finish(&pool, &bucket, worker, job).await;
        if owner == ada {
            expected.0.push(picture);
            expected.1.push(job);
        }
    }
    let (mut pictures, mut jobs, mut results, mut entries) = (vec![], vec![], vec![], vec![]);
    let (mut picture, mut job, mut result, mut entry) = (None, None, None, 0);
    // Pages of two; for some tables the last page is full.
    for _ in 0..3 {
        let page = accounts::images_after(&pool, ada, picture, 2).await.unwrap();
        picture = page.last().map(Image::cursor).or(picture);
        pictures.extend(page.into_iter().map(|image| image.id));
        let page = accounts::jobs_after(&pool, ada, job, 2).await.unwrap();
        job = page.last().copied().or(job);
        jobs.extend(page);
        let page = accounts::results_after(&pool, ada, result, 2).await.unwrap();
        result = page.last().map(|result| result.id).or(result);
        results.extend(page.into_iter().map(|result| result.job));
        let page = credits::ledger_after(&pool, ada, entry, 2).await.unwrap();
        entry = page.last().map_or(entry, |entry| entry.id);
        entries.extend(page.into_iter().map(|entry| entry.amount));
    }
    assert_eq!((pictures, jobs.clone()), expected);
    assert_eq!(results, jobs);
    assert_eq!(entries, [20, 100, -5, -5, -5]);
    assert_eq!(accounts::get_active(&pool, ada).await.unwrap().unwrap().subject, "ada");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_adjustment_applies_once_per_reference_and_never_takes_holds(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    submit(&pool, &run(ada, picture, Tool::RemoveBackground)).await;
    let change = |user, amount, reference| {
        let change = Adjustment { user, amount, reference, note: Some("sorry") };
        let pool = pool.clone();
        async move { credits::adjust(&pool, &change).await }
    };
    assert_eq!(change(ada, 30, "ticket 1").await.unwrap(), Adjusted::Applied);
    assert_eq!(change(ada, 30, "ticket 1").await.unwrap(), Adjusted::AlreadyApplied);
    let reused = change(ada, 31, "ticket 1").await.unwrap_err();
    assert!(matches!(reused, AdjustError::ReferenceReused));
    let held = change(ada, -46, "ticket 2").await.unwrap_err();
    assert!(matches!(held, AdjustError::Held { available: 45 }), "{held}");
    assert_eq!(change(ada, -45, "ticket 2").await.unwrap(), Adjusted::Applied);
    assert!(matches!(change(ada, 0, "ticket 3").await.unwrap_err(), AdjustError::Nothing));
    let nobody = change(UserId::new(), 5, "ticket 4").await.unwrap_err();
    assert!(matches!(nobody, AdjustError::NoSuchUser));
    accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    let gone = change(ada, 5, "ticket 5").await.unwrap_err();
    assert!(matches!(gone, AdjustError::NoSuchUser));
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_account_is_found_by_id_email_or_subject(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let bob = user(&pool, "bob", 0).await;
    for owner in [ada, bob] {
        users::confirm_email(&pool, owner, Some("Shared@example.test")).await.unwrap();
    }
    let found = async |name: &str| -> Vec<UserId> {
        accounts::find(&pool, name).await.unwrap().iter().map(|account| account.id).collect()
    };
    assert_eq!(found("ada").await, [ada]);
    assert_eq!(found(&bob.to_string()).await, [bob]);
    assert_eq!(found("shared@EXAMPLE.test").await, [ada, bob]);
    assert_eq!(found("nobody").await, []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn content_credentials_count_as_stored(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let marked = image(&pool, None, ada, b"x").await;
    let before = images::stored(&pool, ada).await.unwrap();
    sqlx::query("insert into image_provenance (image_id, ingredient) values ($1, $2)")
        .bind(marked.uuid())
        .bind(vec![7_u8; 4000])
        .execute(&pool)
        .await
        .unwrap();
    let after = images::stored(&pool, ada).await.unwrap();
    assert_eq!((after.bytes, after.pictures), (before.bytes + 4000, before.pictures));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_checkout_page_that_opens_after_the_deletion_must_be_closed(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[0], Some("a key")).await.unwrap();
    let deleted = accounts::delete(&pool, ada, &HASH).await.unwrap().unwrap();
    assert_eq!(deleted.open_sessions, Vec::<String>::new());
    let shown = orders::attach_session(&pool, &order, "cs_late", "https://pay.test/1").await;
    assert_eq!(shown.unwrap(), None);
    let kept: (Option<String>, Option<String>, Option<String>) =
        sqlx::query_as("select session, checkout_url, idempotency_key from orders")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(kept, (Some("cs_late".into()), None, None));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn changing_the_issuer_may_take_longer_than_other_statements(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let pool = options.max_connections(1).connect_with(database).await.unwrap();
    user(&pool, "ada", 0).await;
    sqlx::raw_sql(
        "create function hesitate() returns trigger language plpgsql as
         $$ begin perform pg_sleep(0.3); return null; end $$;
         create trigger hesitate after update on users for each row execute function hesitate();
         set statement_timeout = '100ms'",
    )
    .execute(&pool)
    .await
    .unwrap();
    let change = accounts::change_issuer(&pool, ISSUER, "https://new.test", false).await;
    assert!(matches!(change.unwrap(), IssuerChange::Changed { accounts: 1, .. }));
}
