//! The bucket held against the rows.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use super::Finding;
use crate::storage::{self, Storage, StorageError};

/// Rows that are looked at together.
const ROWS: i64 = 1000;

/// What a comparison of the bucket with the rows came to.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// How many objects there are.
    pub objects: usize,
    /// What should not be.
    pub findings: Vec<Finding>,
}

/// Compares the bucket with the rows: every object that a row names must be there, and every object that is
/// older than `age` must be named by a row or wait for the janitor.
///
/// All keys are held in memory, about 150 bytes each: a million objects take 150 MB.
pub async fn objects(pool: &PgPool, storage: &Storage, age: Duration) -> anyhow::Result<Compared> {
    objects_in_pages(pool, storage, age, 1000).await
}

/// The same, with so many objects a page.
pub async fn objects_in_pages(
    pool: &PgPool,
    storage: &Storage,
    age: Duration,
    most: i32,
) -> anyhow::Result<Compared> {
    let mut present = HashSet::new();
    let mut unknown = Vec::new();
    let mut from = None;
    loop {
        let page = storage.page("", from, most).await?;
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
    // Since the bucket was listed, what was missing may have come or lost its row, and what was unknown may
    // have been deleted.
    for key in unknown {
        if !is_gone(storage, &key).await? {
            findings.push(Finding::UnknownObject { key });
        }
    }
    for key in absent(pool, &present).await? {
        let named = storage::named(&mut *pool.acquire().await?, std::slice::from_ref(&key)).await?;
        if !named.is_empty() && is_gone(storage, &key).await? {
            findings.push(Finding::MissingObject { key });
        }
    }
    Ok(Compared { objects: present.len(), findings })
}

async fn is_gone(storage: &Storage, key: &str) -> Result<bool, StorageError> {
    match storage.open(key, None).await {
        Ok(_) => Ok(false),
        Err(StorageError::Missing(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The keys that rows name and that are not among `present`.
async fn absent(pool: &PgPool, present: &HashSet<String>) -> sqlx::Result<Vec<String>> {
    let mut absent = Vec::new();
    let mut after = Uuid::nil();
    loop {
        let rows = sqlx::query!(
            r#"select id as "id!", object_key as "object_key!", thumbnail_key as "thumbnail_key!" from (
                   (select id, object_key, thumbnail_key from images where id > $1 order by id limit $2)
                   union all
                   (select id, object_key, thumbnail_key from results where id > $1 order by id limit $2)
               ) named order by id limit $2"#,
            after,
            ROWS,
        )
        .fetch_all(pool)
        .await?;
        let Some(last) = rows.last() else { return Ok(absent) };
        after = last.id;
        let keys = rows.into_iter().flat_map(|row| [row.object_key, row.thumbnail_key]);
        absent.extend(keys.filter(|key| !present.contains(key)));
    }
}
