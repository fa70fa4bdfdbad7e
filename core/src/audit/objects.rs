//! Compares the bucket with the rows.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use super::Finding;
use crate::storage::{self, Storage, StorageError};

const ROWS: i64 = 1000;

/// The outcome of comparing the bucket with the rows.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of objects in the bucket.
    pub objects: usize,
    pub findings: Vec<Finding>,
}

/// Compares the bucket with the rows: every object that a row refers to must exist, and every object older than
/// `age` must belong to a row or be doomed.
///
/// Keeps all keys in memory, about 150 bytes each: a million objects take 150 MB.
pub async fn objects(
    pool: &PgPool,
    storage: &Storage,
    age: Duration,
) -> anyhow::Result<Comparison> {
    objects_in_pages(pool, storage, age, 1000).await
}

/// Like [`objects`], with `page_size` objects per page.
pub async fn objects_in_pages(
    pool: &PgPool,
    storage: &Storage,
    age: Duration,
    page_size: i32,
) -> anyhow::Result<Comparison> {
    let mut present = HashSet::new();
    let mut unknown = Vec::new();
    let mut from = None;
    loop {
        let page = storage.page("", from, page_size).await?;
        let newest = sqlx::query_scalar!(
            r#"select now() - make_interval(secs => $1) as "time!""#,
            age.as_secs_f64(),
        )
        .fetch_one(pool)
        .await?;
        let old = page.objects.iter().filter(|object| object.written_at <= newest);
        let old: Vec<String> = old.map(|object| object.key.clone()).collect();
        unknown.extend(storage::unknown(pool, &old).await?);
        present.extend(page.objects.into_iter().map(|object| object.key));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    let mut findings = Vec::new();
    // Check again, because since the listing a missing object may have been written or lost its row, and an
    // unknown one may have been deleted.
    for key in unknown {
        if !is_gone(storage, &key).await? {
            findings.push(Finding::UnknownObject { key });
        }
    }
    for key in absent(pool, &present).await? {
        let referenced =
            storage::referenced(&mut *pool.acquire().await?, std::slice::from_ref(&key)).await?;
        if !referenced.is_empty() && is_gone(storage, &key).await? {
            findings.push(Finding::MissingObject { key });
        }
    }
    Ok(Comparison { objects: present.len(), findings })
}

async fn is_gone(storage: &Storage, key: &str) -> Result<bool, StorageError> {
    match storage.open(key, None).await {
        Ok(_) => Ok(false),
        Err(StorageError::Missing(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns the keys that rows refer to and that are not in `present`.
async fn absent(pool: &PgPool, present: &HashSet<String>) -> sqlx::Result<BTreeSet<String>> {
    // An image that was made from a result has the same keys.
    let mut absent = BTreeSet::new();
    let mut after = Uuid::nil();
    loop {
        let rows = sqlx::query!(
            r#"select id as "id!", object_key as "object_key!", thumbnail_key as "thumbnail_key!", preview_key from (
                   (select id, object_key, thumbnail_key, preview_key from images where id > $1 order by id limit $2)
                   union all
                   (select id, object_key, thumbnail_key, preview_key from results where id > $1 order by id limit $2)
               ) keys order by id limit $2"#,
            after,
            ROWS,
        )
        .fetch_all(pool)
        .await?;
        let Some(last) = rows.last() else { return Ok(absent) };
        after = last.id;
        let keys = rows.into_iter().flat_map(|row| {
            [Some(row.object_key), Some(row.thumbnail_key), row.preview_key].into_iter().flatten()
        });
        absent.extend(keys.filter(|key| !present.contains(key)));
    }
}
