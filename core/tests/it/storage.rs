//! Objects: reading, writing, streaming uploads, and cleaning up after them.

use std::time::Duration;

use retouch_core::config::DatabaseConfig;
use retouch_core::storage::StorageError;
use retouch_core::{ImageId, db, images, janitor};
use retouch_standins::testing::{Bucket, eventually, image, object_keys, user};
use sqlx::{ConnectOptions, PgPool};
use tokio::io::AsyncReadExt;

use crate::relay::relay;

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_read_whole_or_in_ranges_until_it_is_deleted() {
    let bucket = Bucket::start().await;
    let storage = &bucket.storage;
    storage.put("a/b", "image/png", (0..=255).collect::<Vec<u8>>().into()).await.unwrap();
    assert_eq!(storage.get("a/b").await.unwrap().len(), 256);
    let mut part = storage.open("a/b", Some("bytes=10-19")).await.unwrap();
    let mut bytes = Vec::new();
    part.body.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, (10..20).collect::<Vec<u8>>());
    assert_eq!(part.content_range.as_deref(), Some("bytes 10-19/256"));
    assert!(matches!(storage.open("a/b", Some("bytes=900-")).await, Err(StorageError::Range)));
    assert_eq!(storage.head("a/b").await.unwrap(), (256, part.etag));
    storage.delete("a/b").await.unwrap();
    storage.delete("a/b").await.unwrap();
    assert!(matches!(storage.get("a/b").await, Err(StorageError::Missing(_))));
    assert!(matches!(storage.head("a/b").await, Err(StorageError::Missing(_))));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_janitor_deletes_doomed_objects_and_expired_announcements(pool: PgPool) {
    let bucket = Bucket::of(&pool).await;
    let ada = user(&pool, "ada", 0).await;
    let kept = image(&pool, Some(&bucket.storage), ada, b"kept").await;
    let gone = image(&pool, Some(&bucket.storage), ada, b"gone").await;
    // A process that died after writing the object and before inserting the row, more than an hour ago.
    let orphan = ImageId::new();
    images::announce(&pool, orphan).await.unwrap();
    let key = retouch_core::storage::image_key(orphan);
    bucket.storage.put(&key, "image/png", b"orphan".to_vec().into()).await.unwrap();
    janitor::round(&pool, &bucket.storage).await.unwrap();
    assert_eq!(object_keys(&bucket.storage).await.len(), 3, "an upload in progress is kept");

    sqlx::query("update doomed_objects set since = now()").execute(&pool).await.unwrap();
    images::delete(&pool, ada, gone).await.unwrap();
    janitor::round(&pool, &bucket.storage).await.unwrap();
    assert_eq!(object_keys(&bucket.storage).await, [retouch_core::storage::image_key(kept)]);
    let left: i64 =
        sqlx::query_scalar("select count(*) from doomed_objects").fetch_one(&pool).await.unwrap();
    assert_eq!(left, 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_multipart_upload_is_complete_and_a_dropped_one_leaves_nothing(pool: PgPool) {
    let bucket = Bucket::start().await;
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|i| (i % 251) as u8).collect();
    for size in [0, 1, 8 << 20, (8 << 20) + 1, bytes.len()] {
        let key = format!("{size} bytes");
        let mut upload = bucket.storage.upload(&pool, key.clone(), "image/png");
        // Pieces that do not align with parts.
        for piece in bytes[..size].chunks(999_983) {
            upload.push(&piece.to_vec().into()).await.unwrap();
        }
        assert_eq!(upload.finish().await.unwrap(), size as u64);
        let stored = bucket.storage.get(&key).await;
        assert!(stored.is_ok_and(|stored| stored == bytes[..size]), "{key}");
    }
    assert_eq!((bucket.unfinished_parts(), unfinished(&pool).await), (0, 0));

    let mut upload = bucket.storage.upload(&pool, "dropped".into(), "image/png");
    upload.push(&bytes.clone().into()).await.unwrap();
    assert_eq!(unfinished(&pool).await, 1);
    drop(upload);
    eventually(PATIENCE, "the upload was aborted", async || {
        (unfinished(&pool).await == 0).then_some(())
    })
    .await;
    assert_eq!(bucket.unfinished_parts(), 0);
    assert!(matches!(bucket.storage.get("dropped").await, Err(StorageError::Missing(_))));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upload_outlasts_a_database_connection_that_falls_silent(pool: PgPool) {
    let bucket = Bucket::start().await;
    let options = pool.connect_options();
    let (port, silence) = relay(format!("{}:{}", options.get_host(), options.get_port())).await;
    let url = options.as_ref().clone().host("127.0.0.1").port(port).to_url_lossy();
    let database_url = url.as_str().parse().unwrap();
    let relayed = db::pool(&DatabaseConfig { database_url, database_connections: 1 }).unwrap();
    db::ping(&relayed).await.unwrap();
    silence.send(()).unwrap();
    let mut upload = bucket.storage.upload(&relayed, "key".into(), "image/png");
    tokio::time::timeout(Duration::from_secs(30), upload.push(&vec![7; 17 << 20].into()))
        .await
        .expect("another connection is opened")
        .unwrap();
    assert_eq!(unfinished(&pool).await, 1);
    assert_eq!(upload.finish().await.unwrap(), 17 << 20);
    assert_eq!(unfinished(&pool).await, 0);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn bytes_can_be_inserted_near_the_start_of_a_finished_upload(pool: PgPool) {
    const AT: usize = 33;
    let bucket = Bucket::start().await;
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|i| (i % 251) as u8).collect();
    let inserted = vec![0xee; 40_000];
    for size in [AT, 5000, (8 << 20) - 1, 8 << 20, (8 << 20) + 1, bytes.len()] {
        let key = format!("{size} bytes");
        let upload = bucket.storage.upload(&pool, key.clone(), "image/png");
        let mut upload = upload.reserving(inserted.len());
        for piece in bytes[..size].chunks(999_983) {
            upload.push(&piece.to_vec().into()).await.unwrap();
        }
        let expected = [&bytes[..AT], &inserted, &bytes[AT..size]].concat();
        let written = upload.finish_inserting(AT, &inserted).await.unwrap();
        assert_eq!(written, expected.len() as u64, "{key}");
        let stored = bucket.storage.get(&key).await;
        assert!(stored.is_ok_and(|stored| stored == expected), "{key}");
    }
    assert_eq!((bucket.unfinished_parts(), unfinished(&pool).await), (0, 0));

    let short = bucket.storage.upload(&pool, "short".into(), "image/png").reserving(10);
    let outcome = short.finish_inserting(AT, &inserted[..10]).await;
    assert!(matches!(outcome, Err(StorageError::Failed(_))), "{outcome:?}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_janitor_aborts_the_upload_of_a_process_that_died(pool: PgPool) {
    let bucket = Bucket::of(&pool).await;
    let (job, attempt) = (retouch_core::JobId::new(), 1);
    let key = retouch_core::storage::result_key(job, attempt);
    let mut upload = bucket.storage.upload(&pool, key, "image/png");
    upload.push(&vec![7; 17 << 20].into()).await.unwrap();
    // Wait for all parts: unlike a dead process, this one would keep sending.
    eventually(PATIENCE, "both parts arrived", async || {
        (bucket.unfinished_parts() == 2).then_some(())
    })
    .await;
    // A killed process runs no destructors.
    std::mem::forget(upload);
    janitor::round(&pool, &bucket.storage).await.unwrap();
    assert_eq!(unfinished(&pool).await, 1, "an upload in progress is kept");
    retouch_core::storage::doom_attempt(&pool, job, attempt).await.unwrap();
    janitor::round(&pool, &bucket.storage).await.unwrap();
    assert_eq!((bucket.unfinished_parts(), unfinished(&pool).await), (0, 0));
}

async fn unfinished(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from unfinished_uploads").fetch_one(pool).await.unwrap()
}
