//! The connection to Postgres and the embedded schema.

use std::time::Duration;

use anyhow::Context;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
pub use sqlx::{Error as DatabaseError, PgPool};

use crate::config::DatabaseConfig;

/// The schema in `migrations/`, embedded in each binary.
pub static MIGRATOR: Migrator = sqlx::migrate!("../migrations");

/// Opens a pool. The server need not be there yet: the first query finds out.
pub fn pool(config: &DatabaseConfig) -> anyhow::Result<PgPool> {
    PgPoolOptions::new()
        .max_connections(config.database_connections)
        .acquire_timeout(Duration::from_secs(5))
        .connect_lazy(&config.database_url)
        .context("DATABASE_URL is no address of a Postgres database")
}

/// Applies the migrations that are missing. Safe to run from several processes at once.
pub async fn migrate(pool: &PgPool) -> anyhow::Result<()> {
    MIGRATOR.run(pool).await.context("migrating the database")
}

/// Asks the server for an answer.
pub async fn ping(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query!("select 1 as one").fetch_one(pool).await.map(drop)
}
