//! Lists of a user's images, in pages: sorted, and searched by name.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::PgPool;

use super::Image;
use crate::{ImageId, ResultId, UserId};
use retouch_catalog::ToolName;

/// A place in a list of images sorted by upload time: right after the image with this time and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub created_at: DateTime<Utc>,
    pub id: ImageId,
}

impl Image {
    /// Returns the place after this image in a list that is sorted by time.
    pub const fn cursor(&self) -> Cursor {
        Cursor { created_at: self.created_at, id: self.id }
    }
}

/// The order of a list of images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ImageSort))]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// The latest upload first.
    #[default]
    Newest,
    /// The earliest upload first.
    Oldest,
    /// By name, ignoring case; images without one come last.
    Name,
    /// The largest file first.
    Largest,
}

impl Sort {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::Name => "name",
            Self::Largest => "largest",
        }
    }

    /// Returns the place after `image` in a list of this order.
    pub fn place_after(self, image: &Image) -> Place {
        match self {
            Self::Newest | Self::Oldest => Place::Time(image.cursor()),
            Self::Name => Place::Name(image.name.clone(), image.id),
            Self::Largest => Place::Size(image.size_bytes, image.id),
        }
    }
}

/// Which images to list, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// A part of the name, in any case; `None` for all images.
    pub search: Option<String>,
    pub sort: Sort,
}

/// A place in a sorted list: the last image before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a list sorted by time.
    Time(Cursor),
    /// In a list sorted by name.
    Name(Option<String>, ImageId),
    /// In a list sorted by size in bytes.
    Size(i64, ImageId),
}

/// Returns up to `limit` images of `owner` that do not expire, the newest first, from `before` on.
pub async fn list(
    pool: &PgPool,
    owner: UserId,
    before: Option<Cursor>,
    limit: i64,
) -> sqlx::Result<Vec<Image>> {
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.name, i.object_key, i.thumbnail_key,
                  i.preview_key, i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  i.made_from_tool as "made_from_tool: ToolName", i.made_from_result as "made_from_result: ResultId",
                  i.made_from_image as "made_from_image: ImageId",
                  -- `offset` keeps the planner from reading all runs of the tool.
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $2 offset 0)
                      as "free_remove_background_used!",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $3 offset 0)
                      as "free_upscale_used!"
           from images i
           where i.owner_id = $1 and i.expires_at is null
             and (i.created_at, i.id) < (coalesce($4, 'infinity'::timestamptz), $5)
           order by i.created_at desc, i.id desc limit $6"#,
        owner.uuid(),
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
        before.map(|before| before.created_at),
        before.map(|before| before.id.uuid()),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Returns up to `limit` images of `owner` that do not expire, as `listing` filters and sorts them, from `after` on.
pub async fn page(
    pool: &PgPool,
    owner: UserId,
    listing: &Listing,
    after: Option<&Place>,
    limit: i64,
) -> sqlx::Result<Vec<Image>> {
    let (mut time, mut name, mut size) = (None, None, None);
    let id = after.map(|after| match after {
        Place::Time(cursor) => {
            time = Some(cursor.created_at);
            cursor.id
        }
        Place::Name(of, id) => {
            name = of.as_deref();
            *id
        }
        Place::Size(bytes, id) => {
            size = Some(*bytes);
            *id
        }
    });
    if let Listing { search: None, sort: Sort::Newest } = listing {
        // The most frequent list, in the order of an index.
        let before = time.zip(id).map(|(created_at, id)| Cursor { created_at, id });
        return list(pool, owner, before, limit).await;
    }
    sqlx::query_as!(
        Image,
        r#"select i.id as "id: ImageId", i.owner_id as "owner: UserId", i.name, i.object_key, i.thumbnail_key,
                  i.preview_key, i.content_type, i.size_bytes, i.width, i.height, i.created_at,
                  i.made_from_tool as "made_from_tool: ToolName", i.made_from_result as "made_from_result: ResultId",
                  i.made_from_image as "made_from_image: ImageId",
                  -- `offset` keeps the planner from reading all runs of the tool.
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $2 offset 0)
                      as "free_remove_background_used!",
                  exists (select from free_runs f where f.image_id = i.id and f.tool = $3 offset 0)
                      as "free_upscale_used!"
           from images i join unnest(array(
               -- Reads only the index `images_listed`: rows of images are wide.
               select id from images
               where owner_id = $1 and expires_at is null
                 and ($4::text is null or strpos(lower(name), lower($4)) > 0)
                 and case
                     when $5::uuid is null then true
                     when $6 = 'newest' then (created_at, id) < ($7, $5)
                     when $6 = 'oldest' then (created_at, id) > ($7, $5)
                     when $6 = 'name' then
                         (name is null, coalesce(lower(name), ''), id) > ($8::text is null, coalesce(lower($8), ''), $5)
                     else (size_bytes, id) < ($9, $5)
                 end
               order by case when $6 = 'newest' then created_at end desc,
                        case when $6 = 'oldest' then created_at end,
                        case when $6 = 'name' then name is null end,
                        case when $6 = 'name' then lower(name) end,
                        case when $6 = 'largest' then size_bytes end desc,
                        case when $6 in ('oldest', 'name') then id end,
                        id desc
               limit $10
           )) with ordinality as listed (id, place) using (id)
           order by listed.place"#,
        owner.uuid(),
        ToolName::RemoveBackground.as_str(),
        ToolName::Upscale.as_str(),
        listing.search,
        id.map(ImageId::uuid),
        listing.sort.as_str(),
        time,
        name,
        size,
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Returns the number of images of `owner` in `listing`.
pub async fn count(pool: &PgPool, owner: UserId, listing: &Listing) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from images
           where owner_id = $1 and expires_at is null
             and ($2::text is null or strpos(lower(name), lower($2)) > 0)"#,
        owner.uuid(),
        listing.search,
    )
    .fetch_one(pool)
    .await
}
