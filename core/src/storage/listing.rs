//! Lists the bucket, and finds the objects that no row refers to.
//!
//! An orphan stays an orphan: an uploaded image's row is written only while its keys are announced, a result's row
//! only while its job runs, and the row of an image that shares a result's objects only while the result's row is
//! there. So nothing that happens between finding an orphan and deleting it matters.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::error::{Operation, StorageError, failed};
use super::{OWNER_KEY, Storage};

/// The prefixes of our keys.
pub(crate) const FOLDERS: [&str; 2] = ["images/", "results/"];

/// An object in the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    pub key: String,
    /// The time it was written, by the store's clock.
    pub written_at: DateTime<Utc>,
}

#[derive(Clone, Debug)]
pub struct Page {
    pub objects: Vec<ListedObject>,
    /// The continuation token of the next page; `None` after the last.
    pub next: Option<String>,
}

impl Storage {
    /// Lists up to `limit` objects (at most 1,000) whose keys begin with `prefix`, starting at `from`, the previous
    /// page's continuation token.
    pub async fn page(
        &self,
        prefix: &str,
        from: Option<String>,
        limit: i32,
    ) -> Result<Page, StorageError> {
        let listed = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(prefix)
            .set_continuation_token(from)
            .max_keys(limit)
            .send()
            .await
            .map_err(failed(Operation::List))?;
        let objects = listed.contents().iter().filter_map(|object| {
            let written = object.last_modified()?;
            Some(ListedObject {
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

/// Returns the id of the image or job in `key`; `None` if the key is not ours.
pub(super) fn id_in(key: &str) -> Option<Uuid> {
    let (folder, rest) = key.split_at_checked(key.find('/')? + 1)?;
    let (id, _) = rest.split_once('/')?;
    FOLDERS.contains(&folder).then(|| id.parse().ok())?
}

/// Returns the `keys` that an image or result row refers to.
pub(crate) async fn referenced(
    conn: &mut PgConnection,
    keys: &[String],
) -> sqlx::Result<Vec<String>> {
    let ids: Vec<Uuid> = keys.iter().filter_map(|key| id_in(key)).collect();
    sqlx::query_scalar!(
        r#"select key as "key!" from (
               select unnest(array[object_key, thumbnail_key, preview_key]) as key from images where id = any($1)
               union all
               select unnest(array[object_key, thumbnail_key, preview_key]) from images where objects_of_job = any($1)
               union all
               select unnest(array[object_key, thumbnail_key, preview_key]) from results where job_id = any($1)
           ) of_rows where key = any($2)"#,
        &ids,
        keys,
    )
    .fetch_all(conn)
    .await
}

/// Returns the orphans among `keys`: our keys without a row that are not announced or doomed, unless an active
/// job can still record them.
pub(crate) async fn orphans(pool: &PgPool, keys: &[String]) -> sqlx::Result<Vec<String>> {
    let (keys, ids): (Vec<String>, Vec<Uuid>) =
        keys.iter().filter_map(|key| Some((key.clone(), id_in(key)?))).unzip();
    // One statement, one snapshot: an image that is being recorded is either announced or has its row.
    sqlx::query_scalar!(
        r#"select key as "key!" from unnest($1::text[], $2::uuid[]) as candidate (key, owner)
           where not exists (select from doomed_objects d where d.object_key = key)
             and not exists (select from images i where i.id = owner
                             and key in (i.object_key, i.thumbnail_key, i.preview_key))
             and not exists (select from images i where i.objects_of_job = owner
                             and key in (i.object_key, i.thumbnail_key, i.preview_key))
             and not exists (select from results r where r.job_id = owner
                             and key in (r.object_key, r.thumbnail_key, r.preview_key))
             and not exists (select from jobs j where j.id = owner and j.state in ('queued', 'running'))"#,
        &keys,
        &ids,
    )
    .fetch_all(pool)
    .await
}

/// Like [`orphans`], including keys that are not ours.
pub(crate) async fn unknown(pool: &PgPool, keys: &[String]) -> sqlx::Result<Vec<String>> {
    let mut unknown = orphans(pool, keys).await?;
    unknown.extend(keys.iter().filter(|key| id_in(key).is_none() && *key != OWNER_KEY).cloned());
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use super::super::{
        image_key, image_preview_key, image_thumbnail_key, result_key, result_preview_key,
        result_thumbnail_key,
    };
    use super::*;
    use crate::{ImageId, JobId};

    #[test]
    fn ids_are_found_in_our_keys_and_in_no_others() {
        let (image, job) = (ImageId::new(), JobId::new());
        assert_eq!(id_in(&image_key(image)), Some(image.uuid()));
        assert_eq!(id_in(&image_thumbnail_key(image)), Some(image.uuid()));
        assert_eq!(id_in(&image_preview_key(image)), Some(image.uuid()));
        assert_eq!(id_in(&result_preview_key(job, 2)), Some(job.uuid()));
        assert_eq!(id_in(&result_key(job, 1)), Some(job.uuid()));
        assert_eq!(id_in(&result_thumbnail_key(job, 3)), Some(job.uuid()));
        for key in ["", "images", "images/", "images/x/original", "backup/images/x", "é/x/y"] {
            assert_eq!(id_in(key), None, "{key}");
        }
        assert_eq!(id_in(&format!("backup/{}/original", image.uuid())), None);
    }
}
