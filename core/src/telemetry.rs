//! Logs, metrics and the shutdown signal: the same in every process.

use std::net::SocketAddr;

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// How and where a process reports.
#[derive(Clone, Debug, clap::Args)]
pub struct TelemetryConfig {
    /// What to log, in `tracing`'s filter language.
    #[arg(
        long,
        env = "RETOUCH_LOG",
        default_value = "info,ort=warn,sqlx=warn,apalis=warn,apalis_core=warn"
    )]
    pub log: String,
    /// Log lines as JSON, for collectors.
    #[arg(long, env = "RETOUCH_LOG_JSON")]
    pub log_json: bool,
    /// Where Prometheus may read metrics; a port of its own, never the public one. Off when empty.
    #[arg(long, env = "RETOUCH_METRICS_LISTEN")]
    pub metrics_listen: Option<SocketAddr>,
}

/// Starts logging and, where configured, the metrics port.
pub fn start(config: &TelemetryConfig) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log).context("RETOUCH_LOG is no log filter")?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if config.log_json {
        logs.json().init();
    } else {
        logs.init();
    }
    if let Some(listen) = config.metrics_listen {
        PrometheusBuilder::new()
            .with_http_listener(listen)
            .set_buckets(&[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0])
            .context("setting histogram buckets")?
            .install()
            .with_context(|| format!("serving metrics at {listen}"))?;
    }
    Ok(())
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
