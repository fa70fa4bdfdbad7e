//! Applies migrations, one process at a time.

use std::time::Duration;

use anyhow::{Context, ensure};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{PgConnection, PgExecutor, PgPool};

use super::advisory_lock::AdvisoryLock;

/// The schema in `migrations/`, embedded in each binary.
pub static MIGRATOR: Migrator = sqlx::migrate!("../migrations");

const MIGRATION_LOCK_POLL: Duration = Duration::from_millis(500);

/// Applies the missing migrations. Safe to run from several processes at once. Does nothing on a database that a newer
/// version has migrated.
pub async fn migrate(pool: &PgPool) -> anyhow::Result<()> {
    migrate_with(pool, &MIGRATOR).await
}

/// Applies the missing migrations of `migrator` on a connection that it takes out of the pool.
///
/// sqlx's own lock waits inside a statement, whose snapshot a `create index concurrently` of the process that
/// migrates would wait for: a deadlock. Polling for a lock of our own holds no snapshot.
pub async fn migrate_with(pool: &PgPool, migrator: &Migrator) -> anyhow::Result<()> {
    // Closing this connection releases both locks. In the pool, a migration that fails would leave sqlx's behind.
    let mut connection =
        pool.acquire().await.context("connecting to the database to migrate it")?.detach();
    // Building an index takes as long as the table is large.
    sqlx::raw_sql("set statement_timeout = 0; set lock_timeout = 0")
        .execute(&mut connection)
        .await?;
    while !try_migration_lock(&mut connection).await? {
        tokio::time::sleep(MIGRATION_LOCK_POLL).await;
    }
    if count_missing(&mut connection, migrator).await? > 0 {
        refuse_unfinished_indexes(&mut connection).await?;
    }
    // `Migrator::run` would not do: its future is not `Send` with a borrowed connection.
    match migrator.run_direct(None, &mut connection, false).await {
        // An older version can run on a newer schema, so that operators can go back.
        Err(MigrateError::VersionMissing(newer)) => {
            let missing = count_missing(&mut connection, migrator).await?;
            ensure!(
                missing == 0,
                "the database has migration {newer}, which this version does not know, and lacks {missing} that it does know"
            );
            tracing::warn!(
                "A newer version migrated the database: this one does not know migration {newer}"
            );
            Ok(())
        }
        migrated => migrated.context("migrating the database"),
    }
}

async fn try_migration_lock(connection: &mut PgConnection) -> sqlx::Result<bool> {
    sqlx::query_scalar("select pg_try_advisory_lock($1)")
        .bind(AdvisoryLock::Migration as i64)
        .fetch_one(connection)
        .await
}

/// A `create index concurrently` that fails leaves an index that is maintained but never used, and
/// `if not exists` would accept it.
async fn refuse_unfinished_indexes(connection: &mut PgConnection) -> anyhow::Result<()> {
    let unfinished: Vec<String> = sqlx::query_scalar(
        "select format('%I', relname) from pg_index join pg_class on pg_class.oid = indexrelid
         where not indisvalid and relnamespace = current_schema()::regnamespace
         order by relname",
    )
    .fetch_all(connection)
    .await?;
    // Postgres takes one name at a time.
    let drops: Vec<_> =
        unfinished.iter().map(|name| format!("drop index concurrently {name};")).collect();
    ensure!(
        drops.is_empty(),
        "an earlier migration left an unfinished index; run `{}` and migrate again",
        drops.join(" "),
    );
    Ok(())
}

/// Returns the number of migrations of this version that the database lacks.
pub async fn missing_migrations(pool: &PgPool) -> sqlx::Result<usize> {
    count_missing(pool, &MIGRATOR).await
}

async fn count_missing(database: impl PgExecutor<'_>, migrator: &Migrator) -> sqlx::Result<usize> {
    let known: Vec<i64> = sqlx::query_scalar("select version from _sqlx_migrations where success")
        .fetch_all(database)
        .await
        .or_else(|error| match &error {
            // The database has never been migrated: the table does not exist.
            sqlx::Error::Database(refusal) if refusal.code().as_deref() == Some("42P01") => {
                Ok(vec![])
            }
            _ => Err(error),
        })?;
    Ok(migrator.iter().filter(|migration| !known.contains(&migration.version)).count())
}
