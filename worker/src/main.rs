//! The worker's command line. Each subcommand has a file of its own under `commands/`.

mod commands;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{bench, doctor, models, run, serve};
use retouch_worker::watchdog;

/// Edits images with ONNX models.
#[derive(Parser)]
#[command(name = "retouch-worker", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Take jobs until told to stop.
    Serve(Box<serve::Serve>),
    /// Run a tool on a file, without any server.
    #[command(subcommand)]
    Run(run::Run),
    /// Look after the models.
    #[command(subcommand)]
    Models(models::Models),
    /// Measure how fast this machine is.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Look at everything that a worker needs, and say what to do about what is missing.
    Doctor(Box<doctor::Doctor>),
    /// Ask whether the worker that writes this health file lives and works; for containers.
    Healthcheck {
        /// What the worker was told to write.
        #[arg(long, env = "RETOUCH_HEALTH_FILE", value_name = "FILE")]
        health_file: PathBuf,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli: Cli = retouch_core::config::parse();
    // Several TLS libraries are linked in; say which one is meant.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if !matches!(cli.command, Command::Serve(_)) {
        commands::log_to_stderr();
        retouch_core::telemetry::end_with_the_reader();
    }
    let outcome = match cli.command {
        Command::Serve(command) => command.execute().await,
        Command::Run(command) => command.execute().await,
        Command::Models(command) => command.execute().await,
        Command::Bench(command) => command.execute().await,
        Command::Doctor(command) => command.execute().await,
        Command::Healthcheck { health_file } => {
            watchdog::check(&health_file, retouch_core::Clock::system().now().into())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("retouch-worker: {error:#}");
            ExitCode::FAILURE
        }
    }
}
