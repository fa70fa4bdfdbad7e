//! The *owner* of a bucket: the database whose id is in an object of the bucket. A database owns one bucket, because it gets
//! another id whenever it claims one.
//!
//! Without an owner, a process with an empty database, or with the settings of another installation, would treat every
//! picture in the bucket as an orphan.

use sqlx::PgPool;
use uuid::Uuid;

use super::listing::{FOLDERS, id_in, orphans};
use super::{OWNER_KEY, Storage, StorageError};
use crate::db;

/// How many objects of each folder are looked up in the database before it claims the bucket.
const SAMPLE: i32 = 1000;

/// Why a process must not use a bucket.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// The database does not own it.
    #[error("the bucket {bucket:?} {reason}")]
    Foreign {
        bucket: String,
        /// The rest of the sentence.
        reason: Reason,
    },
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("reading the id of the database: {0}")]
    Database(#[from] sqlx::Error),
}

/// Why a database does not own a bucket, or cannot claim it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Another database owns it, or this database owned it before it was restored or set back.
    #[error(
        "belongs to another database: check S3_BUCKET and DATABASE_URL; if you have restored or set back the database, see docs/backup.md"
    )]
    OfAnother,
    /// No database owns it.
    #[error("belongs to no database: check S3_BUCKET; `retouch-api migrate` claims a new bucket")]
    OfNone,
    /// It has pictures, and the database knows none of them.
    #[error(
        "has only pictures of another database: check S3_BUCKET and DATABASE_URL; after the loss of a database, restore a backup"
    )]
    Unknown,
    /// It has no pictures, but the database has some.
    #[error(
        "is empty, but the database has pictures: check S3_BUCKET; if they are lost, `retouch-api admin objects claim` claims the bucket"
    )]
    Empty,
}

/// The buckets that a database may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A bucket without an owner: one that has pictures of this database, or, for a database without pictures, an empty one.
    New,
    /// As [`Self::New`], or an empty bucket that the operator is about to fill with the pictures of the database.
    ToFill,
    /// Any bucket that is empty or has pictures of this database, because an operator says so.
    Any,
    /// Any bucket, because an operator says so. The pictures that the database does not know will be deleted as
    /// orphans.
    Discarding,
}

/// The contents of a bucket that a database claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The number of objects that were looked up, at most 1,000 of each folder.
    pub looked_up: usize,
    /// How many of them belong to pictures that the database knows.
    pub known: usize,
}

/// Checks that the store answers within two seconds, without a retry, and that this database owns the bucket.
///
/// # Errors
/// If it does not, or if the store fails. If the store answers and the database does not: [`OwnerError::Database`].
pub async fn check_owner(pool: &PgPool, storage: &Storage) -> Result<(), OwnerError> {
    let owner = storage.owner().await?;
    let id = db::within(database_id(pool)).await?;
    match owner {
        Some(owner) if owner == id.to_string() => Ok(()),
        Some(_) => Err(foreign(storage, Reason::OfAnother)),
        None => Err(foreign(storage, Reason::OfNone)),
    }
}

/// Makes this database the owner of the bucket, if `claim` allows it. If an operator claims a bucket that it already
/// owns, it gets a new id, so copies of the bucket become foreign.
///
/// # Errors
/// If it may not claim the bucket, or if the store or the database fails.
pub async fn claim_bucket(
    pool: &PgPool,
    storage: &Storage,
    claim: Claim,
) -> Result<Claimed, OwnerError> {
    let id = database_id(pool).await?;
    let owner = storage.owner().await?;
    let mut keys = Vec::new();
    for folder in FOLDERS {
        let page = storage.page(folder, None, SAMPLE).await?;
        keys.extend(page.objects.into_iter().map(|object| object.key));
    }
    keys.retain(|key| id_in(key).is_some());
    let known = keys.len() - orphans(pool, &keys).await?.len();
    let found = Claimed { looked_up: keys.len(), known };
    let is_ours = owner == Some(id.to_string());
    let is_ordered = matches!(claim, Claim::Any | Claim::Discarding);
    if is_ours && !is_ordered {
        return Ok(found);
    }
    let reason = if is_ours {
        None
    } else if owner.is_some() && !is_ordered {
        Some(Reason::OfAnother)
    } else if keys.is_empty() {
        (claim == Claim::New && has_pictures(pool).await?).then_some(Reason::Empty)
    } else {
        (known == 0 && claim != Claim::Discarding).then_some(Reason::Unknown)
    };
    if let Some(reason) = reason {
        return Err(foreign(storage, reason));
    }
    let mut tx = db::begin(pool).await?;
    // Of processes that claim concurrently, the last one writes the last id. Writes the bucket first: if the store refuses,
    // the database keeps its bucket.
    let id = sqlx::query_scalar!(
        r#"select gen_random_uuid() as "id!" from (select id from installation for update) locked"#
    );
    let id = id.fetch_one(&mut *tx).await?;
    storage.put(OWNER_KEY, "text/plain", id.to_string().into()).await?;
    sqlx::query!("update installation set id = $1", id).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(found)
}

async fn database_id(pool: &PgPool) -> sqlx::Result<Uuid> {
    sqlx::query_scalar!("select id from installation").fetch_one(pool).await
}

async fn has_pictures(pool: &PgPool) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from images) or exists (select from results) as "has_pictures!""#
    )
    .fetch_one(pool)
    .await
}

fn foreign(storage: &Storage, reason: Reason) -> OwnerError {
    OwnerError::Foreign { bucket: storage.bucket.clone(), reason }
}
