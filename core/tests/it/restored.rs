//! What an older backup brings back.

use retouch_core::api_keys::{self, NewApiKey};
use retouch_core::db::{self, MIGRATOR};
use retouch_core::restored::{BroughtBack, brought_back};
use retouch_core::webhooks::{self, Change, DeliveryState, EventType, NewWebhook};
use retouch_core::{ApiKeyId, UserId, WebhookId, accounts, images};
use retouch_standins::testing::{image, user};
use sqlx::{AssertSqlSafe, PgPool};

/// Opens another database on the same server.
async fn other_database(pool: &PgPool) -> PgPool {
    let name: String = sqlx::query_scalar("select 'lost_' || md5(current_database())")
        .fetch_one(pool)
        .await
        .unwrap();
    for statement in
        [format!("drop database if exists \"{name}\""), format!("create database \"{name}\"")]
    {
        sqlx::query(AssertSqlSafe(statement)).execute(pool).await.unwrap();
    }
    let lost =
        PgPool::connect_with((*pool.connect_options()).clone().database(&name)).await.unwrap();
    MIGRATOR.run(&lost).await.unwrap();
    lost
}

/// Copies the accounts and what they have into another database, which becomes the lost one.
async fn copy(pool: &PgPool, lost: &PgPool) {
    for table in ["users", "images", "api_keys", "webhooks"] {
        let rows: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(format!("select to_json(t)::text from {table} t")))
                .fetch_all(pool)
                .await
                .unwrap();
        let columns: String = sqlx::query_scalar(
            "select string_agg(quote_ident(column_name), ', ') from information_schema.columns
             where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER' and column_name <> 'credits'",
        )
        .bind(table)
        .fetch_one(pool)
        .await
        .unwrap();
        for row in rows {
            let insert = format!(
                "insert into {table} ({columns}) select {columns} from json_populate_record(null::{table}, $1::json)"
            );
            sqlx::query(AssertSqlSafe(insert)).bind(row).execute(lost).await.unwrap();
        }
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn what_people_had_deleted_since_the_backup_is_found(pool: PgPool) {
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    let kept = image(&pool, None, ada, b"kept").await;
    let deleted = image(&pool, None, ada, b"deleted").await;
    image(&pool, None, bob, b"of a deleted account").await;
    let lost = other_database(&pool).await;
    copy(&pool, &lost).await;
    // A visitor's image that has expired since the backup.
    let expired = image(&pool, None, bob, b"of a visitor").await;
    sqlx::query("update images set owner_id = null, visitor = 'somebody', expires_at = now(), created_at = now() - interval '1 hour' where id = $1")
        .bind(expired.uuid())
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("update reachability set seen_at = now()").execute(&lost).await.unwrap();
    assert_eq!(brought_back(&pool, &lost).await.unwrap(), BroughtBack::default());

    images::delete(&lost, ada, deleted).await.unwrap().unwrap();
    accounts::delete(&lost, bob, &[1; 32]).await.unwrap().unwrap();
    sqlx::query("update reachability set seen_at = now()").execute(&lost).await.unwrap();
    // Uploaded after the restore.
    let new = image(&pool, None, ada, b"new").await;
    let found = brought_back(&pool, &lost).await.unwrap();
    let expected =
        BroughtBack { accounts: vec![bob], images: vec![(ada, deleted)], ..BroughtBack::default() };
    assert_eq!(found, expected);
    assert_ne!(kept, new);
    drop_database(&pool, lost).await;
}

async fn drop_database(pool: &PgPool, lost: PgPool) {
    lost.close().await;
    let name: String = sqlx::query_scalar("select 'lost_' || md5(current_database())")
        .fetch_one(pool)
        .await
        .unwrap();
    sqlx::query(AssertSqlSafe(format!("drop database \"{name}\""))).execute(pool).await.unwrap();
}

async fn api_key(pool: &PgPool, owner: UserId, seed: u8) -> ApiKeyId {
    let new = NewApiKey { name: "program", shown: "rt_shown", sha256: &[seed; 32] };
    api_keys::create(pool, owner, &new).await.unwrap().id
}

async fn webhook(pool: &PgPool, owner: UserId) -> WebhookId {
    let new = NewWebhook {
        url: "https://example.test/",
        description: "",
        events: &[EventType::JobDone],
        credits_below: 10,
        secret: &[1; 32],
    };
    webhooks::create(pool, owner, &new).await.unwrap().id
}

/// Returns the URL, the secrets and whether it is enabled.
async fn webhook_row(pool: &PgPool, id: WebhookId) -> (String, Vec<u8>, Option<Vec<u8>>, bool) {
    sqlx::query_as("select url, secret, old_secret, is_enabled from webhooks where id = $1")
        .bind(id.uuid())
        .fetch_one(pool)
        .await
        .unwrap()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn revoked_keys_and_changed_webhooks_are_found(pool: PgPool) {
    let (ada, bob) = (user(&pool, "ada", 0).await, user(&pool, "bob", 0).await);
    let revoked = api_key(&pool, ada, 1).await;
    api_key(&pool, ada, 2).await;
    api_key(&pool, bob, 3).await;
    let [deleted, rotated, paused, off, _same] = [
        webhook(&pool, ada).await,
        webhook(&pool, ada).await,
        webhook(&pool, ada).await,
        webhook(&pool, ada).await,
        webhook(&pool, ada).await,
    ];
    webhook(&pool, bob).await;
    let lost = other_database(&pool).await;
    copy(&pool, &lost).await;
    sqlx::query("update reachability set seen_at = now()").execute(&lost).await.unwrap();
    assert_eq!(brought_back(&pool, &lost).await.unwrap(), BroughtBack::default());
    let identity = db::identity(&pool).await.unwrap();
    assert_eq!(identity, db::identity(&pool).await.unwrap());
    assert_ne!(identity, db::identity(&lost).await.unwrap());

    api_keys::revoke(&lost, ada, revoked).await.unwrap();
    webhooks::delete(&lost, ada, deleted).await.unwrap();
    webhooks::rotate(&lost, ada, rotated, &[2; 32]).await.unwrap();
    let change = Change { is_enabled: Some(false), ..Change::default() };
    webhooks::change(&lost, ada, paused, &change).await.unwrap();
    let change = Change {
        url: Some("https://elsewhere.test/"),
        is_enabled: Some(false),
        ..Change::default()
    };
    webhooks::change(&lost, ada, off, &change).await.unwrap();
    accounts::delete(&lost, bob, &[1; 32]).await.unwrap().unwrap();
    // Created after the restore.
    api_key(&pool, ada, 4).await;
    let found = brought_back(&pool, &lost).await.unwrap();
    assert_eq!(found.accounts, [bob]);
    assert_eq!(found.api_keys, [(ada, revoked)]);
    assert_eq!(found.webhooks, [(ada, deleted)]);
    let changed: Vec<_> = found.changed_webhooks.iter().map(|webhook| webhook.id).collect();
    assert_eq!(changed, [rotated, paused, off]);
    assert!(!format!("{found:?}").contains("secret"));

    webhooks::send_test(&pool, ada, off).await.unwrap();
    let failing = "update webhooks set failing_since = now(), is_slow = true";
    sqlx::query(failing).execute(&pool).await.unwrap();
    for settings in &found.changed_webhooks {
        webhooks::copy(&pool, settings).await.unwrap();
    }
    for (id, fails) in [(rotated, true), (paused, true), (off, false)] {
        assert_eq!(webhook_row(&pool, id).await, webhook_row(&lost, id).await);
        let found: (bool, bool) =
            sqlx::query_as("select failing_since is not null, is_slow from webhooks where id = $1")
                .bind(id.uuid())
                .fetch_one(&pool)
                .await
                .unwrap();
        assert_eq!(found, (fails, fails), "another address has not failed");
    }
    let sent = webhooks::deliveries(&pool, off, None, 10).await.unwrap();
    assert_eq!(sent[0].state, DeliveryState::Failed);
    drop_database(&pool, lost).await;
}
