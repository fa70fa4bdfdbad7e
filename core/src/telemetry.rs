//! Logs, metrics, traces and the shutdown signal, the same in every process.

mod traces;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusBuilder;
use metrics_util::MetricKindMask;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer};

pub use traces::{continue_trace, current_trace};

/// Maximum wait of an exiting process for its last spans to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The telemetry settings of a process.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Logs and traces")]
pub struct TelemetryConfig {
    /// The log filter, in the syntax of `tracing`.
    #[arg(
        long,
        env = "RETOUCH_LOG",
        default_value = "info,ort=error,sqlx=warn,apalis=warn,apalis_core=warn,stripe_webhook=off"
    )]
    pub log: String,
    /// Write log lines as JSON, for collectors.
    #[arg(long, env = "RETOUCH_LOG_JSON")]
    pub log_json: bool,
    /// Where Prometheus can scrape metrics: a separate port that must not be public. Off when empty.
    #[arg(long, env = "RETOUCH_METRICS_LISTEN")]
    pub metrics_listen: Option<SocketAddr>,
    /// Where to send traces over OTLP/HTTP, for example `http://collector:4318`. Off when empty.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
}

/// Keeps telemetry running. Dropping it sends the remaining spans and stops tracing.
#[must_use = "tracing stops when this is dropped"]
pub struct Telemetry(Option<SdkTracerProvider>);

impl Drop for Telemetry {
    fn drop(&mut self) {
        let Some(provider) = self.0.take() else { return };
        if let Err(error) = provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
            eprintln!("Could not send the last traces: {error}");
        }
    }
}

/// Starts logging and, if configured, the metrics port and the traces of `service`. See [`exporter`] for `gauge_timeout`.
pub fn start(
    config: &TelemetryConfig,
    service: &'static str,
    gauge_timeout: Option<Duration>,
) -> anyhow::Result<Telemetry> {
    let filter =
        EnvFilter::try_new(&config.log).context("RETOUCH_LOG is not a valid log filter")?;
    // Use colors only in terminals: a file or a collector would keep the control characters.
    let logs = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let logs = if config.log_json { logs.json().boxed() } else { logs.boxed() };
    let endpoint = config.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
    let provider = endpoint.map(|endpoint| traces::provider(endpoint, service)).transpose()?;
    let reporting = tracing_subscriber::registry()
        .with(logs.with_filter(filter))
        .with(provider.as_ref().map(traces::layer));
    // Not `init`, which also bridges the `log` crate: after a library merely checks whether a level is enabled there,
    // as sqlx does for every query, the filters above would drop the next event.
    tracing::subscriber::set_global_default(reporting).context("starting to log")?;
    if let Some(listen) = config.metrics_listen {
        exporter(gauge_timeout)?
            .with_http_listener(listen)
            .install()
            .with_context(|| format!("serving metrics on {listen} (RETOUCH_METRICS_LISTEN)"))?;
    }
    Ok(Telemetry(provider))
}

/// Returns the exporter of metrics. It drops gauges that are not updated within `gauge_timeout`, for a program that
/// keeps updating all its gauges.
pub fn exporter(gauge_timeout: Option<Duration>) -> anyhow::Result<PrometheusBuilder> {
    PrometheusBuilder::new()
        .idle_timeout(MetricKindMask::GAUGE, gauge_timeout)
        .set_buckets(&[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0])
        .context("setting histogram buckets")
}

/// Starts logging only, for short commands: what `RUST_LOG` says, or else `filter`.
pub fn log_to_stderr(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// Makes a command exit quietly when the reader of its output closes the pipe (`| head`). Rust programs ignore
/// SIGPIPE, so `println!` would panic.
pub fn exit_on_broken_pipe() {
    /// The exit status that shells report for a program killed by SIGPIPE.
    const SIGPIPE_STATUS: i32 = 128 + 13;
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or_default();
        if message.starts_with("failed printing to stdout") && message.contains("Broken pipe") {
            std::process::exit(SIGPIPE_STATUS);
        }
        default_hook(panic);
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
