//! Finds what a restore has undone: accounts, images, results, API keys and webhooks that people had deleted since the
//! backup, and changes of webhooks. Compares with the database from before the restore.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use retouch_catalog::ToolName;
use sqlx::PgPool;

use crate::db::pages::Pages;
use crate::webhooks::{self, Settings};
use crate::{ApiKeyId, ImageId, ResultId, UserId, WebhookId};

/// Rows that one statement reads.
const ROWS: i64 = 10_000;

/// What people had deleted or changed. A visitor's pictures are left out: they expire within hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BroughtBack {
    pub accounts: Vec<UserId>,
    /// Images of other accounts, with their owners.
    pub images: Vec<(UserId, ImageId)>,
    /// Results of other images, with their owners and tools.
    pub results: Vec<(UserId, ToolName, ResultId)>,
    /// API keys of other accounts, with their owners.
    pub api_keys: Vec<(UserId, ApiKeyId)>,
    /// Webhooks of other accounts, with their owners.
    pub webhooks: Vec<(UserId, WebhookId)>,
    /// Webhooks that their owners had changed, as the lost database has them.
    pub changed_webhooks: Vec<Settings>,
}

/// Compares this database with the lost one. Rows from after the lost one was last in use are not in it, and count as new.
pub async fn brought_back(pool: &PgPool, lost: &PgPool) -> sqlx::Result<BroughtBack> {
    let until = sqlx::query_scalar!("select seen_at from reachability").fetch_one(lost).await?;
    let accounts = accounts(pool, lost).await?;
    let images = images(pool, lost, until, &accounts).await?;
    let results = results(pool, lost, until, &images, &accounts).await?;
    let api_keys = api_keys(pool, lost, until, &accounts).await?;
    let (webhooks, changed_webhooks) = webhooks(pool, lost, until, &accounts).await?;
    Ok(BroughtBack { accounts, images, results, api_keys, webhooks, changed_webhooks })
}

async fn accounts(pool: &PgPool, lost: &PgPool) -> sqlx::Result<Vec<UserId>> {
    let deleted = sqlx::query_scalar!("select id from users where deleted_at is not null")
        .fetch_all(lost)
        .await?;
    sqlx::query_scalar!(
        r#"select id as "id: UserId" from users where id = any($1) and deleted_at is null order by id"#,
        &deleted,
    )
    .fetch_all(pool)
    .await
}

async fn images(
    pool: &PgPool,
    lost: &PgPool,
    until: DateTime<Utc>,
    accounts: &[UserId],
) -> sqlx::Result<Vec<(UserId, ImageId)>> {
    let accounts: Vec<_> = accounts.iter().map(|account| account.uuid()).collect();
    let (mut pages, mut found) = (Pages::of("images", ROWS), Vec::new());
    while let Some((first, last)) = pages.next(pool).await? {
        let here = sqlx::query!(
            r#"select id as "id: ImageId", owner_id as "owner!: UserId" from images
               where id > $1 and id <= $2 and created_at <= $3 and owner_id is not null and owner_id <> all($4)
               order by id"#,
            first,
            last,
            until,
            &accounts,
        )
        .fetch_all(pool)
        .await?;
        let ids: Vec<_> = here.iter().map(|image| image.id.uuid()).collect();
        let kept = sqlx::query_scalar!(
            r#"select id as "id: ImageId" from images where id = any($1)"#,
            &ids
        )
        .fetch_all(lost)
        .await?;
        let kept: HashSet<_> = kept.into_iter().collect();
        let gone = here.into_iter().filter(|image| !kept.contains(&image.id));
        found.extend(gone.map(|image| (image.owner, image.id)));
    }
    Ok(found)
}

async fn results(
    pool: &PgPool,
    lost: &PgPool,
    until: DateTime<Utc>,
    images: &[(UserId, ImageId)],
    accounts: &[UserId],
) -> sqlx::Result<Vec<(UserId, ToolName, ResultId)>> {
    let images: Vec<_> = images.iter().map(|(_, image)| image.uuid()).collect();
    let accounts: Vec<_> = accounts.iter().map(|account| account.uuid()).collect();
    let (mut pages, mut found) = (Pages::of("results", ROWS), Vec::new());
    while let Some((first, last)) = pages.next(pool).await? {
        let here = sqlx::query!(
            r#"select id as "id: ResultId", owner_id as "owner!: UserId", tool as "tool: ToolName" from results
               where id > $1 and id <= $2 and created_at <= $3 and image_id <> all($4)
                 and owner_id is not null and owner_id <> all($5)
               order by id"#,
            first,
            last,
            until,
            &images,
            &accounts,
        )
        .fetch_all(pool)
        .await?;
        let ids: Vec<_> = here.iter().map(|result| result.id.uuid()).collect();
        let kept = sqlx::query_scalar!(
            r#"select id as "id: ResultId" from results where id = any($1)"#,
            &ids
        )
        .fetch_all(lost)
        .await?;
        let kept: HashSet<_> = kept.into_iter().collect();
        let gone = here.into_iter().filter(|result| !kept.contains(&result.id));
        found.extend(gone.map(|result| (result.owner, result.tool, result.id)));
    }
    Ok(found)
}

async fn api_keys(
    pool: &PgPool,
    lost: &PgPool,
    until: DateTime<Utc>,
    accounts: &[UserId],
) -> sqlx::Result<Vec<(UserId, ApiKeyId)>> {
    let kept = sqlx::query_scalar!("select id from api_keys").fetch_all(lost).await?;
    let accounts: Vec<_> = accounts.iter().map(|account| account.uuid()).collect();
    let gone = sqlx::query!(
        r#"select id as "id: ApiKeyId", owner_id as "owner: UserId" from api_keys
           where created_at <= $1 and id <> all($2) and owner_id <> all($3) order by id"#,
        until,
        &kept,
        &accounts,
    )
    .fetch_all(pool)
    .await?;
    Ok(gone.into_iter().map(|key| (key.owner, key.id)).collect())
}

async fn webhooks(
    pool: &PgPool,
    lost: &PgPool,
    until: DateTime<Utc>,
    accounts: &[UserId],
) -> sqlx::Result<(Vec<(UserId, WebhookId)>, Vec<Settings>)> {
    let kept = webhooks::settings::all(lost).await?.into_iter();
    let mut kept: HashMap<_, _> = kept.map(|webhook| (webhook.id, webhook)).collect();
    let (mut gone, mut changed) = (Vec::new(), Vec::new());
    for here in webhooks::settings::all(pool).await? {
        match kept.remove(&here.id) {
            _ if accounts.contains(&here.owner) => {}
            Some(kept) if kept == here => {}
            Some(kept) => changed.push(kept),
            None if here.created_at <= until => gone.push((here.owner, here.id)),
            None => {}
        }
    }
    Ok((gone, changed))
}
