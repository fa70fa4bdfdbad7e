//! Which database a bucket belongs to. The database has an id, and the bucket has a *mark*: an object with the same id.
//!
//! Without it, a process with an empty database, or with the settings of another installation, would take every picture in
//! the bucket for an orphan.

use sqlx::PgPool;
use uuid::Uuid;

use super::listing::{FOLDERS, id_in, orphans};
use super::{MARK, Storage, StorageError};

/// How many objects of each folder are looked up in the database before a bucket without a mark gets one.
const SAMPLE: i32 = 1000;

/// Why a bucket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// It belongs to another database.
    #[error(
        "the bucket {0:?} has the pictures of another database: check S3_BUCKET and DATABASE_URL; after the loss of \
         a database, restore a backup"
    )]
    Foreign(String),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The database failed.
    #[error("reading the id of the database: {0}")]
    Database(#[from] sqlx::Error),
}

/// Checks that the bucket is not marked as another database's.
///
/// # Errors
/// If it is, or if the store or the database fails.
pub async fn check_owner(pool: &PgPool, storage: &Storage) -> Result<(), OwnerError> {
    let (id, mark) = (database_id(pool).await?, mark(storage).await?);
    if mark.is_none_or(|mark| mark == id.to_string()) { Ok(()) } else { Err(foreign(storage)) }
}

/// Checks that the bucket belongs to this database. One that is empty, or has no mark and pictures that this database
/// knows, is marked.
///
/// # Errors
/// If it belongs to another database, or if the store or the database fails.
pub async fn claim_bucket(pool: &PgPool, storage: &Storage) -> Result<(), OwnerError> {
    let id = database_id(pool).await?.to_string();
    let mark = mark(storage).await?;
    if mark.as_ref() == Some(&id) {
        return Ok(());
    }
    let mut keys = Vec::new();
    for folder in FOLDERS {
        let page = storage.page(folder, None, SAMPLE).await?;
        keys.extend(page.objects.into_iter().map(|object| object.key));
    }
    keys.retain(|key| id_in(key).is_some());
    let knows_some = orphans(pool, &keys).await?.len() < keys.len();
    if !keys.is_empty() && (mark.is_some() || !knows_some) {
        return Err(foreign(storage));
    }
    Ok(storage.put(MARK, "text/plain", id.into()).await?)
}

async fn database_id(pool: &PgPool) -> sqlx::Result<Uuid> {
    sqlx::query_scalar!("select id from installation").fetch_one(pool).await
}

async fn mark(storage: &Storage) -> Result<Option<String>, StorageError> {
    match storage.get(MARK).await {
        Ok(mark) => Ok(Some(String::from_utf8_lossy(&mark).into_owned())),
        Err(StorageError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn foreign(storage: &Storage) -> OwnerError {
    OwnerError::Foreign(storage.bucket.clone())
}
