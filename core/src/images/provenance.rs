//! The provenance of uploads. The marks of an upload must outlive the removal of its metadata, so that its results can
//! carry them.

use sqlx::{PgConnection, PgPool};

use crate::ImageId;

/// The provenance of an upload, read before its metadata was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Its C2PA manifests, archived as an ingredient; `None` if it had none, or a manifest that cannot be kept.
    pub ingredient: Option<Vec<u8>>,
    /// The URI of its IPTC digital source type.
    pub source: Option<String>,
}

/// Records the provenance of an image in the transaction that inserts it.
pub(super) async fn record(
    conn: &mut PgConnection,
    image: ImageId,
    provenance: &Provenance,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into image_provenance (image_id, ingredient, source) values ($1, $2, $3)",
        image.uuid(),
        provenance.ingredient.as_deref(),
        provenance.source.as_deref(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Returns the provenance of an image; `None` if the upload had no marks.
pub async fn provenance(pool: &PgPool, image: ImageId) -> sqlx::Result<Option<Provenance>> {
    sqlx::query_as!(
        Provenance,
        "select ingredient, source from image_provenance where image_id = $1",
        image.uuid(),
    )
    .fetch_optional(pool)
    .await
}
