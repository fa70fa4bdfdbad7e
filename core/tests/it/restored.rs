//! What an older backup brings back.

use retouch_core::db::MIGRATOR;
use retouch_core::restored::{BroughtBack, brought_back};
use retouch_core::{accounts, images};
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

/// Copies the accounts and the images into another database, which becomes the lost one.
async fn copy(pool: &PgPool, lost: &PgPool) {
    for table in ["users", "images"] {
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
    assert_eq!(brought_back(&pool, &lost).await.unwrap(), BroughtBack::default());

    images::delete(&lost, ada, deleted).await.unwrap().unwrap();
    accounts::delete(&lost, bob, &[1; 32]).await.unwrap().unwrap();
    sqlx::query("update reachability set seen_at = now()").execute(&lost).await.unwrap();
    // Uploaded after the restore.
    let new = image(&pool, None, ada, b"new").await;
    let found = brought_back(&pool, &lost).await.unwrap();
    let expected =
        BroughtBack { accounts: vec![bob], images: vec![(ada, deleted)], results: vec![] };
    assert_eq!(found, expected);
    assert_ne!(kept, new);
    lost.close().await;
    let name: String = sqlx::query_scalar("select 'lost_' || md5(current_database())")
        .fetch_one(&pool)
        .await
        .unwrap();
    sqlx::query(AssertSqlSafe(format!("drop database \"{name}\""))).execute(&pool).await.unwrap();
}
