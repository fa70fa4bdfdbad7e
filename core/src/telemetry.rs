//! Logs, metrics, traces and the shutdown signal: the same in every process.

mod traces;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusBuilder;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer};

pub use traces::{continue_trace, current_trace};

/// How long a process that ends waits for its last traces to be sent.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How and where a process reports.
#[derive(Clone, Debug, clap::Args)]
pub struct TelemetryConfig {
    /// What to log, in `tracing`'s filter language.
    #[arg(
        long,
        env = "RETOUCH_LOG",
        default_value = "info,ort=warn,sqlx=warn,apalis=warn,apalis_core=warn,stripe_webhook=off"
    )]
    pub log: String,
    /// Log lines as JSON, for collectors.
    #[arg(long, env = "RETOUCH_LOG_JSON")]
    pub log_json: bool,
    /// Where Prometheus may read metrics; a port of its own, never the public one. Off when empty.
    #[arg(long, env = "RETOUCH_METRICS_LISTEN")]
    pub metrics_listen: Option<SocketAddr>,
    /// Where traces are sent, over OTLP with HTTP, e.g. `http://collector:4318`. Off when empty.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
}

/// Keeps the process reporting; dropping it sends what has not been sent yet.
#[must_use = "reporting ends when this is dropped"]
pub struct Telemetry(Option<SdkTracerProvider>);

impl Drop for Telemetry {
    fn drop(&mut self) {
        let Some(provider) = self.0.take() else { return };
        if let Err(error) = provider.shutdown_with_timeout(LAST_WORDS) {
            eprintln!("The last traces were not sent: {error}");
        }
    }
}

/// Starts logging and, where configured, the metrics port and traces of `service`.
pub fn start(config: &TelemetryConfig, service: &'static str) -> anyhow::Result<Telemetry> {
    let filter = EnvFilter::try_new(&config.log).context("RETOUCH_LOG is no log filter")?;
    // Colours are for people: a file or a collector would keep their control characters.
    let logs = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let logs = if config.log_json { logs.json().boxed() } else { logs.boxed() };
    let endpoint = config.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
    let provider = endpoint.map(|endpoint| traces::provider(endpoint, service)).transpose()?;
    let reporting = tracing_subscriber::registry()
        .with(logs.with_filter(filter))
        .with(provider.as_ref().map(traces::layer));
    // Not its `init`, which listens to the `log` crate too: a library that only asks there whether it should speak
    // (sqlx does at every query) would leave the filters above shut for whatever comes next.
    tracing::subscriber::set_global_default(reporting).context("starting to log")?;
    if let Some(listen) = config.metrics_listen {
        PrometheusBuilder::new()
            .with_http_listener(listen)
            .set_buckets(&[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0])
            .context("setting histogram buckets")?
            .install()
            .with_context(|| format!("serving metrics at {listen}"))?;
    }
    Ok(Telemetry(provider))
}

/// Starts logging alone, for a command that does one thing and ends.
pub fn log_to_stderr() {
    let filter = EnvFilter::new("info,sqlx=warn");
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// Makes a command that prints end quietly when whoever reads its output has had enough of it (`| head`). Rust programs
/// ignore SIGPIPE, and `println!` would panic.
pub fn end_with_the_reader() {
    /// What a shell says of a program that SIGPIPE ended.
    const BY_SIGPIPE: i32 = 128 + 13;
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload_as_str().unwrap_or_default();
        if said.starts_with("failed printing to stdout") && said.contains("Broken pipe") {
            std::process::exit(BY_SIGPIPE);
        }
        usual(panic);
    }));
}

/// Waits for SIGTERM or Ctrl-C.
pub async fn shutdown_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
