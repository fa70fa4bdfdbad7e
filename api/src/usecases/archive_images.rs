//! Archives of images and results: a ZIP that is streamed one object after the other, so that it needs memory for only
//! one chunk.

mod names;
mod zip;

use chrono::{DateTime, Utc};
use retouch_core::db::{DatabaseError, PgPool};
use retouch_core::images::{self, result_label};
use retouch_core::{ImageId, UserId, results};
use serde::Deserialize;
use utoipa::ToSchema;

use self::names::Names;
pub use self::zip::zip;

/// What an archive contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ArchiveContents)]
pub enum Include {
    /// The images.
    Originals,
    /// Their results.
    Results,
    /// Both.
    All,
}

/// A file of an archive.
#[derive(Clone)]
pub struct Entry {
    /// Its unique name.
    name: String,
    /// The key of the object.
    key: String,
    size_bytes: i64,
    created_at: DateTime<Utc>,
}

/// Returns the files of the images among `ids` that `owner` owns; `None` if there are none.
pub async fn entries(
    pool: &PgPool,
    owner: UserId,
    ids: &[ImageId],
    include: Include,
) -> Result<Option<Vec<Entry>>, DatabaseError> {
    let images = images::owned_many(pool, owner, ids).await?;
    if images.is_empty() {
        return Ok(None);
    }
    let ids: Vec<_> = images.iter().map(|image| image.id).collect();
    let results = if include == Include::Originals {
        Vec::new()
    } else {
        results::of_images(pool, &ids).await?
    };
    let (mut entries, mut names) = (Vec::new(), Names::default());
    for image in images {
        // Taken even if the image itself is left out, so that its results are recognized.
        let name = names.of_image(image.name.as_deref(), &image.content_type, image.created_at);
        for result in results.iter().filter(|result| result.image == image.id) {
            entries.push(Entry {
                name: names.of_result(&name, result_label(result.tool, result.factor)),
                key: result.object_key.clone(),
                size_bytes: result.size_bytes,
                created_at: result.created_at,
            });
        }
        if include != Include::Results {
            let (key, size_bytes) = (image.object_key, image.size_bytes);
            entries.push(Entry { name, key, size_bytes, created_at: image.created_at });
        }
    }
    Ok(Some(entries))
}
