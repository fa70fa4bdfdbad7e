//! The *owner* of a bucket: the database whose id is in an object of the bucket.
//!
//! Without an owner, a process with an empty database, or with the settings of another installation, would take every picture in
//! the bucket for an orphan.

use sqlx::PgPool;
use uuid::Uuid;

use super::listing::{FOLDERS, id_in, orphans};
use super::{OWNER_KEY, Storage, StorageError};

/// How many objects of each folder are looked up in the database before it becomes the owner of a bucket without one.
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

/// Checks that no other database owns the bucket.
///
/// # Errors
/// If another one does, or if the store or the database fails.
pub async fn check_owner(pool: &PgPool, storage: &Storage) -> Result<(), OwnerError> {
    let (id, owner) = (database_id(pool).await?, owner(storage).await?);
    if owner.is_none_or(|owner| owner == id.to_string()) { Ok(()) } else { Err(foreign(storage)) }
}

/// Makes this database the owner of the bucket: if it is already, if the bucket is empty, or if the bucket has no owner and
/// pictures that this database knows.
///
/// # Errors
/// If the bucket belongs to another database, or if the store or the database fails.
pub async fn claim_bucket(pool: &PgPool, storage: &Storage) -> Result<(), OwnerError> {
    let id = database_id(pool).await?.to_string();
    let owner = owner(storage).await?;
    if owner.as_ref() == Some(&id) {
        return Ok(());
    }
    let mut keys = Vec::new();
    for folder in FOLDERS {
        let page = storage.page(folder, None, SAMPLE).await?;
        keys.extend(page.objects.into_iter().map(|object| object.key));
    }
    keys.retain(|key| id_in(key).is_some());
    let knows_some = orphans(pool, &keys).await?.len() < keys.len();
    if !keys.is_empty() && (owner.is_some() || !knows_some) {
        return Err(foreign(storage));
    }
    Ok(storage.put(OWNER_KEY, "text/plain", id.into()).await?)
}

async fn database_id(pool: &PgPool) -> sqlx::Result<Uuid> {
    sqlx::query_scalar!("select id from installation").fetch_one(pool).await
}

async fn owner(storage: &Storage) -> Result<Option<String>, StorageError> {
    match storage.get(OWNER_KEY).await {
        Ok(id) => Ok(Some(String::from_utf8_lossy(&id).into_owned())),
        Err(StorageError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn foreign(storage: &Storage) -> OwnerError {
    OwnerError::Foreign(storage.bucket.clone())
}
