//! The connection to Postgres and the embedded schema.

pub(crate) mod advisory_lock;
mod migrate;
pub(crate) mod pages;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlx::postgres::types::PgInterval;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, Transaction};
pub use sqlx::{Error as DatabaseError, PgPool};

use crate::config::DatabaseConfig;
pub use migrate::{MIGRATOR, migrate, migrate_with, missing_migrations};

/// Statements that take longer are logged with their text.
const SLOW_STATEMENT: Duration = Duration::from_millis(200);

/// How long an idle connection counts as alive without a ping.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// Maximum wait for a connection, including opening one.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for a connection to answer a ping. A connection that is silent for longer is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum wait for a call to the database that should take milliseconds; see [`within`].
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long [`retry`] repeats a call.
const RETRY_TIME: Duration = Duration::from_mins(15);
/// Maximum pause between two tries.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The pause between two tries of a command to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
/// Server-side timeouts for statements, lock waits, and idle transactions. The keepalives close the connection of a
/// client whose machine or network is gone within two minutes, not hours; over a Unix socket, they have no effect.
const SERVER_TIMEOUTS: &str = "set statement_timeout = '30s'; set lock_timeout = '10s'; \
                               set idle_in_transaction_session_timeout = '60s'; \
                               set tcp_keepalives_idle = 60; set tcp_keepalives_interval = 15; \
                               set tcp_keepalives_count = 4";

/// Waits for `call` for up to [`CALL_TIMEOUT`].
///
/// A connection can fall silent without being closed: a firewall forgot it, or a failover left it behind. A statement
/// on such a connection would wait forever. After the timeout its future is dropped, and the pool pings the
/// connection and closes it.
///
/// # Errors
/// [`DatabaseError::Io`] after the timeout.
pub async fn within<T, E: From<sqlx::Error>>(
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    within_time(CALL_TIMEOUT, call).await
}

/// Waits for `call` for up to `limit`. Otherwise the same as [`within`].
///
/// # Errors
/// [`DatabaseError::Io`] after the timeout.
pub async fn within_time<T, E: From<sqlx::Error>>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let late = |_| {
        let reason = format!("the database did not answer within {limit:?}");
        sqlx::Error::Io(io::Error::new(ErrorKind::TimedOut, reason))
    };
    tokio::time::timeout(limit, call).await.map_err(late)?
}

/// Calls the database with [`within`], and again while it is unavailable, for up to [`RETRY_TIME`]. The call must be
/// idempotent. A running job may wait here: its lease cannot go to another worker meanwhile.
///
/// # Errors
/// The last one.
pub async fn retry<T, F>(call: impl Fn() -> F) -> Result<T, DatabaseError>
where
    F: Future<Output = Result<T, DatabaseError>>,
{
    let deadline = Instant::now() + RETRY_TIME;
    let mut delay = Duration::from_millis(100);
    loop {
        match within(call()).await {
            Err(error) if is_unavailable(&error) && Instant::now() < deadline => {
                tracing::warn!(%error, "The database is unavailable; retrying");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(RETRY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// Returns true if the server cannot be reached or cannot serve at the moment, as opposed to rejecting the query.
pub fn is_unavailable(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Io(_)
        | DatabaseError::PoolTimedOut
        | DatabaseError::PoolClosed
        | DatabaseError::Tls(_)
        | DatabaseError::WorkerCrashed => true,
        DatabaseError::Database(error) => {
            let code = error.code().unwrap_or_default();
            // A lost connection (08), shutting down or starting up (57P0x), a timeout of ours (57014, 55P03, 25P03), a
            // deadlock (40P01), a standby (25006), out of disk, memory or connections (53), a failing disk (58), a password
            // that was changed (28), or a database that is being restored under another name (3D000).
            ["08", "57P0", "57014", "55P03", "25P03", "40P01", "25006", "53", "58", "28", "3D000"]
                .iter()
                .any(|unavailable| code.starts_with(unavailable))
        }
        _ => false,
    }
}

/// Creates a pool for a command, once the server takes connections. Waits up to five seconds for a server that cannot be
/// reached, because it may be starting, or that has no connection left.
///
/// # Errors
/// If the server refuses the connection or cannot be reached.
pub async fn connected_pool(config: &DatabaseConfig) -> anyhow::Result<PgPool> {
    let pool = pool(config)?;
    let options = pool.connect_options();
    let deadline = Instant::now() + ACQUIRE_TIMEOUT;
    // Connect without the pool, which would not report why it cannot connect.
    while let Err(error) = within_time(ACQUIRE_TIMEOUT, PgConnection::connect_with(&options)).await
    {
        if is_misconfigured(&error) || !is_unavailable(&error) || Instant::now() > deadline {
            return Err(error.into());
        }
        tokio::time::sleep(CONNECT_PAUSE).await;
    }
    Ok(pool)
}

/// Whether the server rejects the user, the password, or the database. Services retry; commands report it at once.
fn is_misconfigured(error: &DatabaseError) -> bool {
    let DatabaseError::Database(error) = error else { return false };
    let code = error.code().unwrap_or_default();
    code.starts_with("28") || code == "3D000"
}

/// Creates a pool. The first query connects, so the server need not run yet.
pub fn pool(config: &DatabaseConfig) -> anyhow::Result<PgPool> {
    let options: PgConnectOptions =
        config.database_url.reveal().parse().context("not a valid Postgres URL")?;
    let options = options.log_slow_statements("warn".parse()?, SLOW_STATEMENT);
    let (of_acquired, of_released) = (Arc::new(options.clone()), Arc::new(options.clone()));
    Ok(PgPoolOptions::new()
        .max_connections(config.database_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| Box::pin(set_timeouts(connection)))
        // Skip the ping for connections used a moment ago: pinging on every acquire would be a third of all
        // statements.
        .test_before_acquire(false)
        .before_acquire(move |connection, used| {
            let options = Arc::clone(&of_acquired);
            Box::pin(async move {
                if used.idle_for > TRUSTED_IDLE {
                    ping_or_replace(connection, &options).await?;
                }
                Ok(true)
            })
        })
        // The pool pings each connection it gets back, without a timeout: a silent one would occupy its place forever.
        .after_release(move |connection, _| {
            let options = Arc::clone(&of_released);
            Box::pin(async move { ping_or_replace(connection, &options).await.map(|()| true) })
        })
        .connect_lazy_with(options))
}

/// Sets the timeouts of the server. They are not startup options, which connection poolers refuse.
async fn set_timeouts(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(SERVER_TIMEOUTS).execute(connection).await.map(drop)
}

/// Pings the server, and replaces a connection that fell silent.
///
/// The pool could not close a silent connection: over TLS, sqlx waits for the server's closing message (sqlx 0.9.0,
/// `RustlsSocket::poll_shutdown`), so its place in the pool would be lost. Dropping a connection closes it at once.
async fn ping_or_replace(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
) -> sqlx::Result<()> {
    match within_time(PING_TIMEOUT, connection.ping()).await {
        Err(sqlx::Error::Io(error)) if error.kind() == ErrorKind::TimedOut => {}
        answered => return answered,
    }
    tracing::warn!("A connection to the database fell silent; opening another one");
    let connect = async || {
        let mut fresh = PgConnection::connect_with(options).await?;
        set_timeouts(&mut fresh).await.map(|()| fresh)
    };
    loop {
        match within_time(ACQUIRE_TIMEOUT, connect()).await {
            Ok(fresh) => {
                *connection = fresh;
                return Ok(());
            }
            Err(error) => tracing::debug!(%error, "Cannot replace a silent connection yet"),
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Begins a transaction.
///
/// Use this instead of `PgPool::begin`. If a future waiting for `PgPool::begin` is dropped (a browser hangs up, a
/// `select!`), its connection returns to the pool inside an open transaction, and the writes of the next users
/// of that connection are lost (sqlx 0.9.0, its issue 4393). Here a task always completes the begin, and rolls
/// back if nobody takes the transaction. It gives up only on a connection that fell silent, which the pool replaces.
pub(crate) async fn begin(pool: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    let pool = pool.clone();
    #[expect(clippy::disallowed_methods, reason = "a spawned task is not dropped while it waits")]
    let begun = tokio::spawn(async move { within(pool.begin()).await });
    begun.await.map_err(|_| sqlx::Error::WorkerCrashed)?
}

/// Returns a text that identifies this database, across servers.
pub async fn identity(pool: &PgPool) -> sqlx::Result<String> {
    sqlx::query_scalar(
        "select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), oid)
         from pg_database where datname = current_database()",
    )
    .fetch_one(pool)
    .await
}

/// Checks within four seconds that the database accepts writes and has the migrations of this version.
///
/// # Errors
/// [`DatabaseError::Configuration`] if it is read-only or lacks some.
pub async fn check(pool: &PgPool) -> sqlx::Result<()> {
    ping(pool).await?;
    match within_time(PING_TIMEOUT, missing_migrations(pool)).await? {
        0 => Ok(()),
        missing => {
            tracing::warn!("The database lacks {missing} migrations; run `retouch-api migrate`");
            let missing = format!("the database lacks {missing} migrations");
            Err(sqlx::Error::Configuration(missing.into()))
        }
    }
}

/// Checks that the server answers and accepts writes, within two seconds.
///
/// # Errors
/// [`DatabaseError::Configuration`] if it is read-only, as a standby is.
pub async fn ping(pool: &PgPool) -> sqlx::Result<()> {
    let is_read_only = sqlx::query_scalar!(
        r#"select current_setting('transaction_read_only')::boolean as "is_read_only!""#,
    );
    if within_time(PING_TIMEOUT, is_read_only.fetch_one(pool)).await? {
        tracing::warn!("The database is read-only");
        return Err(sqlx::Error::Configuration("the database is read-only".into()));
    }
    Ok(())
}

pub(crate) fn exactly_one(rows: u64) -> sqlx::Result<()> {
    if rows == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

pub(crate) fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
