//! The storage that an account uses, and its quota.

use sqlx::PgExecutor;

use crate::UserId;

/// What an account stores: images and results, including those that expire, and the Content Credentials of images.
/// Thumbnails do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub bytes: i64,
    pub pictures: i64,
}

/// How much an account may store. Results count, but only uploads are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum size in bytes; `None` for no limit.
    pub bytes: Option<i64>,
    /// Maximum number of pictures; `None` for no limit.
    pub pictures: Option<i64>,
}

impl Quota {
    pub const NONE: Self = Self { bytes: None, pictures: None };

    /// Returns true if an image of `size_bytes` fits.
    pub fn has_room(self, stored: Stored, size_bytes: i64) -> bool {
        self.bytes.is_none_or(|most| stored.bytes + size_bytes <= most)
            && self.pictures.is_none_or(|most| stored.pictures < most)
    }
}

pub async fn stored(executor: impl PgExecutor<'_>, owner: UserId) -> sqlx::Result<Stored> {
    sqlx::query_as!(
        Stored,
        // Both indexes have the size, so no row of them is read. Few images have provenance.
        r#"select coalesce(sum(size_bytes), 0)::bigint + coalesce((
                      select sum(octet_length(p.ingredient)) from images i join image_provenance p on p.image_id = i.id
                      where i.owner_id = $1
                  ), 0)::bigint as "bytes!",
                  count(*) as "pictures!"
           from (
               select size_bytes from images where owner_id = $1
               union all
               select size_bytes from results where owner_id = $1
           ) pictures"#,
        owner.uuid(),
    )
    .fetch_one(executor)
    .await
}
