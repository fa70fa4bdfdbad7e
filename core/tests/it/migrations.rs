//! Migrations that build indexes concurrently, outside of a transaction; and databases that are not ready.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use retouch_core::config::DatabaseConfig;
use retouch_core::db::{self, migrate_with};
use retouch_core::with_causes;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use tokio::net::{TcpListener, TcpStream};

const TABLE: &str = "create table gadgets (name text); insert into gadgets values ('a'), ('a');";

/// A table with two equal names, and a second migration.
async fn table_and(second: &str) -> Migrator {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0001_table.sql"), TABLE).unwrap();
    std::fs::write(folder.path().join("0002_index.sql"), second).unwrap();
    Migrator::new(folder.path()).await.unwrap()
}

async fn valid_indexes(pool: &PgPool) -> i64 {
    sqlx::query_scalar(
        "select count(*) from pg_index where indisvalid and indrelid = 'gadgets'::regclass",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

#[sqlx::test(migrations = false)]
async fn several_processes_can_build_an_index_concurrently(
    _: PgPoolOptions,
    database: PgConnectOptions,
) {
    let migrator = table_and(
        "-- no-transaction\ncreate index concurrently if not exists gadgets_by_name on gadgets (name);",
    )
    .await;
    let processes =
        try_join_all((0..4).map(|_| PgPoolOptions::new().connect_with(database.clone())))
            .await
            .unwrap();

    try_join_all(processes.iter().map(|pool| migrate_with(pool, &migrator))).await.unwrap();

    assert_eq!(valid_indexes(&processes[0]).await, 1);
}

#[sqlx::test(migrations = false)]
async fn a_database_without_migrations_is_not_ready(pool: PgPool) {
    assert!(db::ping(&pool).await.is_ok());
    let lacking = db::check(&pool).await.unwrap_err().to_string();
    assert!(lacking.contains("lacks"), "{lacking}");
    db::migrate(&pool).await.unwrap();
    db::check(&pool).await.unwrap();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_database_that_accepts_no_writes_is_not_ready(
    options: PgPoolOptions,
    database: PgConnectOptions,
) {
    let standby = database.options([("default_transaction_read_only", "on")]);
    let pool = options.connect_with(standby).await.unwrap();
    for answer in [db::ping(&pool).await, db::check(&pool).await] {
        let refused = answer.unwrap_err().to_string();
        assert!(refused.contains("read-only"), "{refused}");
    }
}

#[sqlx::test(migrations = false)]
async fn an_older_version_accepts_a_newer_schema_that_has_all_of_its_own(pool: PgPool) {
    let newer = table_and("create index gadgets_by_name on gadgets (name);").await;
    let older = Migrator::with_migrations(vec![newer.migrations[0].clone()]);
    migrate_with(&pool, &newer).await.unwrap();
    migrate_with(&pool, &older).await.unwrap();

    sqlx::query("delete from _sqlx_migrations where version = $1")
        .bind(newer.migrations[0].version)
        .execute(&pool)
        .await
        .unwrap();
    let refused = migrate_with(&pool, &older).await.unwrap_err();
    let reason = "which this version does not know, and lacks 1 that it does know";
    assert!(refused.to_string().ends_with(reason), "{refused:#}");
}

#[sqlx::test(migrations = false)]
async fn a_database_that_refuses_the_sign_in_or_has_another_name_is_unavailable(
    _: PgPoolOptions,
    database: PgConnectOptions,
) {
    for wrong in [database.clone().database("nowhere"), database.username("nobody in the database")]
    {
        let refused = PgConnection::connect_with(&wrong).await.unwrap_err();
        assert!(db::is_unavailable(&refused), "{refused}");
    }
}

#[sqlx::test(migrations = false)]
async fn a_command_says_at_once_that_its_settings_are_wrong(
    _: PgPoolOptions,
    database: PgConnectOptions,
) {
    // With passwords, the server does not say whether it knows the user.
    for (wrong, name) in [
        (database.clone().database("nowhere"), "\"nowhere\""),
        (database.username("nobody"), "\"nobody\""),
    ] {
        let url = wrong.to_url_lossy();
        let config =
            DatabaseConfig { database_url: url.as_str().parse().unwrap(), database_connections: 1 };
        let start = Instant::now();
        let refused = db::connected_pool(&config).await.unwrap_err();
        assert!(with_causes(refused.as_ref()).contains(name), "{refused:#}");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
}

#[sqlx::test(migrations = false)]
async fn a_command_waits_for_a_server_that_is_starting(
    _: PgPoolOptions,
    database: PgConnectOptions,
) {
    let server = format!("{}:{}", database.get_host(), database.get_port());
    let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let url = database.host("127.0.0.1").port(address.port()).to_url_lossy();
    let config =
        DatabaseConfig { database_url: url.as_str().parse().unwrap(), database_connections: 1 };

    let refused = db::connected_pool(&config).await.unwrap_err();
    assert!(with_causes(refused.as_ref()).contains("refused"), "{refused:#}");

    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let listener = TcpListener::bind(address).await.unwrap();
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(
                async move { tokio::io::copy_bidirectional(&mut client, &mut server).await },
            );
        }
    });
    db::ping(&db::connected_pool(&config).await.unwrap()).await.unwrap();
}

#[sqlx::test(migrations = false)]
async fn an_unfinished_index_is_refused_until_somebody_drops_it(pool: PgPool) {
    let migrator = table_and(
        "-- no-transaction\ncreate unique index concurrently if not exists gadgets_once on gadgets (name);",
    )
    .await;
    let failed = migrate_with(&pool, &migrator).await.unwrap_err();
    assert!(format!("{failed:#}").contains("gadgets_once"), "{failed:#}");

    let refused = migrate_with(&pool, &migrator).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("run `drop index concurrently gadgets_once;` and migrate again"),
        "{refused:#}"
    );

    sqlx::raw_sql("delete from gadgets").execute(&pool).await.unwrap();
    sqlx::query("drop index concurrently gadgets_once").execute(&pool).await.unwrap();
    migrate_with(&pool, &migrator).await.unwrap();
    assert_eq!(valid_indexes(&pool).await, 1);
}
