//! `retouch-api`: serves the API and the page, migrates the database, and runs the operator's commands.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use retouch_api::admin::Admin;
use retouch_api::config::ApiConfig;
use retouch_api::metrics;
use retouch_api::server::{self, router};
use retouch_api::state::App;
use retouch_api::upkeep;
use retouch_api::usecases::settle_payment;
use retouch_api::webhooks::sender;
use retouch_core::config::{self, DatabaseConfig, StorageConfig};
use retouch_core::storage::{Claim, Storage, claim_bucket};
use retouch_core::{Clock, db, telemetry, with_causes};
use retouch_heif::Support;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Grace period of a stopping process for tasks that outlived their requests.
const TASKS_GRACE: Duration = Duration::from_secs(10);

/// The Retouch API.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Serve the API and the page.
    Serve(Box<ApiConfig>),
    /// Apply missing database migrations, and create the bucket or check that it belongs to the database.
    Migrate {
        #[command(flatten)]
        database: DatabaseConfig,
        #[command(flatten)]
        storage: StorageConfig,
    },
    /// Print the OpenAPI document.
    Openapi,
    /// Manage accounts and jobs, and audit the books.
    Admin(Box<Admin>),
    /// Check that a running API answers, for the health checks of containers.
    Healthcheck {
        /// The address and port that the API listens on.
        #[arg(long, env = "RETOUCH_LISTEN", default_value = "127.0.0.1:8080")]
        listen: SocketAddr,
    },
}

fn main() -> ExitCode {
    retouch_heif::decode_if_asked().unwrap_or_else(run)
}

#[tokio::main]
async fn run() -> ExitCode {
    let ended = match config::parse::<Command>() {
        Command::Admin(admin) => return administer(*admin).await,
        Command::Serve(config) => serve(&config).await,
        Command::Migrate { database, storage } => migrate(&database, &storage).await,
        Command::Openapi => print_openapi(),
        Command::Healthcheck { listen } => healthcheck(listen).await,
    };
    ended.map_or_else(failed, |()| ExitCode::SUCCESS)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_or_else` needs this signature")]
fn failed(error: anyhow::Error) -> ExitCode {
    eprintln!("retouch-api: {}", with_causes(error.as_ref()));
    ExitCode::FAILURE
}

async fn administer(admin: Admin) -> ExitCode {
    telemetry::log_to_stderr("info,sqlx=warn");
    telemetry::exit_on_broken_pipe();
    admin.run().await.unwrap_or_else(failed)
}

async fn serve(config: &ApiConfig) -> anyhow::Result<()> {
    let _telemetry =
        telemetry::start(&config.telemetry, "retouch-api", Some(metrics::GAUGE_TIMEOUT))?;
    let app = App::new(config, Clock::system())?;
    let Support { heic, avif, detail } = app.heif.support().await;
    tracing::info!(heic, avif, detail, "Checked for HEIC and AVIF decoders");
    app.job_events.start(app.queue.clone());
    tokio::spawn(metrics::watch(app.clone()));
    tokio::spawn(upkeep::run(app.clone()));
    tokio::spawn(settle_payment::watch_payments(app.clone()));
    let deliveries = tokio::spawn(sender::run(app.clone()));
    let service = router::router(app.clone(), &config.ui_dir);
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("listening on {} (RETOUCH_LISTEN)", config.listen))?;
    tracing::info!(listen = %config.listen, "Serving");
    let stopping = app.stopping.clone();
    server::serve(&app, listener, service, async move {
        telemetry::shutdown_signal().await;
        tracing::info!("Stopping");
        stopping.cancel();
    })
    .await;
    app.tasks.close();
    if timeout(TASKS_GRACE, app.tasks.wait()).await.is_err() {
        tracing::warn!("Some tasks have not ended in {TASKS_GRACE:?}");
    }
    // Those in flight end within seconds. Otherwise they would be sent again.
    deliveries.await.context("delivering to webhooks")
}

async fn migrate(database: &DatabaseConfig, storage: &StorageConfig) -> anyhow::Result<()> {
    let pool = db::connected_pool(database).await.context("connecting to DATABASE_URL")?;
    db::migrate(&pool).await?;
    let storage = Storage::new(storage);
    storage.create_bucket().await?;
    claim_bucket(&pool, &storage, Claim::New).await?;
    Ok(())
}

fn print_openapi() -> anyhow::Result<()> {
    println!("{}", router::openapi().to_pretty_json().context("writing the OpenAPI document")?);
    Ok(())
}

async fn healthcheck(listen: SocketAddr) -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().timeout(Duration::from_secs(3)).build()?;
    http.get(format!("http://{listen}/healthz")).send().await?.error_for_status()?;
    Ok(())
}
