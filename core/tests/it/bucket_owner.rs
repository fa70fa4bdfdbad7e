//! A bucket belongs to one database.

use std::time::Duration;

use retouch_core::storage::{self, OWNER_KEY, OwnerError, check_owner, claim_bucket};
use retouch_core::{ImageId, images, janitor};
use retouch_standins::testing::{Bucket, image, object_keys, user};
use sqlx::PgPool;

/// Gives the database another id, as if it were another one.
async fn become_another_database(pool: &PgPool) {
    sqlx::query("update installation set id = gen_random_uuid()").execute(pool).await.unwrap();
}

async fn put_stray(bucket: &Bucket) -> String {
    let key = storage::image_key(ImageId::new());
    bucket.storage.put(&key, "image/png", b"stray".to_vec().into()).await.unwrap();
    key
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_janitor_deletes_nothing_from_the_bucket_of_another_database(pool: PgPool) {
    let bucket = Bucket::start().await;
    claim_bucket(&pool, &bucket.storage).await.unwrap();
    check_owner(&pool, &bucket.storage).await.unwrap();
    let ada = user(&pool, "ada", 0).await;
    let doomed = image(&pool, Some(&bucket.storage), ada, b"doomed").await;
    images::delete(&pool, ada, doomed).await.unwrap();
    put_stray(&bucket).await;

    become_another_database(&pool).await;

    let checked = check_owner(&pool, &bucket.storage).await;
    assert!(matches!(checked, Err(OwnerError::Foreign(_))), "{checked:?}");
    let failed = janitor::round(&pool, &bucket.storage).await.unwrap_err().to_string();
    assert!(
        failed.contains("doomed objects (the bucket \"test\" has the pictures of another database"),
        "{failed}"
    );
    let failed = janitor::orphans(&pool, &bucket.storage).await.unwrap_err().to_string();
    assert!(failed.contains("another database"), "{failed}");
    assert_eq!(object_keys(&bucket.storage).await.len(), 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_bucket_without_an_owner_belongs_to_the_database_that_knows_its_pictures(pool: PgPool) {
    let bucket = Bucket::start().await;
    let strays = [put_stray(&bucket).await, put_stray(&bucket).await];
    bucket.storage.put("images/readme.txt", "text/plain", b"hello".to_vec().into()).await.unwrap();
    let claimed = claim_bucket(&pool, &bucket.storage).await;
    assert!(matches!(claimed, Err(OwnerError::Foreign(_))), "{claimed:?}");
    assert_eq!(janitor::orphans(&pool, &bucket.storage).await.ok(), None);
    for key in &strays {
        assert!(bucket.storage.head(key).await.is_ok());
    }

    let ada = user(&pool, "ada", 0).await;
    image(&pool, Some(&bucket.storage), ada, b"known").await;
    claim_bucket(&pool, &bucket.storage).await.unwrap();
    assert!(bucket.storage.head(OWNER_KEY).await.is_ok());
    assert_eq!(janitor::delete_orphans(&pool, &bucket.storage, Duration::ZERO).await.unwrap(), 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_bucket_without_pictures_can_change_hands(pool: PgPool) {
    let bucket = Bucket::start().await;
    claim_bucket(&pool, &bucket.storage).await.unwrap();
    become_another_database(&pool).await;
    claim_bucket(&pool, &bucket.storage).await.unwrap();
    check_owner(&pool, &bucket.storage).await.unwrap();
}
