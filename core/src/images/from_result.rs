//! Makes an image from a result, so that its owner can use it in other tools. Nothing is copied: both rows refer to the
//! same objects, which the janitor keeps as long as one of them exists.

use sqlx::PgPool;

use super::{ImageName, Quota, stored};
use crate::{ImageId, ResultId, UserId, db};
use retouch_catalog::ToolName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromResult {
    Made(ImageId),
    /// The owner had made it before.
    Existed(ImageId),
    NoResult,
    OverQuota,
    OwnerGone,
}

/// How long an image that is made from a result stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// Until its owner deletes it.
    ForGood,
    /// As long as the picture that the result was made from: for good, or for an hour if a program sent that picture
    /// for one run.
    LikeSource,
}

/// Makes an image from a result of `owner`, once. It counts as a picture of its own.
pub async fn from_result(
    pool: &PgPool,
    owner: UserId,
    result: ResultId,
    stay: Stay,
    quota: Quota,
) -> sqlx::Result<FromResult> {
    // Most repeats change nothing, so they need not wait for the owner's lock.
    let staying = sqlx::query_scalar!(
        r#"select i.id as "id: ImageId" from images i join users u on u.id = i.owner_id and u.deleted_at is null
           where i.made_from_result = $1 and i.owner_id = $2 and i.expires_at is null"#,
        result.uuid(),
        owner.uuid(),
    );
    if let Some(image) = staying.fetch_optional(pool).await? {
        return Ok(FromResult::Existed(image));
    }
    let mut tx = db::begin(pool).await?;
    // Lock the owner, as an upload does: repeats, other uploads and the deletion of the account wait for each other.
    let user = sqlx::query!(
        "select id from users where id = $1 and deleted_at is null for no key update",
        owner.uuid(),
    );
    if user.fetch_optional(&mut *tx).await?.is_none() {
        return Ok(FromResult::OwnerGone);
    }
    let existing = sqlx::query_scalar!(
        r#"update images set expires_at = case when expires_at is not null and not $3 then now() + interval '1 hour' end
           where made_from_result = $1 and owner_id = $2 returning id as "id: ImageId""#,
        result.uuid(),
        owner.uuid(),
        stay == Stay::ForGood,
    );
    if let Some(image) = existing.fetch_optional(&mut *tx).await? {
        tx.commit().await?;
        return Ok(FromResult::Existed(image));
    }
    // A deletion of the image or the result dooms the objects and locks these rows in the same order. Either it commits
    // first and there is no result, or it waits and then sees the new row.
    let source = sqlx::query!(
        r#"select i.id as "id: ImageId", i.name, i.expires_at is not null as "expires!" from images i join results r on r.image_id = i.id
           where r.id = $1 and r.owner_id = $2 and coalesce(i.expires_at > now(), true)
           for key share of i"#,
        result.uuid(),
        owner.uuid(),
    );
    let Some(source) = source.fetch_optional(&mut *tx).await? else {
        return Ok(FromResult::NoResult);
    };
    let made = sqlx::query!(
        r#"select tool as "tool: ToolName", factor, size_bytes from results where id = $1 for key share"#,
        result.uuid(),
    );
    let Some(made) = made.fetch_optional(&mut *tx).await? else {
        return Ok(FromResult::NoResult);
    };
    if quota != Quota::NONE && !quota.has_room(stored(&mut *tx, owner).await?, made.size_bytes) {
        return Ok(FromResult::OverQuota);
    }
    let name = source.name.as_deref().and_then(ImageName::of_file);
    let name = name.map(|name| String::from(name.of_result(made.tool, made.factor)));
    let id = ImageId::new();
    sqlx::query!(
        // Objects never change, so the key identifies the content.
        "insert into images (id, owner_id, object_key, thumbnail_key, preview_key, content_type, content_sha256,
                             size_bytes, width, height, name, made_from_tool, made_from_result, made_from_image,
                             objects_of_job, expires_at)
         select $1, owner_id, object_key, thumbnail_key, preview_key, 'image/png',
                sha256(convert_to(object_key, 'UTF8')), size_bytes, width, height, $3, tool, id, image_id, job_id,
                case when $4 then now() + interval '1 hour' end
         from results where id = $2",
        id.uuid(),
        result.uuid(),
        name,
        source.expires && stay == Stay::LikeSource,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(FromResult::Made(id))
}
