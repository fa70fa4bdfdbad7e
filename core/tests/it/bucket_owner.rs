//! A bucket belongs to one database, and a database has one bucket.

use std::time::Duration;

use retouch_core::storage::{
    self, Claim, Claimed, OWNER_KEY, OwnerError, Reason, check_owner, claim_bucket,
};
use retouch_core::{ImageId, images, janitor};
use retouch_standins::s3::Faults;
use retouch_standins::testing::{Bucket, image, object_keys, user};
use sqlx::PgPool;

/// Gives the database another id, as if it were another one, or had been set back.
async fn become_another_database(pool: &PgPool) {
    sqlx::query("update installation set id = gen_random_uuid()").execute(pool).await.unwrap();
}

async fn put_stray(bucket: &Bucket) -> String {
    let key = storage::image_key(ImageId::new());
    bucket.storage.put(&key, "image/png", b"stray".to_vec().into()).await.unwrap();
    key
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, OwnerError>) -> Reason {
    match outcome {
        Err(OwnerError::Foreign { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn the_janitor_deletes_nothing_from_the_bucket_of_another_database(pool: PgPool) {
    let bucket = Bucket::of(&pool).await;
    check_owner(&pool, &bucket.storage).await.unwrap();
    let ada = user(&pool, "ada", 0).await;
    let doomed = image(&pool, Some(&bucket.storage), ada, b"doomed").await;
    images::delete(&pool, ada, doomed).await.unwrap();
    put_stray(&bucket).await;

    become_another_database(&pool).await;

    assert_eq!(refusal(check_owner(&pool, &bucket.storage).await), Reason::OfAnother);
    let failed = janitor::round(&pool, &bucket.storage).await.unwrap_err().to_string();
    assert!(
        failed.contains("doomed objects (the bucket \"test\" belongs to another database"),
        "{failed}"
    );
    let failed = janitor::orphans(&pool, &bucket.storage).await.unwrap_err().to_string();
    assert!(failed.contains("another database"), "{failed}");
    assert_eq!(object_keys(&bucket.storage).await.len(), 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_bucket_without_an_owner_belongs_to_the_database_that_knows_its_pictures(pool: PgPool) {
    let bucket = Bucket::start().await;
    assert_eq!(refusal(check_owner(&pool, &bucket.storage).await), Reason::OfNone);
    let strays = [put_stray(&bucket).await, put_stray(&bucket).await];
    bucket.storage.put("images/readme.txt", "text/plain", b"hello".to_vec().into()).await.unwrap();
    let claimed = claim_bucket(&pool, &bucket.storage, Claim::New).await;
    assert_eq!(refusal(claimed), Reason::Unknown);
    assert_eq!(janitor::orphans(&pool, &bucket.storage).await.ok(), None);
    for key in &strays {
        assert!(bucket.storage.head(key).await.is_ok());
    }

    let ada = user(&pool, "ada", 0).await;
    image(&pool, Some(&bucket.storage), ada, b"known").await;
    let claimed = claim_bucket(&pool, &bucket.storage, Claim::New).await.unwrap();
    assert_eq!(claimed, Claimed { looked_up: 3, known: 1 });
    assert!(bucket.storage.head(OWNER_KEY).await.is_ok());
    check_owner(&pool, &bucket.storage).await.unwrap();
    assert_eq!(janitor::delete_orphans(&pool, &bucket.storage, Duration::ZERO).await.unwrap(), 2);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_database_owns_the_bucket_that_it_claimed_last(pool: PgPool) {
    let (first, second) = (Bucket::start().await, Bucket::start().await);
    claim_bucket(&pool, &first.storage, Claim::New).await.unwrap();
    check_owner(&pool, &first.storage).await.unwrap();
    claim_bucket(&pool, &second.storage, Claim::New).await.unwrap();
    check_owner(&pool, &second.storage).await.unwrap();
    assert_eq!(refusal(check_owner(&pool, &first.storage).await), Reason::OfAnother);

    // A worker with the wrong bucket.
    let ada = user(&pool, "ada", 0).await;
    image(&pool, Some(&second.storage), ada, b"mine").await;
    let third = Bucket::start().await;
    assert_eq!(refusal(claim_bucket(&pool, &third.storage, Claim::New).await), Reason::Empty);
    check_owner(&pool, &second.storage).await.unwrap();
    // A restore.
    claim_bucket(&pool, &third.storage, Claim::ToFill).await.unwrap();
    check_owner(&pool, &third.storage).await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_database_keeps_its_bucket_if_another_one_cannot_name_it(pool: PgPool) {
    let first = Bucket::start().await;
    claim_bucket(&pool, &first.storage, Claim::New).await.unwrap();
    let second = Bucket::start_with(Faults { refuse_puts: true, ..Faults::default() }).await;
    let claimed = claim_bucket(&pool, &second.storage, Claim::Any).await;
    assert!(matches!(claimed, Err(OwnerError::Storage(_))), "{claimed:?}");
    check_owner(&pool, &first.storage).await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_an_operator_takes_a_bucket_from_another_database(pool: PgPool) {
    let bucket = Bucket::of(&pool).await;
    become_another_database(&pool).await;
    for claim in [Claim::New, Claim::ToFill] {
        assert_eq!(refusal(claim_bucket(&pool, &bucket.storage, claim).await), Reason::OfAnother);
    }
    claim_bucket(&pool, &bucket.storage, Claim::Any).await.unwrap();
    check_owner(&pool, &bucket.storage).await.unwrap();

    let stray = put_stray(&bucket).await;
    become_another_database(&pool).await;
    let claimed = claim_bucket(&pool, &bucket.storage, Claim::Any).await;
    assert_eq!(refusal(claimed), Reason::Unknown);
    let claimed = claim_bucket(&pool, &bucket.storage, Claim::Discarding).await.unwrap();
    assert_eq!(claimed, Claimed { looked_up: 1, known: 0 });
    check_owner(&pool, &bucket.storage).await.unwrap();
    assert!(bucket.storage.head(&stray).await.is_ok());

    // After the database was set back.
    let ada = user(&pool, "ada", 0).await;
    image(&pool, Some(&bucket.storage), ada, b"known").await;
    become_another_database(&pool).await;
    let claimed = claim_bucket(&pool, &bucket.storage, Claim::Any).await.unwrap();
    assert_eq!(claimed, Claimed { looked_up: 2, known: 1 });
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn processes_that_claim_a_bucket_at_the_same_time_agree(pool: PgPool) {
    let bucket = Bucket::start().await;
    let claims = (0..8).map(|_| {
        let (pool, storage) = (pool.clone(), bucket.storage.clone());
        tokio::spawn(async move { claim_bucket(&pool, &storage, Claim::New).await })
    });
    for claim in claims.collect::<Vec<_>>() {
        // Refused if another one was faster.
        drop(claim.await.unwrap());
    }
    check_owner(&pool, &bucket.storage).await.unwrap();
}
