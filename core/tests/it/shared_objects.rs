//! An image made from a result shares its objects: they stay as long as one of the two rows does.

use std::time::Duration;

use bytes::Bytes;
use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};
use retouch_core::images::{self, FromResult, Image, Quota, Stay};
use retouch_core::jobs::{self, Isolation, NewJob};
use retouch_core::results::{self, NewResult};
use retouch_core::storage::{self, Storage};
use retouch_core::{ImageId, JobId, ResultId, UserId, WorkerId, audit, janitor};
use retouch_standins::testing::{
    Bucket, always_reachable, first_attempt, image, new_result, object_keys, user, wait_for_locks,
};
use sqlx::{Acquire, PgPool};

fn keys_of(job: JobId) -> [String; 3] {
    [
        storage::result_preview_key(job, 1),
        storage::result_thumbnail_key(job, 1),
        storage::result_key(job, 1),
    ]
}

/// Runs a tool on an image. Returns the job and its result, which has a preview.
async fn run(pool: &PgPool, storage: &Storage, owner: UserId, image: ImageId) -> (JobId, ResultId) {
    let new = NewJob {
        owner: Some(owner),
        image,
        tool: Tool::RemoveBackground,
        fix: None,
        tier: Tier::Paid,
        idempotency_key: None,
        queue_limit: None,
    };
    let job = jobs::submit(pool, &new).await.unwrap().into_job().id;
    let worker = WorkerId::new();
    let class = JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground };
    let lease = Duration::from_mins(1);
    jobs::claim(pool, worker, &[class], &FixMode::ALL, Isolation::Shared, lease).await.unwrap();
    for key in keys_of(job) {
        storage.put(&key, "image/png", Bytes::from_static(b"x")).await.unwrap();
    }
    let preview_key = Some(storage::result_preview_key(job, 1));
    let made = NewResult { preview_key, ..new_result(job, 1) };
    jobs::finish(pool, first_attempt(job, worker), &made).await.unwrap();
    (job, made.id)
}

/// Uploads an image that is its own thumbnail.
async fn stored(pool: &PgPool, storage: &Storage, owner: UserId) -> ImageId {
    let image = image(pool, Some(storage), owner, b"source").await;
    sqlx::query("update images set thumbnail_key = object_key").execute(pool).await.unwrap();
    image
}

async fn made_from(pool: &PgPool, owner: UserId, result: ResultId) -> Image {
    match images::from_result(pool, owner, result, Stay::ForGood, Quota::NONE).await.unwrap() {
        FromResult::Made(id) => images::get(pool, id).await.unwrap().unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn delete_result(pool: &PgPool, owner: UserId, result: ResultId) -> bool {
    results::delete(pool, owner, ToolName::RemoveBackground, result).await.unwrap()
}

/// Returns the keys of the job's objects that exist, after everything that the janitor does.
async fn left(pool: &PgPool, storage: &Storage, job: JobId) -> Vec<String> {
    janitor::delete_doomed(pool, storage).await.unwrap();
    janitor::delete_orphans(pool, storage, Duration::ZERO).await.unwrap();
    janitor::delete_doomed(pool, storage).await.unwrap();
    assert_eq!(audit::objects(pool, storage, Duration::ZERO).await.unwrap().findings, []);
    let folder = format!("results/{job}/");
    let keys = object_keys(storage).await;
    let mut keys: Vec<_> = keys.into_iter().filter(|key| key.starts_with(&folder)).collect();
    keys.sort();
    keys
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_image_keeps_the_picture_of_a_deleted_result(pool: PgPool) {
    let bucket = Bucket::start().await;
    let storage = &bucket.storage;
    let ada = user(&pool, "ada", 100).await;
    let source = stored(&pool, storage, ada).await;
    let (job, result) = run(&pool, storage, ada, source).await;
    let copy = made_from(&pool, ada, result).await;
    assert_eq!(copy.object_key, storage::result_key(job, 1));
    assert_eq!(copy.preview_key, Some(storage::result_preview_key(job, 1)));

    assert!(delete_result(&pool, ada, result).await);
    assert_eq!(left(&pool, storage, job).await, keys_of(job));
    let copy = images::get(&pool, copy.id).await.unwrap().unwrap();
    assert_eq!((copy.made_from_result, copy.made_from_image), (None, Some(source)));
    assert_eq!(copy.made_from_tool, Some(ToolName::RemoveBackground));

    images::delete(&pool, ada, copy.id).await.unwrap();
    assert_eq!(left(&pool, storage, job).await, [""; 0]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_result_keeps_the_picture_of_a_deleted_image(pool: PgPool) {
    let bucket = Bucket::start().await;
    let storage = &bucket.storage;
    let ada = user(&pool, "ada", 100).await;
    let source = stored(&pool, storage, ada).await;
    let (job, result) = run(&pool, storage, ada, source).await;
    let copy = made_from(&pool, ada, result).await;

    images::delete(&pool, ada, copy.id).await.unwrap();
    assert_eq!(left(&pool, storage, job).await, keys_of(job));
    // It can be made again, and survives the image that all came from.
    let copy = made_from(&pool, ada, result).await;
    images::delete(&pool, ada, source).await.unwrap();
    assert_eq!(left(&pool, storage, job).await, keys_of(job));
    let copy = images::get(&pool, copy.id).await.unwrap().unwrap();
    assert_eq!((copy.made_from_result, copy.made_from_image), (None, None));
    assert_eq!(
        images::from_result(&pool, ada, result, Stay::ForGood, Quota::NONE).await.unwrap(),
        FromResult::NoResult
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_object_is_deleted_once_with_the_last_row(pool: PgPool) {
    let bucket = Bucket::start().await;
    let storage = &bucket.storage;
    let ada = user(&pool, "ada", 100).await;
    let source = stored(&pool, storage, ada).await;
    let (job, result) = run(&pool, storage, ada, source).await;
    let copy = made_from(&pool, ada, result).await;
    delete_result(&pool, ada, result).await;
    images::delete(&pool, ada, copy.id).await.unwrap();
    assert_eq!(janitor::delete_doomed(&pool, storage).await.unwrap(), 3);
    assert_eq!(janitor::delete_doomed(&pool, storage).await.unwrap(), 0);
    let doomed: i64 =
        sqlx::query_scalar("select count(*) from doomed_objects where since <= now()")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!((doomed, left(&pool, storage, job).await.len()), (0, 0));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_small_result_that_is_its_own_thumbnail_is_deleted_alone_or_with_its_image(pool: PgPool) {
    let bucket = Bucket::start().await;
    let storage = &bucket.storage;
    let ada = user(&pool, "ada", 100).await;
    for deletes_image in [false, true] {
        let source = stored(&pool, storage, ada).await;
        let (job, result) = run(&pool, storage, ada, source).await;
        sqlx::query("update results set thumbnail_key = object_key, preview_key = null")
            .execute(&pool)
            .await
            .unwrap();
        if deletes_image {
            assert!(images::delete(&pool, ada, source).await.unwrap().is_some());
        } else {
            assert!(delete_result(&pool, ada, result).await);
        }
        assert_eq!(left(&pool, storage, job).await, [""; 0]);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_repeat_returns_the_same_image_also_at_the_same_time(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 100).await;
    let source = image(&pool, None, ada, b"source").await;
    let (_, result) = run(&pool, &bucket.storage, ada, source).await;
    let clicks = (0..8).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move {
            images::from_result(&pool, ada, result, Stay::ForGood, Quota::NONE).await
        })
    });
    let (mut made, mut ids) = (0, Vec::new());
    for click in clicks.collect::<Vec<_>>() {
        match click.await.unwrap().unwrap() {
            FromResult::Made(id) => {
                made += 1;
                ids.push(id);
            }
            FromResult::Existed(id) => ids.push(id),
            other => panic!("{other:?}"),
        }
    }
    ids.dedup();
    assert_eq!((made, ids.len()), (1, 1));
    assert_eq!(images::list(&pool, ada, None, 10).await.unwrap().len(), 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_repeat_that_changes_nothing_waits_for_no_lock(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 100).await;
    let source = image(&pool, None, ada, b"source").await;
    let (_, result) = run(&pool, &bucket.storage, ada, source).await;
    let copy = made_from(&pool, ada, result).await;
    let mut connection = pool.acquire().await.unwrap();
    let mut locked = connection.begin().await.unwrap();
    sqlx::query("select from users for update").execute(&mut *locked).await.unwrap();
    let repeat = images::from_result(&pool, ada, result, Stay::ForGood, Quota::NONE);
    let repeat = tokio::time::timeout(Duration::from_secs(5), repeat).await.expect("at once");
    assert_eq!(repeat.unwrap(), FromResult::Existed(copy.id));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn whatever_happens_at_once_no_row_loses_its_picture(pool: PgPool) {
    always_reachable(&pool).await;
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 10_000).await;
    let mut tasks = Vec::new();
    for n in 0..24 {
        let source = image(&pool, None, ada, b"source").await;
        let (_, result) = run(&pool, &bucket.storage, ada, source).await;
        let (of, pause) = (pool.clone(), Duration::from_millis(n % 5));
        tasks.push(tokio::spawn(async move {
            if let FromResult::Made(id) =
                images::from_result(&of, ada, result, Stay::ForGood, Quota::NONE).await.unwrap()
                && n % 3 == 0
            {
                images::delete(&of, ada, id).await.unwrap();
            }
        }));
        let of = pool.clone();
        tasks.push(tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            if n % 4 == 0 {
                images::delete(&of, ada, source).await.unwrap();
            } else if n % 4 < 3 {
                delete_result(&of, ada, result).await;
            }
        }));
    }
    for _ in 0..2 {
        let (pool, storage) = (pool.clone(), bucket.storage.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                janitor::delete_orphans(&pool, &storage, Duration::ZERO).await.unwrap();
                janitor::delete_doomed(&pool, &storage).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    janitor::delete_doomed(&pool, &bucket.storage).await.unwrap();
    let mut named: Vec<String> = sqlx::query_scalar(
        "select unnest(array[object_key, thumbnail_key, preview_key]) from images where objects_of_job is not null
         union select unnest(array[object_key, thumbnail_key, preview_key]) from results",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    named.sort();
    // Without waiting for the hourly search: no object lost its place on the list.
    assert_eq!(object_keys(&bucket.storage).await, named);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_image_made_by_a_program_expires_like_its_source_unless_somebody_keeps_it(pool: PgPool) {
    let bucket = Bucket::start().await;
    let ada = user(&pool, "ada", 0).await;
    let source = stored(&pool, &bucket.storage, ada).await;
    let (_, result) = run(&pool, &bucket.storage, ada, source).await;
    // As if a program had sent the picture along.
    sqlx::query("update images set expires_at = now() + interval '1 minute'")
        .execute(&pool)
        .await
        .unwrap();
    let make = async |stay| {
        images::from_result(&pool, ada, result, stay, Quota::NONE).await.unwrap();
        let left = "select extract(epoch from expires_at - now())::float8 from images where made_from_result is not null";
        sqlx::query_scalar::<_, Option<f64>>(left).fetch_one(&pool).await.unwrap()
    };
    for _ in 0..2 {
        let left = make(Stay::LikeSource).await.unwrap();
        assert!((3_500.0..=3_600.0).contains(&left), "{left}");
    }
    assert_eq!(make(Stay::ForGood).await, None);
    assert_eq!(make(Stay::LikeSource).await, None, "it stays");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn deleting_images_waits_for_the_expiry_of_one_without_a_deadlock(pool: PgPool) {
    let ada = user(&pool, "ada", 0).await;
    let source = image(&pool, None, ada, b"source").await;
    let derived = image(&pool, None, ada, b"derived").await;
    // As the janitor does: it locks the source, and the foreign key then changes what was made from it.
    let mut janitor = pool.acquire().await.unwrap();
    let mut expiry = janitor.begin().await.unwrap();
    sqlx::query("select from images where id = $1 for update")
        .bind(source.uuid())
        .execute(&mut *expiry)
        .await
        .unwrap();
    let deleting = pool.clone();
    let deletion =
        tokio::spawn(async move { images::delete_many(&deleting, ada, &[derived, source]).await });
    wait_for_locks(&pool, 1).await;
    sqlx::query("update images set made_from_image = null where id = $1")
        .bind(derived.uuid())
        .execute(&mut *expiry)
        .await
        .unwrap();
    expiry.commit().await.unwrap();
    assert_eq!(deletion.await.unwrap().unwrap().images.len(), 2);
}
