//! What is in the bucket, held against the rows that name it.
//!
//! An object that no row names and that nobody has announced will never be named: a picture's row is only
//! written while its announcement stands, and a result's only while its job runs. So it does not matter what
//! happens between finding an orphan and deleting it.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Operation, Storage, StorageError, failed};

/// The folders that our keys begin with.
pub(crate) const FOLDERS: [&str; 2] = ["images/", "results/"];

/// An object in the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// When it was written, by the store's clock.
    pub written_at: DateTime<Utc>,
}

/// Some objects of the bucket.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Listed>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

impl Storage {
    /// At most `most` objects (1,000 at the utmost) whose keys begin with `prefix`, from where an earlier
    /// page ended.
    pub async fn page(
        &self,
        prefix: &str,
        from: Option<String>,
        most: i32,
    ) -> Result<Page, StorageError> {
        let listed = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(prefix)
            .set_continuation_token(from)
            .max_keys(most)
            .send()
            .await
            .map_err(failed(Operation::List))?;
        let objects = listed.contents().iter().filter_map(|object| {
            let written = object.last_modified()?;
            Some(Listed {
                key: object.key()?.to_owned(),
                written_at: DateTime::from_timestamp(written.secs(), written.subsec_nanos())?,
            })
        });
        Ok(Page {
            objects: objects.collect(),
            next: listed.next_continuation_token().map(str::to_owned),
        })
    }
}

/// The picture or the job in whose folder a key lies; `None` for a key that we never made.
fn owner_of(key: &str) -> Option<Uuid> {
    let (folder, rest) = key.split_at_checked(key.find('/')? + 1)?;
    let (id, _) = rest.split_once('/')?;
    FOLDERS.contains(&folder).then(|| id.parse().ok())?
}

/// Those of `keys` that a picture or a result names.
pub(crate) async fn named(conn: &mut PgConnection, keys: &[String]) -> sqlx::Result<Vec<String>> {
    let owners: Vec<Uuid> = keys.iter().filter_map(|key| owner_of(key)).collect();
    sqlx::query_scalar!(
        r#"select key as "key!" from (
               select unnest(array[object_key, thumbnail_key]) as key from images where id = any($1)
               union all
               select unnest(array[object_key, thumbnail_key]) from results where job_id = any($1)
           ) of_rows where key = any($2)"#,
        &owners,
        keys,
    )
    .fetch_all(conn)
    .await
}

/// Those of `keys` that are ours and that nothing names, announces, dooms or is about to name.
pub(crate) async fn orphans(pool: &PgPool, keys: &[String]) -> sqlx::Result<Vec<String>> {
    let (keys, owners): (Vec<String>, Vec<Uuid>) =
        keys.iter().filter_map(|key| Some((key.clone(), owner_of(key)?))).unzip();
    // One statement sees one moment: a picture that is being recorded is either announced or there.
    sqlx::query_scalar!(
        r#"select key as "key!" from unnest($1::text[], $2::uuid[]) as candidate (key, owner)
           where not exists (select from doomed_objects d where d.object_key = key)
             and not exists (select from images i where i.id = owner and key in (i.object_key, i.thumbnail_key))
             and not exists (select from results r where r.job_id = owner and key in (r.object_key, r.thumbnail_key))
             and not exists (select from jobs j where j.id = owner and j.state in ('queued', 'running'))"#,
        &keys,
        &owners,
    )
    .fetch_all(pool)
    .await
}

/// Those of `keys` that nothing names, announces, dooms or is about to name, whether we made them or not.
pub(crate) async fn unknown(pool: &PgPool, keys: &[String]) -> sqlx::Result<Vec<String>> {
    let mut unknown = orphans(pool, keys).await?;
    unknown.extend(keys.iter().filter(|key| owner_of(key).is_none()).cloned());
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use super::super::{image_key, image_thumbnail_key, result_key, result_thumbnail_key};
    use super::*;
    use crate::{ImageId, JobId};

    #[test]
    fn every_key_of_ours_says_whose_it_is_and_no_other_does() {
        let (image, job) = (ImageId::new(), JobId::new());
        assert_eq!(owner_of(&image_key(image)), Some(image.uuid()));
        assert_eq!(owner_of(&image_thumbnail_key(image)), Some(image.uuid()));
        assert_eq!(owner_of(&result_key(job, 1)), Some(job.uuid()));
        assert_eq!(owner_of(&result_thumbnail_key(job, 3)), Some(job.uuid()));
        for key in ["", "images", "images/", "images/x/original", "backup/images/x", "é/x/y"] {
            assert_eq!(owner_of(key), None, "{key}");
        }
        assert_eq!(owner_of(&format!("backup/{}/original", image.uuid())), None);
    }
}
