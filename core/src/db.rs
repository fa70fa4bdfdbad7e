//! The connection to Postgres and the embedded schema.

use std::time::Duration;

use anyhow::Context;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, Postgres, Transaction};
pub use sqlx::{Error as DatabaseError, PgPool};

use crate::config::DatabaseConfig;

/// The schema in `migrations/`, embedded in each binary.
pub static MIGRATOR: Migrator = sqlx::migrate!("../migrations");

/// For how long an idle connection is believed to be alive.
const TRUSTED: Duration = Duration::from_secs(1);

/// Opens a pool. The server need not be there yet: the first query finds out.
pub fn pool(config: &DatabaseConfig) -> anyhow::Result<PgPool> {
    PgPoolOptions::new()
        .max_connections(config.database_connections)
        .acquire_timeout(Duration::from_secs(5))
        // A connection that was used a moment ago is taken as it is: asking each time whether it still lives
        // would be a third of all that Postgres is asked.
        .test_before_acquire(false)
        .before_acquire(|connection, used| {
            Box::pin(async move {
                if used.idle_for > TRUSTED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy(&config.database_url)
        .context("DATABASE_URL is no address of a Postgres database")
}

/// Begins a transaction.
///
/// Not `PgPool::begin`: a caller that is dropped while it waits for that one (a browser that hangs up, a
/// `select!`) leaves its connection inside a transaction that nobody ends, and what the next ones do on that
/// connection is lost (sqlx 0.9.0, its issue 4393). Here the beginning is always waited for, and what nobody
/// takes is rolled back.
pub(crate) async fn begin(pool: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    let pool = pool.clone();
    #[expect(clippy::disallowed_methods, reason = "in a task of its own nobody drops it")]
    let begun = tokio::spawn(async move { pool.begin().await });
    begun.await.map_err(|_| sqlx::Error::WorkerCrashed)?
}

/// Applies the migrations that are missing. Safe to run from several processes at once.
pub async fn migrate(pool: &PgPool) -> anyhow::Result<()> {
    MIGRATOR.run(pool).await.context("migrating the database")
}

/// How many migrations of this version the database has not seen.
pub async fn missing_migrations(pool: &PgPool) -> sqlx::Result<usize> {
    let known: Vec<i64> = sqlx::query_scalar("select version from _sqlx_migrations where success")
        .fetch_all(pool)
        .await
        .or_else(|error| match &error {
            // A database that nobody has migrated yet.
            sqlx::Error::Database(refusal) if refusal.code().as_deref() == Some("42P01") => {
                Ok(vec![])
            }
            _ => Err(error),
        })?;
    Ok(MIGRATOR.iter().filter(|migration| !known.contains(&migration.version)).count())
}

/// Asks the server for an answer.
pub async fn ping(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query!("select 1 as one").fetch_one(pool).await.map(drop)
}
