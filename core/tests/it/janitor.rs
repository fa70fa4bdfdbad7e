//! The janitor deletes what is no longer needed and nothing else.

mod any_order;

use std::time::Duration;

use bytes::Bytes;
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};
use retouch_core::credits::PACKS;
use retouch_core::images::{self, FromResult, InsertOutcome, NewImage, Quota, Stay, Uploader};
use retouch_core::jobs::{self, Claimed, Failure, Finish, Isolation, NewJob};
use retouch_core::orders::{self, OrderStatus};
use retouch_core::results::{self, ResultImage};
use retouch_core::storage::{self, Page, Storage};
use retouch_core::{ImageId, JobId, UserId, WorkerId, audit, janitor};
use retouch_standins::testing::{
    Bucket, always_reachable, eventually, first_attempt, image, new_result, object_keys, user,
    waits_for_a_lock,
};
use sqlx::{Acquire, PgPool};

const LEASE: Duration = Duration::from_mins(1);
const NO_GRACE: Duration = Duration::ZERO;
const PATIENCE: Duration = Duration::from_secs(20);

fn run(owner: UserId, image: ImageId, tier: Tier) -> NewJob {
    NewJob {
        owner: Some(owner),
        image,
        tool: Tool::RemoveBackground,
        fix: None,
        tier,
        idempotency_key: None,
        queue_limit: None,
    }
}

async fn submit(pool: &PgPool, new: &NewJob) -> JobId {
    jobs::submit(pool, new).await.unwrap().into_job().id
}

async fn claim(pool: &PgPool, worker: WorkerId) -> Option<Claimed> {
    let classes = Tier::ALL.map(|tier| JobClass { tier, tool: ToolName::RemoveBackground });
    jobs::claim(pool, worker, &classes, &FixMode::ALL, Isolation::Shared, LEASE).await.unwrap()
}

async fn put(storage: &Storage, keys: &[String]) {
    for key in keys {
        storage.put(key, "image/png", Bytes::from_static(b"x")).await.unwrap();
    }
}

fn keys_of(image: ImageId) -> [String; 2] {
    [storage::image_key(image), storage::image_thumbnail_key(image)]
}

fn keys_of_attempt(job: JobId, attempt: i32) -> [String; 2] {
    [storage::result_key(job, attempt), storage::result_thumbnail_key(job, attempt)]
}

fn new_image(id: ImageId, owner: UserId) -> NewImage {
    NewImage {
        id,
        uploader: Uploader::User(owner),
        name: None,
        content_type: "image/png",
        content_sha256: vec![1],
        upload_key: None,
        size_bytes: 1,
        width: 64,
        height: 48,
        has_preview: false,
        provenance: None,
    }
}

/// Ages announced and doomed objects by two hours.
async fn two_hours_later(pool: &PgPool) {
    sqlx::query("update doomed_objects set since = since - interval '2 hours'")
        .execute(pool)
        .await
        .unwrap();
}

async fn execute(pool: &PgPool, statement: &'static str) -> u64 {
    sqlx::query(statement).execute(pool).await.unwrap().rows_affected()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_our_own_old_unreferenced_objects_are_orphans(pool: PgPool) {
    let (bucket, worker) = (Bucket::start().await, WorkerId::new());
    let storage = &bucket.storage;
    let ada = user(&pool, "ada", 0).await;
    let kept = image(&pool, Some(storage), ada, b"kept").await;
    // A result, the objects of a running attempt, and those of an attempt whose worker died after the job was
    // canceled.
    let job = submit(&pool, &run(ada, kept, Tier::Paid)).await;
    claim(&pool, worker).await.unwrap();
    put(storage, &keys_of_attempt(job, 1)).await;
    jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap();
    let running = submit(&pool, &run(ada, kept, Tier::Paid)).await;
    claim(&pool, worker).await.unwrap();
    put(storage, &keys_of_attempt(running, 1)).await;
    let cancelled = submit(&pool, &run(ada, kept, Tier::Free)).await;
    jobs::cancel(&pool, cancelled).await.unwrap();
    put(storage, &keys_of_attempt(cancelled, 1)).await;
    let announced = ImageId::new();
    images::announce(&pool, announced).await.unwrap();
    put(storage, &keys_of(announced)).await;
    let stray = ImageId::new();
    put(storage, &keys_of(stray)).await;
    put(storage, &["images/readme.txt".into(), "backup/1/original".into()]).await;

    let before = object_keys(storage).await;
    assert_eq!(janitor::delete_orphans(&pool, storage, janitor::ORPHAN_GRACE).await.unwrap(), 4);
    assert_eq!(
        janitor::delete_doomed(&pool, storage).await.unwrap(),
        0,
        "their operator has a day"
    );
    assert_eq!(object_keys(storage).await, before);
    sqlx::query(
        "update doomed_objects set since = since - interval '24 hours' where not is_announced",
    )
    .execute(&pool)
    .await
    .unwrap();
    assert_eq!(janitor::delete_doomed(&pool, storage).await.unwrap(), 4);
    let orphans = [keys_of_attempt(cancelled, 1), keys_of(stray)].concat();
    let left: Vec<_> = before.into_iter().filter(|key| !orphans.contains(key)).collect();
    assert_eq!(object_keys(storage).await, left);
    assert_eq!(janitor::delete_orphans(&pool, storage, NO_GRACE).await.unwrap(), 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn all_pages_of_a_bucket_are_searched(pool: PgPool) {
    let bucket = Bucket::start().await;
    for _ in 0..7 {
        put(&bucket.storage, &keys_of(ImageId::new())).await;
    }
    let (mut from, mut pages, mut found) = (None, 0, 0);
    loop {
        let page = bucket.storage.page("images/", from, 3).await.unwrap();
        found += janitor::doom_orphans(&pool, &page, NO_GRACE).await.unwrap();
        pages += 1;
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!((pages, found), (5, 14));
    assert_eq!(janitor::delete_doomed(&pool, &bucket.storage).await.unwrap(), 14);
    assert_eq!(object_keys(&bucket.storage).await, Vec::<String>::new());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upload_that_took_too_long_is_not_inserted(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 0).await;
    let late = ImageId::new();
    images::announce(&pool, late).await.unwrap();
    put(&bucket.storage, &keys_of(late)).await;
    two_hours_later(&pool).await;
    // The file, the thumbnail, and a preview that was never written.
    assert_eq!(janitor::delete_doomed(&pool, &bucket.storage).await.unwrap(), 3);
    let recorded = images::insert(&pool, &new_image(late, ada), Quota::NONE).await.unwrap();
    assert_eq!(recorded, InsertOutcome::TooLate);
    assert_eq!(images::list(&pool, ada, None, 1000).await.unwrap().len(), 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn objects_that_the_store_does_not_delete_hold_up_no_others(pool: PgPool) {
    let (bucket, stray) = (Bucket::start().await, ImageId::new());
    // The store keeps objects in files, and cannot delete a folder as one. More of them than fit into a batch.
    let undeletable = (0..40).map(|n| format!("images/{n}"));
    for key in undeletable.clone() {
        put(&bucket.storage, &[format!("{key}/original")]).await;
        let doom = "insert into doomed_objects (object_key) values ($1)";
        sqlx::query(doom).bind(key).execute(&pool).await.unwrap();
    }
    let keys = keys_of(stray);
    put(&bucket.storage, &keys).await;
    let doom = "insert into doomed_objects (object_key) select unnest($1::text[])";
    sqlx::query(doom).bind(&keys).execute(&pool).await.unwrap();
    let error = janitor::delete_doomed(&pool, &bucket.storage).await.unwrap_err();
    assert!(format!("{error:#}").starts_with("deleting objects: "), "{error:#}");
    // The whole first batch failed, which looks like an outage of the store, so this round ended.
    janitor::delete_doomed(&pool, &bucket.storage).await.unwrap_err();
    let left = object_keys(&bucket.storage).await;
    assert!(keys.iter().all(|key| !left.contains(key)), "{left:?}");
    assert_eq!(left.len(), 40);
    let due = "select count(*) from doomed_objects where since <= now()";
    assert_eq!(sqlx::query_scalar::<_, i64>(due).fetch_one(&pool).await.unwrap(), 0);
    let waiting = execute(&pool, "delete from doomed_objects where since > now()").await;
    assert_eq!(waiting, 40, "they are tried again later");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_doomed_object_that_a_row_refers_to_is_kept(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 0).await;
    let kept = image(&pool, Some(&bucket.storage), ada, b"kept").await;
    execute(&pool, "insert into doomed_objects (object_key) select object_key from images").await;
    assert_eq!(janitor::delete_doomed(&pool, &bucket.storage).await.unwrap(), 0);
    assert_eq!(object_keys(&bucket.storage).await, [storage::image_key(kept)]);
    assert_eq!(execute(&pool, "delete from doomed_objects").await, 0, "it is off the list");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_unfinished_upload_is_aborted_after_a_day(pool: PgPool) {
    let bucket = Bucket::start().await;
    let mut upload = bucket.storage.upload(&pool, "results/x/1.png".into(), "image/png");
    upload.push(&vec![7; 17 << 20].into()).await.unwrap();
    eventually(PATIENCE, "both parts arrived", async || {
        (bucket.unfinished_parts() == 2).then_some(())
    })
    .await;
    // A killed process runs no destructors.
    std::mem::forget(upload);
    assert!(janitor::hourly(&pool, &bucket.storage).await.unwrap());
    assert_eq!(bucket.unfinished_parts(), 2, "it may still continue");
    execute(&pool, "update unfinished_uploads set since = now() - interval '25 hours'").await;
    execute(&pool, "delete from chores").await;
    assert!(janitor::hourly(&pool, &bucket.storage).await.unwrap());
    assert_eq!(bucket.unfinished_parts(), 0);
    assert_eq!(execute(&pool, "delete from unfinished_uploads").await, 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn old_jobs_are_deleted_unless_something_refers_to_them(pool: PgPool) {
    let worker = WorkerId::new();
    let ada = user(&pool, "ada", 0).await;
    let ended = async |tier, ends: &str| {
        let picture = image(&pool, None, ada, b"x").await;
        let job = submit(&pool, &run(ada, picture, tier)).await;
        claim(&pool, worker).await.unwrap();
        let failure = Failure { code: "x".into(), detail: String::new() };
        match ends {
            "failed" => {
                jobs::fail(&pool, first_attempt(job, worker), &failure).await.unwrap();
            }
            "cancelled" => drop(jobs::cancel(&pool, job).await.unwrap()),
            _ => drop(
                jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap(),
            ),
        }
        (picture, job)
    };
    let (_, failed) = ended(Tier::Paid, "failed").await;
    let (_, cancelled) = ended(Tier::Free, "cancelled").await;
    // A free run of a deleted image leaves nothing; that of an existing image stays used up.
    let (gone, free_and_gone) = ended(Tier::Free, "done").await;
    images::delete(&pool, ada, gone).await.unwrap();
    let (_, free_with_result) = ended(Tier::Free, "done").await;
    let (_, free_without) = ended(Tier::Free, "done").await;
    let result = results::for_job(&pool, free_without).await.unwrap()[0].id;
    results::delete(&pool, ada, ToolName::RemoveBackground, result).await.unwrap();
    let (paid_and_gone, paid) = ended(Tier::Paid, "done").await;
    images::delete(&pool, ada, paid_and_gone).await.unwrap();
    let active = submit(&pool, &run(ada, image(&pool, None, ada, b"x").await, Tier::Paid)).await;

    assert_eq!(jobs::delete_old(&pool, janitor::JOB_DAYS).await.unwrap(), 0);
    execute(
        &pool,
        "update jobs set finished_at = now() - interval '91 days' where finished_at is not null",
    )
    .await;
    assert_eq!(jobs::delete_old(&pool, janitor::JOB_DAYS).await.unwrap(), 3);
    for job in [failed, cancelled, free_and_gone] {
        assert!(jobs::get(&pool, job).await.unwrap().is_none());
    }
    for job in [free_with_result, free_without, paid, active] {
        assert!(jobs::get(&pool, job).await.unwrap().is_some());
    }
    assert_eq!(audit::books(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_repeat_is_recognized_for_a_week_and_while_its_job_is_active(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let picture = image(&pool, None, ada, b"x").await;
    let with_key =
        |key: &str| NewJob { idempotency_key: Some(key.into()), ..run(ada, picture, Tier::Paid) };
    let (old, active) = (with_key("old"), with_key("active"));
    let first = submit(&pool, &old).await;
    assert!(jobs::fail_by_operator(&pool, first, "Because").await.unwrap());
    let waiting = submit(&pool, &active).await;
    execute(&pool, "update jobs set created_at = now() - interval '6 days'").await;
    assert_eq!(jobs::clear_old_keys(&pool, janitor::KEY_DAYS).await.unwrap(), 0);
    assert_eq!(submit(&pool, &old).await, first);
    execute(&pool, "update jobs set created_at = now() - interval '8 days'").await;
    assert_eq!(jobs::clear_old_keys(&pool, janitor::KEY_DAYS).await.unwrap(), 1);
    assert_eq!(submit(&pool, &active).await, waiting);
    assert_ne!(submit(&pool, &old).await, first);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn one_process_runs_the_hourly_tasks_once_an_hour(pool: PgPool) {
    let bucket = Bucket::of(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let order = orders::place(&pool, ada, &PACKS[0], None).await.unwrap().id;
    execute(&pool, "update orders set created_at = now() - interval '26 hours'").await;
    put(&bucket.storage, &keys_of(ImageId::new())).await;
    let processes = (0..8).map(|_| {
        let (pool, storage) = (pool.clone(), bucket.storage.clone());
        tokio::spawn(async move { janitor::hourly(&pool, &storage).await.unwrap() })
    });
    let mut ran = 0;
    for process in processes.collect::<Vec<_>>() {
        ran += usize::from(process.await.unwrap());
    }
    assert_eq!(ran, 1);
    let order = orders::owned(&pool, ada, order).await.unwrap().unwrap();
    assert_eq!(order.status, OrderStatus::Expired);
    assert_eq!(janitor::orphans(&pool, &bucket.storage).await.unwrap(), Some(2));
    assert_eq!(janitor::orphans(&pool, &bucket.storage).await.unwrap(), None, "not due");
    assert_eq!(object_keys(&bucket.storage).await.len(), 2);
    execute(&pool, "update chores set begun_at = begun_at - interval '61 minutes'").await;
    assert!(janitor::hourly(&pool, &bucket.storage).await.unwrap());
    assert!(!janitor::hourly(&pool, &bucket.storage).await.unwrap());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn no_two_processes_run_the_hourly_tasks_at_once(pool: PgPool) {
    let bucket = Bucket::start().await;
    let mut busy = pool.acquire().await.unwrap();
    // Hold the janitor's lock, as another process would.
    sqlx::query("select pg_advisory_lock($1)")
        .bind(0x7265_746f_7563_6801_i64)
        .execute(&mut *busy)
        .await
        .unwrap();
    assert!(!janitor::hourly(&pool, &bucket.storage).await.unwrap());
    sqlx::query("select pg_advisory_unlock($1)")
        .bind(0x7265_746f_7563_6801_i64)
        .execute(&mut *busy)
        .await
        .unwrap();
    assert!(janitor::hourly(&pool, &bucket.storage).await.unwrap());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn concurrent_uploads_and_janitors_lose_nothing(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 0).await;
    let uploads = (0..40).map(|n| {
        let (pool, storage) = (pool.clone(), bucket.storage.clone());
        tokio::spawn(async move {
            let id = ImageId::new();
            images::announce(&pool, id).await.unwrap();
            put(&storage, &keys_of(id)).await;
            // Every third upload takes so long that the janitor may come first.
            if n % 3 == 0 {
                let late = "update doomed_objects set since = now() where object_key = any($1)";
                let late = sqlx::query(late).bind(keys_of(id).to_vec());
                late.execute(&pool).await.unwrap();
            }
            let recorded = images::insert(&pool, &new_image(id, ada), Quota::NONE).await.unwrap();
            if n % 5 == 0 && recorded == InsertOutcome::Inserted {
                images::delete(&pool, ada, id).await.unwrap();
            }
        })
    });
    let uploads: Vec<_> = uploads.collect();
    let janitors = (0..2).map(|_| {
        let (pool, storage) = (pool.clone(), bucket.storage.clone());
        tokio::spawn(async move {
            for _ in 0..15 {
                janitor::delete_orphans(&pool, &storage, NO_GRACE).await.unwrap();
                janitor::delete_doomed(&pool, &storage).await.unwrap();
            }
        })
    });
    for task in janitors.collect::<Vec<_>>().into_iter().chain(uploads) {
        task.await.unwrap();
    }
    assert_eq!(audit::objects(&pool, &bucket.storage, NO_GRACE).await.unwrap().findings, []);
    two_hours_later(&pool).await;
    janitor::delete_doomed(&pool, &bucket.storage).await.unwrap();
    let kept = images::list(&pool, ada, None, 1000).await.unwrap().len();
    assert_eq!(object_keys(&bucket.storage).await.len(), 2 * kept);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_expired_image_stays_until_its_results_are_an_hour_old(pool: PgPool) {
    let (ada, worker) = (user(&pool, "ada", 0).await, WorkerId::new());
    let picture = image(&pool, None, ada, b"x").await;
    let job = submit(&pool, &run(ada, picture, Tier::Paid)).await;
    claim(&pool, worker).await.unwrap();
    jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap();
    execute(&pool, "update images set expires_at = now() - interval '1 second'").await;
    execute(&pool, "update results set created_at = now() - interval '59 minutes'").await;
    assert_eq!(images::delete_expired(&pool).await.unwrap(), 0);
    execute(&pool, "update results set created_at = now() - interval '61 minutes'").await;
    assert_eq!(images::delete_expired(&pool).await.unwrap(), 1);
    assert!(results::for_job(&pool, job).await.unwrap().is_empty());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn all_expired_images_are_deleted_however_many_there_are(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    image(&pool, None, ada, b"kept").await;
    execute(
        &pool,
        "insert into images (id, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height,
                             visitor, expires_at)
         select gen_random_uuid(), n || '/original', n || '/thumbnail', 'image/png', '', 1, 1, 1, 'someone', now()
         from generate_series(1, 1100) n",
    )
    .await;
    assert_eq!(images::delete_expired(&pool).await.unwrap(), 1100);
    assert_eq!(execute(&pool, "delete from doomed_objects").await, 2200);
    assert_eq!(execute(&pool, "delete from images").await, 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_failed_task_of_a_round_prevents_no_other(pool: PgPool) {
    let bucket = Bucket::of(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let gone = image(&pool, Some(&bucket.storage), ada, b"gone").await;
    images::delete(&pool, ada, gone).await.unwrap();
    execute(&pool, "alter table workers rename to lost").await;
    let failed = janitor::round(&pool, &bucket.storage).await.unwrap_err();
    assert!(format!("{failed:#}").contains("workers"), "{failed:#}");
    assert_eq!(object_keys(&bucket.storage).await, Vec::<String>::new());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_result_can_be_deleted_while_the_janitor_deletes_its_image(pool: PgPool) {
    let (ada, worker) = (user(&pool, "ada", 0).await, WorkerId::new());
    let picture = image(&pool, None, ada, b"x").await;
    let job = submit(&pool, &run(ada, picture, Tier::Paid)).await;
    claim(&pool, worker).await.unwrap();
    jobs::finish(&pool, first_attempt(job, worker), &new_result(job, 1)).await.unwrap();
    let result = results::for_job(&pool, job).await.unwrap()[0].id;
    // Whoever deletes an image locks it first, then changes its jobs, then deletes their results.
    let mut connection = pool.acquire().await.unwrap();
    let mut janitor = connection.begin().await.unwrap();
    sqlx::query("select from images for update").execute(&mut *janitor).await.unwrap();
    let deleting = tokio::spawn({
        let pool = pool.clone();
        async move { results::delete(&pool, ada, ToolName::RemoveBackground, result).await }
    });
    waits_for_a_lock(&pool).await;
    sqlx::query("delete from images").execute(&mut *janitor).await.expect("no deadlock");
    janitor.commit().await.unwrap();
    assert!(!deleting.await.unwrap().expect("no deadlock"), "it is gone already");
}
